import { expect, test } from 'vitest'
import { pruneUsage } from '../../src/usage/usage.ts'
import { openOwnDatabase } from '../db/database.ts'

const nowS = () => Date.parse('2027-03-10T12:00:00Z') / 1000

test('the usage of thirteen months is kept, and older days are removed', async () => {
  const { db, write } = await openOwnDatabase()
  const days = ['2025-01-01', '2026-02-02', '2026-02-03', '2027-03-10']
  const usage = { accountId: 'ann', videoId: 'video', userId: '', sentBytes: 1, viewCount: 0 }
  await write(async (tx) => {
    await tx
      .insertInto('videoUsage')
      .values(days.map((day) => ({ ...usage, day })))
      .execute()
    const many = Array.from({ length: 5_000 }, (_, i) => ({ ...usage, day: '2025-01-01', userId: String(i) }))
    for (let first = 0; first < many.length; first += 1_000)
      await tx
        .insertInto('videoUsage')
        .values(many.slice(first, first + 1_000))
        .execute()
  })
  await pruneUsage({ db, write, nowS }, 90)
  const left = await db.selectFrom('videoUsage').select('day').orderBy('day').execute()
  expect(left.map(({ day }) => day)).toEqual(['2026-02-03', '2027-03-10'])
})

test('viewers are named for as many days as the owner says; the sums stay', async () => {
  const { db, write } = await openOwnDatabase()
  const of = (day: string, userId: string, sentBytes: number) => ({
    ...{ accountId: 'ann', videoId: 'video', day, userId, sentBytes, viewCount: 1 },
  })
  const old = [of('2027-01-01', '', 1), ...Array.from({ length: 600 }, (_, n) => of('2027-01-01', `viewer ${n}`, 2))]
  const kept = [of('2027-03-03', 'ben', 4), of('2027-03-10', 'ben', 8)]
  await write((tx) =>
    tx
      .insertInto('videoUsage')
      .values([...old, of('2027-03-02', 'ben', 3), ...kept])
      .execute(),
  )
  for (const _ of [1, 2]) {
    await pruneUsage({ db, write, nowS }, 7)
    const rows = await db.selectFrom('videoUsage').select(['day', 'userId', 'sentBytes', 'viewCount']).orderBy('day').execute()
    expect(rows).toEqual([
      { day: '2027-01-01', userId: '', sentBytes: 1201, viewCount: 601 },
      { day: '2027-03-02', userId: '', sentBytes: 3, viewCount: 1 },
      ...kept.map(({ day, userId, sentBytes }) => ({ day, userId, sentBytes, viewCount: 1 })),
    ])
  }
})
