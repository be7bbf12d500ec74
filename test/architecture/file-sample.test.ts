import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { drawFilesToLeaveOut, FAMILIES, filesDrawnFrom } from '../file-sample.ts'
import { chanceOf } from '../seeded-random.ts'

const families = Object.entries(FAMILIES)

test('each pattern of a family of files has files, and no file is in two families', () => {
  const patterns = families.flatMap(([, { files, always = [] }]) => [...files, ...always])
  expect(patterns.filter((pattern) => globSync(pattern).length === 0)).toEqual([])
  const files = families.flatMap(([, family]) => filesDrawnFrom(family))
  expect(files.filter((file, index) => files.indexOf(file) !== index)).toEqual([])
})

test('a run makes its share of each family, and any file is in some run', () => {
  const made = new Set<string>()
  for (let seed = 0; seed < 100; seed++) {
    const leftOut = new Set(drawFilesToLeaveOut(chanceOf(seed)))
    for (const [name, family] of families) {
      const drawn = filesDrawnFrom(family).filter((file) => !leftOut.has(file))
      expect(drawn.length, name).toBe(Math.ceil(filesDrawnFrom(family).length * family.share))
      for (const file of drawn) made.add(file)
    }
  }
  expect(families.flatMap(([, family]) => filesDrawnFrom(family)).filter((file) => !made.has(file))).toEqual([])
})

test('the docs name each family and its share', () => {
  const docs = readFileSync('docs/testing.md', 'utf8')
  const rows = families.map(([name, { share }]) => `| ${name} | 1 of ${1 / share} |`)
  expect(rows.filter((row) => !docs.includes(row))).toEqual([])
})
