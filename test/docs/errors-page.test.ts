import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { errorsPage, PATH } from '../../scripts/errors.ts'
import { REFUSALS } from '../../src/error-catalogue.ts'

test('F-93: docs/errors.md has every error as the code answers it: `npm run docs` writes it', () => {
  expect(readFileSync(PATH, 'utf8')).toBe(errorsPage())
})

test('F-93: the playback protocol has every refusal with the status that it is sent with', () => {
  const protocol = readFileSync(join(PATH, '../reference/playback-protocol.md'), 'utf8')
  const section = protocol.split('\n## ').find((text) => text.startsWith('9. Refusals')) ?? ''
  const rows = Array.from(section.matchAll(/^\| ([a-z, -]+) \| (\d+) \|/gm), ([, codes = '', status]) =>
    codes.split(', ').map((code) => `${code} ${status}`),
  )
  expect(rows.flat().sort()).toEqual(
    Object.entries(REFUSALS)
      .map(([code, { status }]) => `${code} ${status}`)
      .sort(),
  )
})
