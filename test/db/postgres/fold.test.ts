import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { foldCase } from '../../../src/db/fold-case.ts'
import { openOwnPostgres } from './database.ts'

// Titles are folded in the database, by triggers, what is searched for by db/fold-case.ts: what one finds the other must have put there.

test('each character is folded alike in the database and in the service, except letters that its ICU does not know yet', async () => {
  const { slowQueryDb } = await openOwnPostgres()
  const { rows } = await sql<{ code: number; folded: string }>`
    select code, folded from generate_series(1, ${0x10ffff}::int) as code, lateral (select fold(chr(code)) as folded) as by_database
    where code not between 55296 and 57343 and folded <> chr(code)`.execute(slowQueryDb)
  const foldedThere = new Map(rows.map(({ code, folded }) => [String.fromCodePoint(code), folded]))
  const differing = [...allCharacters()].filter((character) => foldCase(character) !== (foldedThere.get(character) ?? character))

  // A pair of letters that is as new as that is known in neither direction.
  const known = await sql<{ character: string }>`
    select upper.character from unnest(${differing}::text[], ${differing.map(foldCase)}::text[]) as upper (character, lower)
    where lower(upper.character collate "und-x-icu") <> upper.character or upper(upper.lower collate "und-x-icu") <> upper.lower`.execute(
    slowQueryDb,
  )
  expect(known.rows).toEqual([])
  expect(foldedThere.size).toBeGreaterThan(2_000)
})

test('what a letter becomes next to others is the same in the database: sigmas at the end of words, dots, accents, Hangul', async () => {
  const { db } = await openOwnPostgres()
  const texts = [
    'ΌΔΟΣ',
    'ΑΣ Σ',
    'ΑΣ\u0301',
    'İstanbul',
    'I\u0307',
    'J\u0301\u0327',
    'e\u0327\u0301',
    '각',
    'ẞ ß ſ ﬁ',
    'Dž',
    '\u212b',
    '\u2126',
  ]
  for (const text of texts) {
    const { rows } = await sql<{ folded: string }>`select fold(${text}) as folded`.execute(db)
    expect(rows).toEqual([{ folded: foldCase(text) }])
  }
})

function* allCharacters() {
  for (let code = 1; code <= 0x10ffff; code++) if (code < 0xd800 || code > 0xdfff) yield String.fromCodePoint(code)
}
