import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeVariables } from '../../src/config/environment.ts'

test('docs/operations.md has the description and the default of each variable, as the help has them', async () => {
  const page = await readFile(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const [, section = ''] = page.split('\n## Environment variables\n')
  const [table = ''] = section.split('\n\n').filter((part) => part.trimStart().startsWith('|'))
  const rows = describeVariables().map(
    ({ name, description, defaultText, default: fixed }) => `| \`${name}\` | ${description} | ${defaultText ?? `\`${fixed}\``} |`,
  )
  expect(table.trim().split('\n').slice(2)).toEqual(rows)
})
