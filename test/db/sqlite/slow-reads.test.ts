import { mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { openSlowReads } from '../../../src/db/sqlite/slow-reads.ts'
import { openOwnSqlite } from './database.ts'

const LONG = sql<{ counted: number }>`
  with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 3000000) select count(*) as counted from counter`

test('while a slow read runs, quick reads and writes continue', async () => {
  const { db, slowQueryDb, write } = await openOwnSqlite()
  let isDone = false
  const slow = LONG.execute(slowQueryDb).then(({ rows }) => {
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
  const { slowQueryDb, write } = await openOwnSqlite()
  await write((tx) =>
    tx.insertInto('account').values({ id: 'a', name: 'A', createdAtS: 7, mayUpload: 1, mayImport: 0 }).execute(),
  )
  expect(await slowQueryDb.selectFrom('account').select(['createdAtS', 'mayUpload']).execute()).toEqual([
    { createdAtS: 7, mayUpload: 1 },
  ])
  await expect(slowQueryDb.deleteFrom('account').execute()).rejects.toThrow()
  expect(await slowQueryDb.selectFrom('account').select('id').execute()).toEqual([{ id: 'a' }])
})

test('slow reads beyond the limit are rejected, and the others succeed', async () => {
  const { slowQueryDb } = await openOwnSqlite()
  const outcomes = await Promise.allSettled(Array.from({ length: 700 }, () => sql`select 1`.execute(slowQueryDb)))
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(refused).toHaveLength(200)
  expect(refused[0]?.reason).toMatchObject({ kind: 'unavailable' })
  expect((await sql`select 1`.execute(slowQueryDb)).rows).toHaveLength(1)
})

test('a failed thread of slow reads is replaced by another, which ends with the database', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-slow-reads-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'reelgate.db')
  const slowQueryDb = openSlowReads(path)
  await expect(sql`select 1`.execute(slowQueryDb)).rejects.toThrow('unable to open')
  await writeFile(path, '')
  expect((await sql`select 1`.execute(slowQueryDb)).rows).toHaveLength(1)
  expect(await handlesOn(path)).toBe(1)
  await slowQueryDb.destroy()
  expect(await handlesOn(path)).toBe(0)
})

/** How many handles this process has for a file. */
async function handlesOn(path: string): Promise<number> {
  const handles = await readdir('/proc/self/fd')
  const files = await Promise.all(handles.map((handle) => readlink(`/proc/self/fd/${handle}`).catch(() => '')))
  return files.filter((file) => file === path).length
}
