import { expect, test } from 'vitest'
import { pruneStoredResponses } from '../../src/idempotency/idempotency.ts'
import { openOwnDatabase } from '../db/database.ts'

const DAY_S = 24 * 3600
const nowS = () => Date.parse('2027-03-10T12:00:00Z') / 1000

test('an answer kept for an Idempotency-Key is removed after 24 hours', async () => {
  const { db, write } = await openOwnDatabase()
  const answer = { accountId: 'ann', requestHash: Buffer.alloc(32), wrappedResponse: Buffer.alloc(64) }
  await write((tx) =>
    tx
      .insertInto('storedResponse')
      .values([
        { ...answer, idempotencyKey: 'yesterday', respondedAtS: nowS() - DAY_S },
        { ...answer, idempotencyKey: 'today', respondedAtS: nowS() - DAY_S + 1 },
      ])
      .execute(),
  )
  await pruneStoredResponses({ write, nowS })
  expect(await db.selectFrom('storedResponse').select('idempotencyKey').execute()).toEqual([{ idempotencyKey: 'today' }])
})

test('many kept answers are removed some at a time, so that other writes go between', async () => {
  const { db, write } = await openOwnDatabase()
  const answer = { accountId: 'ann', requestHash: Buffer.alloc(32), wrappedResponse: Buffer.alloc(64), respondedAtS: 1 }
  await write((tx) =>
    tx
      .insertInto('storedResponse')
      .values(Array.from({ length: 2_500 }, (_, i) => ({ ...answer, idempotencyKey: String(i) })))
      .execute(),
  )
  let commits = 0
  write.onCommit(() => commits++)
  await pruneStoredResponses({ write, nowS })
  expect(commits).toBeGreaterThan(2)
  expect(await db.selectFrom('storedResponse').select('idempotencyKey').execute()).toEqual([])
})
