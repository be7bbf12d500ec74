import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import type { Db } from '../../../src/db/database.ts'
import { openBatches } from '../../../src/db/postgres/batches.ts'
import { toPublicError } from '../../../src/db/postgres/failures.ts'
import { connectTo, openOwnPostgres } from './database.ts'

/** A pool, and what ends the session of a transaction as PostgreSQL does when no statement comes for too long. */
async function openPool() {
  const { url } = await openOwnPostgres()
  const batches = openBatches(url, toPublicError)
  onTestFinished(() => batches.close())
  const other = connectTo(url)
  await sql`create table note (n bigint)`.execute(other)
  async function endSession(tx: Db): Promise<void> {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
    await sql`select pg_terminate_backend(${rows[0]?.pid}, 5000)`.execute(other)
  }
  const notes = async () => (await sql<{ n: number }>`select n from note`.execute(other)).rows.map(({ n }) => n)
  return { batches, other, endSession, notes }
}

test('F-309: a transaction whose session PostgreSQL ends is run again, with nothing of the attempts before', async () => {
  const { batches, endSession, notes } = await openPool()
  let attempts = 0
  const result = await batches.transaction(async (tx) => {
    attempts++
    await sql`insert into note values (${attempts})`.execute(tx)
    if (attempts < 4) await endSession(tx)
    return { result: attempts, isDurable: false }
  })
  expect(result).toBe(4)
  expect(await notes()).toEqual([4])
})

test('F-300: a commit that must survive has reached the log on the disk when it is answered, and no other waits for that', async () => {
  const { batches, other, notes } = await openPool()
  const settings: string[] = []
  const add = (n: number, isDurable: boolean) =>
    batches.transaction(async (tx) => {
      await sql`insert into note values (${n})`.execute(tx)
      const { rows } = await sql<{ at: string; commits: string }>`
        select pg_current_wal_insert_lsn()::text as at, current_setting('synchronous_commit') as commits`.execute(tx)
      settings.push(rows[0]?.commits ?? '')
      return { result: rows[0]?.at, isDurable }
    })
  await add(1, false)
  const atEnd = await add(2, true)
  const { rows } = await sql<{ reached: number }>`select pg_current_wal_flush_lsn() >= ${atEnd}::pg_lsn as reached`.execute(other)
  expect(rows).toEqual([{ reached: 1 }])
  await add(3, false)
  expect(settings).toEqual(['off', 'off', 'off'])
  expect(await notes()).toEqual([1, 2, 3])
})
