import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { openDatabase } from './database.ts'

const LONG = sql<{ counted: number }>`
  with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 3000000) select count(*) as counted from counter`

test('while a slow read thinks, quick reads and writes go on', async () => {
  const { db, slowDb, write } = await openDatabase()
  let isDone = false
  const slow = LONG.execute(slowDb).then(({ rows }) => {
    isDone = true
    return rows
  })
  let quick = 0
  for (; !isDone; quick++) {
    await write((tx) =>
      tx
        .insertInto('setting')
        .values({ name: `s${quick}`, value: 'x' })
        .execute(),
    )
    expect(await db.selectFrom('setting').selectAll().execute()).toHaveLength(quick + 1)
  }
  expect(quick).toBeGreaterThan(2)
  expect(await slow).toEqual([{ counted: 3_000_000 }])
})

test('a slow read sees what was committed before it, by our names, and cannot write', async () => {
  const { slowDb, write } = await openDatabase()
  await write((tx) =>
    tx.insertInto('account').values({ id: 'a', name: 'A', createdAtS: 7, mayUpload: 1, mayImport: 0 }).execute(),
  )
  expect(await slowDb.selectFrom('account').select(['createdAtS', 'mayUpload']).execute()).toEqual([
    { createdAtS: 7, mayUpload: 1 },
  ])
  await expect(slowDb.deleteFrom('account').execute()).rejects.toThrow()
  expect(await slowDb.selectFrom('account').select('id').execute()).toEqual([{ id: 'a' }])
})

test('more slow reads than can ever be answered in time are refused, and the others are answered', async () => {
  const { slowDb } = await openDatabase()
  const outcomes = await Promise.allSettled(Array.from({ length: 700 }, () => sql`select 1`.execute(slowDb)))
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(refused).toHaveLength(200)
  expect(refused[0]?.reason).toMatchObject({ kind: 'unavailable' })
  expect((await sql`select 1`.execute(slowDb)).rows).toHaveLength(1)
})
