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

test('the index of decisions has each page', () => {
  const index = pages['docs/decisions/README.md'] ?? ''
  const written = Object.keys(pages).filter((path) => /^docs\/decisions\/\d/.test(path))
  expect(written.filter((path) => !index.includes(`](${path.split('/').at(-1)})`))).toEqual([])
})
