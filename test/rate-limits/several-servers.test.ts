import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { openBatches } from '../../src/db/postgres/batches.ts'
import { toPublicError } from '../../src/db/postgres/failures.ts'
import { openRateLimits } from '../../src/rate-limits/rate-limits.ts'
import { createSharedCounts } from '../../src/rate-limits/shared-counts.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { openOwnPostgres } from '../db/postgres/database.ts'
import { newChance, rounds } from '../seeded-random.ts'

// Several servers that count together, on a clock that the test moves.

const LIMIT = 100
const NUMBERS = (() => {
  const ofOwners = { ip: LIMIT, key: LIMIT, account: LIMIT }
  const ofAddresses = { ip: LIMIT }
  return {
    ...{ reads: ofOwners, writes: ofOwners, otp: ofOwners, uploads: ofOwners },
    ...{ redeem: ofAddresses, playback: ofAddresses, unauthenticated: ofAddresses, signIns: ofAddresses },
    ...{ pages: ofAddresses, posters: ofAddresses, docs: ofAddresses, health: ofAddresses },
  }
})()

async function openServers(count: number) {
  const database = await openOwnPostgres()
  const clock = { nowS: 1_800_000_000 }
  const nowS = () => clock.nowS
  async function openServer(server: string) {
    const batches = openBatches(database.url, toPublicError)
    onTestFinished(() => batches.close())
    const counts = createSharedCounts({ batches, server, nowS })
    const signals = createSignals(database.write)
    const limits = await openRateLimits({ ...database, signals, nowS, counts, log: pino({ level: 'silent' }) }, NUMBERS)
    return { limits, counts, signals }
  }
  const servers = await Promise.all(Array.from({ length: count }, (_, n) => openServer(`server ${n}`)))
  return {
    ...{ database, clock, servers, openServer },
    exchange: () => Promise.all(servers.map(({ counts }) => counts.exchange())),
  }
}

test('R14: servers together exceed a limit by what arrives between two exchanges, however it is spread', async () => {
  const { servers, clock, exchange } = await openServers(3)
  const chance = newChance('spread of calls')
  const BETWEEN = 20
  for (let minute = 0; minute < rounds(2, 20); minute++) {
    let passed = 0
    for (let n = 0; n < 200; n++) {
      const server = servers[Math.floor(chance.next() * servers.length)]
      if (server && !server.limits.reads.ip.take('192.0.2.1').refused) passed++
      if (n % BETWEEN === BETWEEN - 1) await exchange()
      if (n % 50 === 49) clock.nowS++
    }
    expect(passed).toBeGreaterThanOrEqual(LIMIT)
    expect(passed).toBeLessThanOrEqual(LIMIT + BETWEEN)
    // Refused by all: the excess of one does not open another.
    expect(servers.map(({ limits }) => limits.reads.ip.isExhausted('192.0.2.1'))).toEqual([true, true, true])
    clock.nowS += 61
    expect(servers.map(({ limits }) => limits.reads.ip.isExhausted('192.0.2.1'))).toEqual([false, false, false])
  }
})

test('R14: a server that starts knows what the others have counted, and what it took back does not count', async () => {
  const { servers, exchange, openServer } = await openServers(2)
  const [first, second] = servers
  for (let n = 0; n < LIMIT - 1; n++) first?.limits.pages.take('192.0.2.2')
  second?.limits.pages.take('192.0.2.2')
  second?.limits.pages.refund('192.0.2.2')
  await exchange()
  await exchange()
  const late = await openServer('late')
  await late.counts.exchange()
  expect(late.limits.pages.take('192.0.2.2')).toMatchObject({ remaining: 0 })
  expect(late.limits.pages.take('192.0.2.2').refused).toBeDefined()
})

test('R14: servers count together again after a crash has emptied the rows', async () => {
  const { servers, exchange, database } = await openServers(2)
  const [first, second] = servers
  const take = (server: typeof first, times: number) => {
    for (let n = 0; n < times; n++) server?.limits.docs.take('192.0.2.3')
  }
  take(first, 60)
  await exchange()
  await exchange()
  await database.write.outsideTransaction((db) => sql`truncate limit_count`.execute(db))
  take(first, 39)
  await exchange()
  await exchange()
  expect(second?.limits.docs.isExhausted('192.0.2.3')).toBe(false)
  take(first, 1)
  await exchange()
  await exchange()
  expect(second?.limits.docs.isExhausted('192.0.2.3')).toBe(true)
})

test('R30: a flood at two servers is one strike and one ban, which the third enforces once it has read the rows', async () => {
  const { servers, database } = await openServers(3)
  const flood = ({ limits }: (typeof servers)[number]) => {
    for (let n = 0; n < 5 * LIMIT; n++) limits.reads.ip.take('192.0.2.4')
    return limits.reads.ip.take('192.0.2.4').refused?.settled
  }
  const [first, second, third] = servers
  if (!first || !second || !third) throw new Error('servers are missing')
  flood(first)
  flood(second)
  for (let n = 0; n < 2; n++) await database.write(async () => undefined)
  expect(await database.db.selectFrom('strike').select('subject').execute()).toEqual([{ subject: '192.0.2.4' }])
  const bans = await database.db.selectFrom('ban').select(['beganAtS', 'endsAtS']).execute()
  expect(bans.map(({ beganAtS, endsAtS }) => endsAtS - beganAtS)).toEqual([1800])
  expect(third.limits.reads.ip.isExhausted('192.0.2.4')).toBe(false)
  await third.signals.send('bans-changed', undefined)
  expect(third.limits.reads.ip.isExhausted('192.0.2.4')).toBe(true)
  expect(third.limits.reads.ip.take('192.0.2.4').refused?.bannedUntilS).toBeDefined()
})
