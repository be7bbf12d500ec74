import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readTree } from '../architecture/imports.ts'

// docs/reference/test-numbers.md: what the numbers in the names of tests mean.

const ROOT = join(import.meta.dirname, '..', '..')
const NUMBER = /[A-Z]-?\d{2}|I\d{1,2}/g
/** The numbers with which a quoted name begins: 'O03: …', 'F-03, F-04: …'. */
const NUMBERS_OF_TITLE = /['"`]((?:(?:[A-Z]-\d{2}|[A-Z]\d{2}|I\d{1,2})(?:, and |, | and )?)+): /g

test('each number in the name of a test is in the index, and the index names files that exist', async () => {
  const index = await readFile(join(ROOT, 'docs/reference/test-numbers.md'), 'utf8')
  const indexed = new Set([...index.matchAll(/^\| ([A-Z]-?\d+) \|/gm)].map(([, number]) => number))
  const used = Object.values(readTree('test')).flatMap((text) =>
    [...text.matchAll(NUMBERS_OF_TITLE)].flatMap(([, numbers = '']) => numbers.match(NUMBER) ?? []),
  )
  expect(used.length).toBeGreaterThan(200)
  expect(used.filter((number) => !indexed.has(number))).toEqual([])
  const files = [...index.matchAll(/`((?:test|conformance)\/[^`]+)`/g)].map(([, path = '']) => path)
  expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})
