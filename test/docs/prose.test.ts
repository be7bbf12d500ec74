import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readTree } from '../architecture/imports.ts'

// What makes a page hard to read in an editor, and a change to it hard to see in a diff.

const pages = readTree('docs')

test('no cell of a table in docs/ is longer than 350 characters: what is longer is a list or a paragraph', () => {
  const long = Object.entries(pages)
    .filter(([path]) => path.endsWith('.md') && !path.startsWith('docs/reference/'))
    .flatMap(([path, text]) =>
      text
        .split('\n')
        .filter((line) => line.startsWith('|'))
        .flatMap((line) => line.slice(1, -1).split(' | '))
        .filter((cell) => cell.length > 350)
        .map((cell) => `${path}: ${cell.slice(0, 80)}`),
    )
  expect(long).toEqual([])
})

test('the index of decisions has each page, in the order of their numbers', () => {
  const index = (pages['docs/decisions/README.md'] ?? '').split('\n')
  const written = Object.keys(pages).filter((path) => /^docs\/decisions\/\d/.test(path))
  expect(written.filter((path) => !index.some((line) => line.includes(`](${path.split('/').at(-1)})`)))).toEqual([])
  const numbers = index.flatMap((line) => /^- \[?(\d+)\b/.exec(line)?.[1] ?? []).map(Number)
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
})

test('in CHANGELOG.md each change that is not released is one line of one sentence', () => {
  const changelog = readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8')
  const [, unreleased = ''] = changelog.split(/\n## \[/)
  const [, ...sections] = unreleased.split('\n### ')
  const changes = sections.flatMap((section) => section.split('\n').slice(1)).filter((line) => line !== '')
  expect(changes.length).toBeGreaterThan(0)
  expect(changes.filter((line) => !/^- .{10,200}\.$/.test(line) || /[.?!] [A-Z]/.test(line))).toEqual([])
})
