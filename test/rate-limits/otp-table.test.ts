import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { prunePlayback } from '../../src/playback/prune.ts'
import { openBarePlayback } from '../playback/playback-deps.ts'
import { DATABASE } from '../postgres.ts'
import { rounds } from '../seeded-random.ts'

const DAY_S = 24 * 3600
const OTPS = rounds(5_000, 500_000)
const AT_ONCE = 500

const PAGES = {
  sqlite: sql<{ pages: number }>`select page_count as pages from pragma_page_count()`,
  postgres: sql<{ pages: number }>`select pg_relation_size('otp') / 8192 as pages`,
}

test('O12: OTPs that are never redeemed are deleted a week after they expire, and the table stops growing, however many come', async () => {
  const bare = await openBarePlayback()
  async function issueMany(): Promise<void> {
    for (let i = 0; i < OTPS; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, () => bare.newOtp(3600)))
  }
  const count = async () => (await bare.db.selectFrom('otp').select('hash').execute()).length
  const pages = async () => {
    const { rows } = await PAGES[DATABASE].execute(bare.db)
    return Number(rows[0]?.pages)
  }

  await issueMany()
  expect(await count()).toBe(OTPS)
  const pagesOfOnce = await pages()
  bare.passS(3600 + 7 * DAY_S)
  await prunePlayback(bare, 90)
  expect(await count()).toBe(OTPS) // who comes late still gets the reason
  bare.passS(1)
  await prunePlayback(bare, 90)
  expect(await count()).toBe(0)
  // What PostgreSQL does by itself now and then.
  if (DATABASE === 'postgres') await bare.write.outsideTransaction((db) => sql`vacuum otp`.execute(db))
  await issueMany()
  expect(await pages()).toBeLessThan(pagesOfOnce * 1.2)
})
