import { expect, test } from 'vitest'
import { sweepAnswers } from '../../src/accounts/idempotency.ts'
import { sweepUsage } from '../../src/usage/usage.ts'
import { openDatabase } from '../db/database.ts'

const DAY_S = 24 * 3600
const nowS = () => Date.parse('2027-03-10T12:00:00Z') / 1000

test('the usage of thirteen months is kept, and older days are removed', async () => {
  const { db, write } = await openDatabase()
  const days = ['2025-01-01', '2026-02-02', '2026-02-03', '2027-03-10']
  const usage = { accountId: 'ann', videoId: 'film', viewerLabel: '', sentBytes: 1, viewCount: 0 }
  await write(async (tx) => {
    await tx
      .insertInto('videoUsage')
      .values(days.map((day) => ({ ...usage, day })))
      .execute()
    const many = Array.from({ length: 5_000 }, (_, i) => ({ ...usage, day: '2025-01-01', viewerLabel: String(i) }))
    for (let first = 0; first < many.length; first += 1_000)
      await tx
        .insertInto('videoUsage')
        .values(many.slice(first, first + 1_000))
        .execute()
  })
  await sweepUsage({ write, nowS })
  const left = await db.selectFrom('videoUsage').select('day').orderBy('day').execute()
  expect(left.map(({ day }) => day)).toEqual(['2026-02-03', '2027-03-10'])
})

test('an answer kept for an Idempotency-Key is removed after 24 hours', async () => {
  const { db, write } = await openDatabase()
  const answer = { accountId: 'ann', requestHash: Buffer.alloc(32), wrappedAnswer: Buffer.alloc(64) }
  await write((tx) =>
    tx
      .insertInto('keptAnswer')
      .values([
        { ...answer, idempotencyKey: 'yesterday', answeredAtS: nowS() - DAY_S },
        { ...answer, idempotencyKey: 'today', answeredAtS: nowS() - DAY_S + 1 },
      ])
      .execute(),
  )
  await sweepAnswers({ write, nowS })
  expect(await db.selectFrom('keptAnswer').select('idempotencyKey').execute()).toEqual([{ idempotencyKey: 'today' }])
})

test('many kept answers are removed some at a time, so that other writes go between', async () => {
  const { db, write } = await openDatabase()
  const answer = { accountId: 'ann', requestHash: Buffer.alloc(32), wrappedAnswer: Buffer.alloc(64), answeredAtS: 1 }
  await write((tx) =>
    tx
      .insertInto('keptAnswer')
      .values(Array.from({ length: 2_500 }, (_, i) => ({ ...answer, idempotencyKey: String(i) })))
      .execute(),
  )
  const before = write.commits()
  await sweepAnswers({ write, nowS })
  expect(write.commits() - before).toBeGreaterThan(2)
  expect(await db.selectFrom('keptAnswer').select('idempotencyKey').execute()).toEqual([])
})
