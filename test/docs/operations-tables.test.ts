import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ALERT_CAUSES } from '../../src/alerts/cause.ts'
import { readConfig } from '../../src/config/config.ts'

const ROOT = join(import.meta.dirname, '../..')

async function sectionOf(heading: string): Promise<string> {
  const page = await readFile(join(ROOT, 'docs/operations.md'), 'utf8')
  const [, text = ''] = page.split(`\n## ${heading}\n`)
  const [inside = ''] = text.split('\n## ')
  return inside
}

/** The names in backquotes at the beginnings of the rows of all tables of a section. */
async function namesInTables(heading: string): Promise<string[]> {
  const cells = Array.from((await sectionOf(heading)).matchAll(/^\| (`[^|]+`) \|/gm), ([, cell = '']) => cell)
  return cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, name = '']) => name))
}

test('docs/operations.md has a row for each check of the doctor', async () => {
  const files = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((name) => name.endsWith('.ts'))
  const sources = await Promise.all(files.map((name) => readFile(join(ROOT, 'src', name), 'utf8')))
  const named = sources.flatMap((text) => [
    ...Array.from(text.matchAll(/\bcheck: '([^']+)'/g), ([, name = '']) => name),
    // Tables of checks, as `'free space': …` or `async disk(…)`.
    ...(text.match(/CHECKS: Readonly[\s\S]*?\n}\n/g) ?? []).flatMap((table) =>
      Array.from(table.matchAll(/^ {2}(?:async )?'?([a-z][a-z ]*)'?[(:]/gm), ([, name = '']) => name),
    ),
  ])
  expect(named).toEqual(expect.arrayContaining(['disk', 'free space', 'e-mail', 'certificate', 'media', 'search index']))
  expect(await namesInTables('The doctor')).toEqual(
    expect.arrayContaining([...new Set(named)].filter((name) => name !== 'media')),
  )
})

test('docs/operations.md has a row for each cause of an alert', async () => {
  expect(await namesInTables('Suspicious sessions')).toEqual(expect.arrayContaining([...ALERT_CAUSES]))
})

test('docs/operations.md has the limits that a server starts with', async () => {
  const rows = (await sectionOf('Limits')).matchAll(/^\| `(\w+)` \|[^|]+\| (\d+) \| (\d*) ?\| (\d*) ?\|$/gm)
  const documented = Array.from(rows, ([, name, ip, key, account]) => [
    name,
    key ? { ip: Number(ip), key: Number(key), account: Number(account) } : { ip: Number(ip) },
  ])
  expect(Object.fromEntries(documented)).toEqual(readConfig({}).limits)
})
