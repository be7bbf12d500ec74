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
  await pruneUsage({ write, nowS })
  const left = await db.selectFrom('videoUsage').select('day').orderBy('day').execute()
  expect(left.map(({ day }) => day)).toEqual(['2026-02-03', '2027-03-10'])
})
