import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const [, ...recipes] = readFileSync(join(ROOT, 'docs/recipes.md'), 'utf8').split('\n## ')

test('F-95: each file that a recipe names exists, and has the names to look for in it', () => {
  const rows = recipes.flatMap((recipe) =>
    Array.from(recipe.matchAll(/^\| `([^`]+)` \| (.+?) \|/gm), ([, path = '', names = '']) => ({ path, names })),
  )
  expect(rows.length).toBeGreaterThan(50)
  const gone = rows.flatMap(({ path, names }) => {
    if (!existsSync(join(ROOT, path))) return [path]
    const text = readFileSync(join(ROOT, path), 'utf8')
    return Array.from(names.matchAll(/`([^`]+)`/g), ([, name = '']) => name)
      .filter((name) => !new RegExp(`(?<!\\w)${RegExp.escape(name)}(?!\\w)`).test(text))
      .map((name) => `${path}: ${name}`)
  })
  expect(gone).toEqual([])
})

test('F-95: there is a recipe for each of what is added most often, and each file that it mentions exists', () => {
  expect(recipes.map((recipe) => recipe.split('\n')[0])).toEqual([
    'A webhook event',
    'A filter of the list of videos',
    'A setting',
    'A table',
    'A kind of rendition',
    'A storage engine',
    'A command',
    'A page of the console',
  ])
  const mentioned = Array.from(recipes.join('\n').matchAll(/`((?:src|web|test|docs)\/[^`*]+)`/g), ([, path = '']) => path)
  expect(mentioned.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})
