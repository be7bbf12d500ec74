import { sql } from 'kysely'
import { expect, test } from 'vitest'
import type { Db } from '../../../src/db/database.ts'
import { LostConnection, outcomeUnknown } from '../../../src/db/postgres/failures.ts'
import { logLevelFor } from '../../../src/errors.ts'
import { startPostgres } from '../../postgres.ts'
import { connectTo, openOwnPostgres } from './database.ts'

// `write` while others write to the same database, which may undo a group of ours: it is run again.

test('the calls of one turn are one transaction', async () => {
  const { write, db } = await openOwnPostgres()
  await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? write : write.append)((tx) => put(tx, `s${i}`, i))))
  const { rows } = await sql<{ transactions: number }>`select count(distinct xmin::text) as transactions from setting`.execute(db)
  expect(rows).toEqual([{ transactions: 1 }])
})

test('a group that another change rolled back runs again: nothing is lost or done twice', async () => {
  const { write, db, url } = await openOwnPostgres()
  const otherProgram = connectTo(url, SERIALIZABLE)
  await write((tx) => put(tx, 'counter', 0))
  let tries = 0
  const neighbours = [write((tx) => put(tx, 'before', 1)), write.append((tx) => put(tx, 'before too', 1))]
  const counted = write(async (tx) => {
    const read = await numberOf(tx, 'counter')
    if (tries++ < 2) await set(otherProgram, 'counter', 10 * tries)
    await set(tx, 'counter', read + 1)
    return read
  })
  neighbours.push(write((tx) => put(tx, 'after', 1)))
  expect(await counted).toBe(20)
  await Promise.all(neighbours)
  expect(tries).toBe(3)
  expect(await numberOf(db, 'counter')).toBe(21)
  expect(await allNames(db)).toEqual(['after', 'before', 'before too', 'counter'])
})

test('another transaction comes before or after a group, never in between', async () => {
  const { write, db, url } = await openOwnPostgres()
  const otherProgram = connectTo(url, SERIALIZABLE)
  let tries = 0
  // Each of the two writes only where it does not see the other's row: one of them must see it.
  const ours = write(async (tx) => {
    const isFirst = (await allNames(tx)).length === 0
    if (tries++ === 0) {
      await sql`begin`.execute(otherProgram)
      expect(await allNames(otherProgram)).toEqual([])
      await put(otherProgram, 'theirs', 1)
      await sql`commit`.execute(otherProgram)
    }
    if (isFirst) await put(tx, 'ours', 1)
  })
  await ours
  expect(tries).toBe(2)
  expect(await allNames(db)).toEqual(['theirs'])
})

test('two programs that keep changing the same number lose none of the changes that were confirmed', async () => {
  const { write, db, url } = await openOwnPostgres()
  const otherProgram = connectTo(url, SERIALIZABLE)
  await write((tx) => put(tx, 'counter', 0))
  let theirs = 0
  let isDone = false
  const others = (async () => {
    while (!isDone) theirs += Number(await addOne(otherProgram).then(() => 1, isConflict))
  })()
  let ours = 0
  const addOneOfOurs = async () => {
    await write(async (tx) => set(tx, 'counter', (await numberOf(tx, 'counter')) + 1))
    ours++
  }
  const refusals: unknown[] = []
  for (let round = 0; round < 20 || Math.min(ours, theirs) === 0; round++)
    await Promise.all(Array.from({ length: 10 }, () => addOneOfOurs().catch((error) => refusals.push(error))))
  isDone = true
  await others
  for (const refusal of refusals) expect(refusal).toMatchObject({ kind: 'unavailable' }) // too many tries
  expect(await numberOf(db, 'counter')).toBe(ours + theirs)
})

test('a group that is rolled back again and again is rejected after some attempts, and nothing of it is saved', async () => {
  const { write, db, url } = await openOwnPostgres()
  const otherProgram = connectTo(url, SERIALIZABLE)
  await write((tx) => put(tx, 'counter', 0))
  let isContended = true
  const refused = write(async (tx) => {
    await numberOf(tx, 'counter')
    await put(tx, 'ours', 1)
    if (isContended) await addOne(otherProgram)
    await set(tx, 'counter', -1)
  })
  await expect(refused).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('nothing was changed') })
  expect(await allNames(db)).toEqual(['counter'])
  isContended = false
  await write((tx) => set(tx, 'counter', -1))
  expect(await numberOf(db, 'counter')).toBe(-1)
})

test('a deadlock with another program ends: the group is run again after the other one', async () => {
  // The session that detects the deadlock is cancelled: with this timeout the other program never does.
  const cluster = await startPostgres({ settings: { deadlock_timeout: '50ms' } })
  const { write, db, url } = await openOwnPostgres(cluster)
  const asAdmin = new URL(url)
  asAdmin.username = 'postgres'
  asAdmin.password = ''
  asAdmin.host = ''
  asAdmin.searchParams.set('host', cluster.admin.host)
  asAdmin.searchParams.set('port', String(cluster.admin.port))
  const otherProgram = connectTo(asAdmin.href, { deadlock_timeout: '1h' })
  await write(async (tx) => {
    await put(tx, 'a', 0)
    await put(tx, 'b', 0)
  })

  let tries = 0
  const weHoldA = Promise.withResolvers<void>()
  const theirs = otherProgram.transaction().execute(async (tx) => {
    await set(tx, 'b', 1)
    await weHoldA.promise
    await set(tx, 'a', 1)
  })
  const ours = write(async (tx) => {
    if (tries === 0) await set(tx, 'a', 2)
    if (tries++ === 0) {
      weHoldA.resolve()
      await expect.poll(() => countWaiting(db)).toBe(1)
    }
    await set(tx, 'b', 2)
    await set(tx, 'a', 2)
  })
  await Promise.all([theirs, ours])
  expect(tries).toBeGreaterThan(1) // once more, where the other one had not ended yet
  expect([await numberOf(db, 'a'), await numberOf(db, 'b')]).toEqual([2, 2])
})

const SERIALIZABLE = { default_transaction_isolation: 'serializable' }

const put = async (tx: Db, name: string, value: number) =>
  void (await tx
    .insertInto('setting')
    .values({ name, value: `${value}` })
    .execute())
const set = async (tx: Db, name: string, value: number) =>
  void (await tx
    .updateTable('setting')
    .set({ value: `${value}` })
    .where('name', '=', name)
    .execute())
const addOne = async (tx: Db) =>
  void (await sql`update setting set value = (value::int + 1)::text where name = 'counter'`.execute(tx))
const numberOf = async (db: Db, name: string) =>
  Number((await db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirstOrThrow()).value)
const allNames = async (db: Db) =>
  (await db.selectFrom('setting').select('name').orderBy('name').execute()).map(({ name }) => name)

/** Transactions that wait for another's row. */
async function countWaiting(db: Db): Promise<number> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*) as waiting from pg_locks where not granted and locktype = 'transactionid'`.execute(db)
  return rows[0]?.waiting ?? 0
}

/** 0 for a change that was undone because of ours. */
function isConflict(error: unknown): number {
  if (error instanceof Error && 'code' in error && error.code === '40001') return 0
  throw error
}

test('F-10: a commit whose connection was lost is logged as the outage that it is; one that met a full disk is not', () => {
  const lost = outcomeUnknown(new LostConnection('the connection to the database was lost'))
  expect([logLevelFor(lost, 'error'), logLevelFor(outcomeUnknown(new Error('a full disk')), 'error')]).toEqual(['debug', 'error'])
})
