import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../../../src/crypto/secret.ts'
import type { Database, Db } from '../../../src/db/database.ts'
import { prepared } from '../../../src/db/prepared.ts'
import { openSharedDatabase } from '../database.ts'

// A value comes back as what it was, whatever the database calls its type.

const AWKWARD_TEXTS = [
  '',
  ' ',
  "'; drop table video; --",
  '"',
  '\\',
  '%_',
  '$1 ? :x @y',
  '{"a":[]}',
  'null',
  'e\u0301 and \u00e9',
  'ﬁ ß ſ ς',
  'مرحبا \u202eabc\u202c',
  '👨‍👩‍👧‍👦 🏳️‍🌈',
  '\u{10FFFF}\uFFFF\uFFFE\uFEFF',
  '\u0001\u001f\u007f\u0085\u2028',
  'a\nb\r\nc\td',
]
/** Of every plane, without surrogates alone, which no UTF-8 has. */
const anyText = fc.string({ unit: 'binary', maxLength: 40 }).filter((text) => text.isWellFormed() && !text.includes('\0'))
const WHOLE_NUMBERS = [
  0,
  1,
  -1,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32,
  1_800_000_000_000,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
]
const REAL_NUMBERS = [0, 0.1, 1 / 3, -2.5, 16 / 9, 5e-324, Number.MAX_VALUE, Number.EPSILON, 12_345_678.901_234_567, 29.97]

let database: Database
beforeAll(async () => {
  database = await openSharedDatabase()
})
afterAll(() => database.close())

test('texts with any characters are returned unchanged', async () => {
  for (const text of AWKWARD_TEXTS) expect(await kept(text)).toBe(text)
  await fc.assert(
    fc.asyncProperty(anyText, async (text) => {
      expect(await kept(text)).toBe(text)
    }),
    { numRuns: 100 },
  )
})

test('texts are sorted by code points, in any language', async () => {
  const sorted = [' ', 'A', 'Z', '_', 'a', 'b', 'z', 'Ä', 'é', 'ÿ', 'Ω', '中', '\uFB01', '\uFFFD', '😀', '\u{10FFFF}']
  const accountId = await newAccount(database)
  const tagged = sorted.toReversed().map((name) => ({ accountId, name, position: 1, ordinal: 1 }))
  await database.write((tx) => tx.insertInto('videoTag').values(tagged).execute())
  for (const db of [database.db, database.slowQueryDb]) {
    const rows = await db.selectFrom('tag').select('name').where('accountId', '=', accountId).orderBy('name').execute()
    expect(rows.map(({ name }) => name)).toEqual(sorted)
    const below = await db.selectFrom('tag').select('name').where('accountId', '=', accountId).where('name', '<', 'a').execute()
    expect(below.map(({ name }) => name).sort()).toEqual(sorted.slice(0, 4))
  }
})

test('integers are returned as numbers, also beyond 32 bits', async () => {
  const id = await newAccount(database)
  for (const createdAtS of WHOLE_NUMBERS) {
    const row = await database.write((tx) =>
      tx.updateTable('account').set({ createdAtS }).where('id', '=', id).returning('createdAtS').executeTakeFirst(),
    )
    expect(row).toEqual({ createdAtS })
    for (const db of [database.db, database.slowQueryDb])
      expect(await db.selectFrom('account').select('createdAtS').where('id', '=', id).executeTakeFirst()).toEqual({
        createdAtS,
      })
  }
})

test('floating-point numbers are returned exactly', async () => {
  const id = await newVideo(database)
  const check = async (durationS: number) => {
    await database.write((tx) =>
      tx.updateTable('video').set({ durationS, aspectRatio: durationS }).where('id', '=', id).execute(),
    )
    const row = await database.db.selectFrom('video').select(['durationS', 'aspectRatio']).where('id', '=', id).executeTakeFirst()
    expect(row).toEqual({ durationS, aspectRatio: durationS })
  }
  for (const number of REAL_NUMBERS) await check(number)
  await fc.assert(fc.asyncProperty(fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 }), check), { numRuns: 50 })
})

test('bytes are returned as a Buffer, empty or with all values; absent values as null', async () => {
  const videoId = newId()
  const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  await database.write((tx) =>
    tx
      .insertInto('source')
      .values({
        videoId,
        file: '',
        sizeBytes: 2 ** 40,
        sha256: all,
        wrappedKey: null,
        iv: Buffer.alloc(0),
        macs: Buffer.alloc(100_000, 7),
      })
      .execute(),
  )
  for (const db of [database.db, database.slowQueryDb]) {
    const row = await db.selectFrom('source').selectAll().where('videoId', '=', videoId).executeTakeFirstOrThrow()
    expect(row).toMatchObject({ file: '', sizeBytes: 2 ** 40, wrappedKey: null })
    for (const bytes of [row.sha256, row.iv, row.macs]) expect(Buffer.from(bytes).equals(bytes)).toBe(true)
    expect([row.sha256.equals(all), row.iv.length, row.macs.length]).toEqual([true, 0, 100_000])
    expect(await db.selectFrom('source').select('videoId').where('sha256', '=', all).execute()).toContainEqual({ videoId })
  }
})

test('counts and sums are numbers, a sum of nothing is null, and a condition is 1 or 0', async () => {
  const id = await newAccount(database)
  for (const db of [database.db, database.slowQueryDb]) {
    const { rows } = await sql`select count(*) as counted, sum(created_at_s) as added, max(created_at_s) as latest,
      count(*) = 1 as is_one, count(*) = 2 as is_two from account where id = ${id}`.execute(db)
    expect(rows).toEqual([{ counted: 1, added: 1, latest: 1, isOne: 1, isTwo: 0 }])
    const nothing = await sql`select sum(created_at_s) as added from account where id = 'unknown'`.execute(db)
    expect(nothing.rows).toEqual([{ added: null }])
  }
})

test('changes return how many rows they changed', async () => {
  const ids = [await newAccount(database), await newAccount(database)]
  const changed = (tx: Db, on: readonly string[]) =>
    tx.updateTable('account').set({ name: 'changed' }).where('id', 'in', on).executeTakeFirst()
  expect(await database.write((tx) => changed(tx, ids))).toEqual({ numUpdatedRows: 2n })
  expect(await database.write((tx) => changed(tx, ['unknown']))).toEqual({ numUpdatedRows: 0n })
  const { numAffectedRows } = await database.write((tx) => rename(tx, { id: ids[0] ?? '', name: 'again' }))
  expect(numAffectedRows).toBe(1n)
})

test('a prepared statement uses the values of its own call, with any number of concurrent calls', async () => {
  const id = await newAccount(database)
  await Promise.all(Array.from({ length: 50 }, (_, i) => database.write.append((tx) => rename(tx, { id, name: `name ${i}` }))))
  const names = await Promise.all(Array.from({ length: 50 }, () => nameOf(database.db, { id })))
  expect(new Set(names.flatMap(({ rows }) => rows.map(({ name }) => name)))).toEqual(new Set(['name 49']))
  const others = await Promise.all(['unknown', id].map((each) => nameOf(database.slowQueryDb, { id: each })))
  expect(others.map(({ rows }) => rows.length)).toEqual([0, 1])
})

async function kept(text: string): Promise<string | undefined> {
  const name = newId()
  await database.write((tx) => tx.insertInto('setting').values({ name, value: text }).execute())
  const row = await database.db
    .selectFrom('setting')
    .select('value')
    .where('name', '=', name)
    .where('value', '=', text)
    .executeTakeFirst()
  return row?.value
}

const rename = prepared<{ id: string; name: string }>()((db, value) =>
  db
    .updateTable('account')
    .set({ name: value('name') })
    .where('id', '=', value('id')),
)
const nameOf = prepared<{ id: string }>()((db, value) => db.selectFrom('account').select('name').where('id', '=', value('id')))

async function newAccount({ write }: Pick<Database, 'write'>): Promise<string> {
  const id = newId()
  await write((tx) => tx.insertInto('account').values({ id, name: 'a', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute())
  return id
}

async function newVideo(database: Pick<Database, 'write'>): Promise<string> {
  const id = newId()
  const accountId = await newAccount(database)
  const video = { id, accountId, title: 'a', description: '', fileName: '', uploadTimeS: 1, status: 'ready' }
  await database.write((tx) => tx.insertInto('video').values(video).execute())
  return id
}
