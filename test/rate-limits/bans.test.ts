import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { Db } from '../../src/db/database.ts'
import type { BanRow } from '../../src/db/tables.ts'
import { CommitOutcomeUnknown, type Write } from '../../src/db/write.ts'
import { banDurationS, liftAccountBan, liftBan, listBans, pruneBans } from '../../src/rate-limits/bans.ts'
import { type LimitResult, openRateLimits, type RateLimits } from '../../src/rate-limits/rate-limits.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { openOwnDatabase } from '../db/database.ts'
import { rounds } from '../seeded-random.ts'

// Strikes and bans over hours and days, on a database of their own and a clock that the test moves.

const MINUTE_S = 60
const DAY_S = 24 * 3600
const LIMIT = 10
const FLOOD = 5 * LIMIT

async function openBareLimits() {
  const database = await openOwnDatabase()
  const clock = { nowS: 1_800_000_000 }
  const deps = {
    ...database,
    signals: createSignals(database.write),
    nowS: () => clock.nowS,
    banEndsAtS: (ban: BanRow) => limits.banEndsAtS(ban),
    log: pino({ level: 'silent' }),
  }
  const ofOwners = { ip: LIMIT, key: LIMIT, account: LIMIT }
  const numbers = {
    reads: ofOwners,
    writes: ofOwners,
    otp: ofOwners,
    uploads: ofOwners,
    redeem: { ip: LIMIT },
    playback: { ip: LIMIT },
    unauthenticated: { ip: LIMIT },
    signIns: { ip: LIMIT },
    pages: { ip: LIMIT },
    posters: { ip: LIMIT },
    docs: { ip: LIMIT },
    health: { ip: LIMIT },
  }
  let limits: RateLimits = await openRateLimits(deps, numbers)
  const take = (subject: string) => limits.reads.ip.take(subject)
  return {
    deps,
    clock,
    take,
    limits: () => limits,
    /** Asks so often concurrently. @returns how long it must wait after the last call, once what that brought about is written */
    async ask(subject: string, times: number): Promise<number> {
      let last = take(subject)
      for (let i = 1; i < times; i++) last = take(subject)
      // Behind whatever that has to write: the ban, then how much longer it has become.
      for (let i = 0; i < 2; i++) await database.write(async () => undefined)
      return last.refused?.retryAfterS() ?? 0
    },
    async sweep() {
      await pruneBans(deps)
      await deps.signals.send('bans-changed', undefined)
    },
    async restart() {
      limits = await openRateLimits(deps, numbers)
    },
  }
}

const isBan = ({ refused }: LimitResult) => refused?.bannedUntilS !== undefined

test('R01: up to the limit all pass, then none to the window’s end, then they pass again', async () => {
  const { take, clock } = await openBareLimits()
  for (let i = 0; i < LIMIT; i++) expect(take('192.0.2.1').refused).toBeUndefined()
  clock.nowS += 20
  expect(isBan(take('192.0.2.1'))).toBe(false)
  expect(take('192.0.2.1').refused?.retryAfterS()).toBe(40)
  expect(take('192.0.2.2').refused).toBeUndefined()
  clock.nowS += 39
  expect(take('192.0.2.1').refused?.retryAfterS()).toBe(1)
  clock.nowS += 1
  expect(take('192.0.2.1').refused).toBeUndefined()
})

test.each([
  { times: 5, minutes: 30 },
  { times: 7, minutes: 37.5 },
  { times: 9, minutes: 45 },
  { times: 13, minutes: 60 },
  { times: 43, minutes: 60 },
])('R01: asking $times times as often as one may is a ban of $minutes minutes', async ({ times, minutes }) => {
  const { ask, restart } = await openBareLimits()
  expect(await ask('192.0.2.1', LIMIT * times)).toBe(minutes * MINUTE_S)
  await restart()
  expect(await ask('192.0.2.1', 1)).toBe(minutes * MINUTE_S)
})

describe('R18: exceeding a limit is no flood', () => {
  test('less than twice the limit in a window causes no ban, however long it continues', async () => {
    const { ask, clock, deps } = await openBareLimits()
    for (let i = 0; i < 10; i++) {
      expect(await ask('192.0.2.1', 2 * LIMIT - 1)).toBeLessThanOrEqual(MINUTE_S)
      clock.nowS += MINUTE_S
    }
    expect(await listBans(deps)).toEqual([])
  })

  test('nor does almost five times the limit in one window, or in two of ten minutes', async () => {
    const { ask, clock, deps } = await openBareLimits()
    for (let i = 0; i < 4; i++) {
      expect(await ask('192.0.2.1', 5 * LIMIT - 1)).toBeLessThanOrEqual(MINUTE_S)
      clock.nowS += 5 * MINUTE_S
    }
    expect(await listBans(deps)).toEqual([])
  })

  test('twice the limit in each of three windows within ten minutes is a strike', async () => {
    const { ask, clock } = await openBareLimits()
    for (let i = 0; i < 2; i++) {
      expect(await ask('192.0.2.1', 2 * LIMIT)).toBeLessThanOrEqual(MINUTE_S)
      clock.nowS += 4 * MINUTE_S
    }
    expect(await ask('192.0.2.1', 2 * LIMIT - 1)).toBeLessThanOrEqual(MINUTE_S)
    expect(await ask('192.0.2.1', 1)).toBe(1800)
  })

  test('clients that obey Retry-After are never banned, however many they are and however long they run', () => {
    fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: LIMIT / 2 }), fc.integer({ min: 1, max: 3 }), async (workers, callsAtOnce) => {
        const { take, clock } = await openBareLimits()
        const startS = clock.nowS
        const freeAtS = Array<number>(workers).fill(startS)
        let passed = 0
        for (; clock.nowS < startS + 20 * MINUTE_S; clock.nowS += 1) {
          for (const [worker, atS] of freeAtS.entries()) {
            if (atS > clock.nowS) continue
            for (let i = 0; i < callsAtOnce; i++) {
              const taken = take('192.0.2.1')
              expect(isBan(taken)).toBe(false)
              if (!taken.refused) passed += 1
              freeAtS[worker] = clock.nowS + (taken.refused?.retryAfterS() ?? 1)
              if (taken.refused) break
            }
          }
        }
        expect(passed).toBeGreaterThan(0.6 * 20 * LIMIT) // and they come through
      }),
      { numRuns: rounds(5, 100) },
    )
  })
})

test('asking on during a ban does not make it longer once the window in which it began is over', async () => {
  const { ask, clock } = await openBareLimits()
  expect(await ask('192.0.2.1', FLOOD)).toBe(1800)
  clock.nowS += MINUTE_S
  expect(await ask('192.0.2.1', 100 * LIMIT)).toBe(1740)
})

test('R10: each strike of the last 7 days makes the next ban half an hour longer, over restarts, up to a day', async () => {
  const { ask, clock, restart } = await openBareLimits()
  for (let strike = 0; strike < 6; strike++) {
    const bannedS = await ask('192.0.2.1', FLOOD)
    expect(bannedS).toBe(Math.min(DAY_S, 1800 + strike * 1800))
    if (strike === 2) await restart()
    clock.nowS += bannedS
  }
  expect(banDurationS(5, 100)).toBe(DAY_S)
  expect(banDurationS(1000, 3)).toBe(3600 + 3 * 1800)
})

test('R10: a strike is forgotten after 7 days', async () => {
  const { ask, clock, deps, sweep } = await openBareLimits()
  await ask('192.0.2.1', FLOOD)
  clock.nowS += 6 * DAY_S
  expect(await ask('192.0.2.1', FLOOD)).toBe(3600)
  clock.nowS += DAY_S // the first is forgotten, the second not
  expect(await ask('192.0.2.1', FLOOD)).toBe(3600)
  await sweep()
  expect(await deps.db.selectFrom('strike').selectAll().execute()).toHaveLength(2)
  clock.nowS += 7 * DAY_S
  await sweep()
  expect(await deps.db.selectFrom('strike').selectAll().execute()).toEqual([])
  expect(await deps.db.selectFrom('ban').selectAll().execute()).toEqual([])
})

/** All calls and strikes of one subject, kept for ever and counted again each time, as the contract's section 9 says it. */
function createReckoning() {
  const calls: { atS: number; passed: boolean }[] = []
  const strikesAtS: number[] = []
  let excessesAtS: number[] = []
  let ban = { beganAtS: 0, endsAtS: 0, calls: 0, windowEndsAtS: 0, earlier: 0 }
  const passedWithin = (atS: number) => calls.filter((call) => call.passed && call.atS > atS - MINUTE_S).length

  function endOfBan(): number {
    const severityS = Math.min(1800, 225 * Math.max(0, ban.calls / LIMIT - 5))
    return ban.beganAtS + Math.min(DAY_S, Math.ceil(1800 + severityS + 1800 * ban.earlier))
  }

  /** Windows of the last ten minutes that do not overlap, each with twice the limit. */
  function countExcesses(nowS: number): number {
    excessesAtS = excessesAtS.filter((atS) => atS > nowS - 600)
    if ((excessesAtS.at(-1) ?? 0) <= nowS - MINUTE_S) excessesAtS.push(nowS)
    return excessesAtS.length
  }

  /** @returns how long the caller must wait; 0: the call passed */
  return (nowS: number): number => {
    if (nowS < ban.endsAtS) {
      if (nowS < ban.windowEndsAtS) ban.calls += 1
      ban.endsAtS = Math.max(ban.endsAtS, endOfBan())
      return ban.endsAtS - nowS
    }
    const passed = passedWithin(nowS) < LIMIT
    calls.push({ atS: nowS, passed })
    const window = calls.filter(({ atS }) => atS > nowS - MINUTE_S)
    const excesses = window.length < 2 * LIMIT ? 0 : countExcesses(nowS)
    if (passed) return 0
    if (window.length < FLOOD && excesses < 3) {
      const refusedBefore = window.filter((call) => !call.passed).length - 1
      let waitS = 1
      while (waitS < MINUTE_S && passedWithin(nowS + waitS) + refusedBefore >= LIMIT) waitS += 1
      return waitS
    }
    const earlier = strikesAtS.filter((atS) => atS > nowS - 7 * DAY_S).length
    strikesAtS.push(nowS)
    const windowEndsAtS = Math.min(...window.map(({ atS }) => atS)) + MINUTE_S
    ban = { beganAtS: nowS, endsAtS: 0, calls: window.length, windowEndsAtS, earlier }
    ban.endsAtS = endOfBan()
    return ban.endsAtS - nowS
  }
}

test('R01, R10, R17: of any calls over weeks, each waits as long as by counting all calls before it', async () => {
  const { ask, clock } = await openBareLimits()
  const afterS = fc.oneof(
    fc.constant(0),
    fc.integer({ min: 1, max: 70 }),
    fc.integer({ min: 1700, max: 8000 }),
    fc.integer({ min: DAY_S, max: 8 * DAY_S }),
  )
  const burst = fc.record({ afterS, subject: fc.constantFrom('a', 'b'), times: fc.integer({ min: 1, max: 9 * LIMIT }) })
  let runs = 0
  await fc.assert(
    fc.asyncProperty(fc.array(burst, { minLength: 1, maxLength: 14 }), async (bursts) => {
      const run = runs++
      const reckonings = { a: createReckoning(), b: createReckoning() }
      for (const { afterS, subject, times } of bursts) {
        clock.nowS += afterS
        const asked = ask(`${subject} of ${run}`, times)
        let waitS = 0
        for (let i = 0; i < times; i++) waitS = reckonings[subject](clock.nowS)
        expect(await asked).toBe(waitS)
      }
    }),
    { numRuns: rounds(30, 2_000) },
  )
})

test('R13: hundreds of thousands of addresses take bounded memory, and lift no ban', async () => {
  const { ask, take } = await openBareLimits()
  const before = heapBytes()
  await ask('192.0.2.1', FLOOD)
  for (let i = 0; i < rounds(400_000, 1_000_000); i++)
    take(`2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::/64`)
  expect(heapBytes() - before).toBeLessThan(32 * 2 ** 20)
  expect(isBan(take('192.0.2.1'))).toBe(true)
})

test('R13: expired bans leave memory by themselves, without another request; others stay', async () => {
  const { ask, clock, deps, take, sweep, restart } = await openBareLimits()
  const before = heapBytes()
  await deps.write((tx) =>
    sql`insert into ban (scope, subject, budget, began_at_s, ends_at_s)
      with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 50000)
      select 'ip', '2001:db8::' || n || '/64', 'reads', ${clock.nowS}, ${clock.nowS + 1800} from counter`.execute(tx),
  )
  await restart()
  clock.nowS += 1799
  await ask('192.0.2.1', FLOOD)
  await sweep()
  const keptBytes = heapBytes() - before
  expect(keptBytes).toBeGreaterThan(5 * 2 ** 20)
  expect(isBan(take('2001:db8::7/64'))).toBe(true)
  clock.nowS += 1
  await sweep()
  expect(heapBytes() - before).toBeLessThan(keptBytes / 3)
  expect(take('2001:db8::7/64').refused).toBeUndefined()
  expect(isBan(take('192.0.2.1'))).toBe(true)
})

test('F-140: rows that are read again lift no ban that is not written yet', async () => {
  const { ask, deps, take } = await openBareLimits()
  for (let i = 0; i < FLOOD; i++) take('192.0.2.1') // its row is being written
  await deps.signals.send('bans-changed', undefined)
  expect(isBan(take('192.0.2.1'))).toBe(true)
  await ask('192.0.2.1', 1)
  await deps.signals.send('bans-changed', undefined)
  expect(isBan(take('192.0.2.1'))).toBe(true)
})

/** What is on the heap once all garbage has been taken away. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  collect()
  return process.memoryUsage().heapUsed
}

describe('R18: a ban covers the class that was flooded, and no other', () => {
  test.each(['reads', 'writes', 'otp', 'uploads'] as const)('%s of an address, a key and an account', async (flooded) => {
    const { limits } = await openBareLimits()
    for (const scope of ['ip', 'key', 'account'] as const) {
      for (let i = 0; i < FLOOD; i++) limits()[flooded][scope].take('subject')
      for (const budget of ['reads', 'writes', 'otp', 'uploads'] as const)
        expect(isBan(limits()[budget][scope].take('subject'))).toBe(budget === flooded)
    }
  })

  test('R15: what an address does as a viewer, with forms or without a key bans it from that alone', async () => {
    const { limits } = await openBareLimits()
    const { redeem, playback, forms, unauthenticated, reads } = limits()
    const classes = { redeem, playback, forms, unauthenticated, reads: reads.ip }
    for (const [index, [flooded, limiter]] of Object.entries(classes).entries()) {
      const address = `192.0.2.${index}`
      for (let i = 0; i < FLOOD; i++) limiter.take(address)
      const banned = Object.entries(classes).filter(([, { take }]) => isBan(take(address)))
      expect(banned.map(([name]) => name)).toEqual([flooded])
    }
  })

  test('it is as long for one class as if the others had none, and a restart keeps them apart', async () => {
    const { limits, restart, deps } = await openBareLimits()
    for (let i = 0; i < FLOOD; i++) limits().reads.ip.take('192.0.2.1')
    for (let i = 0; i < FLOOD; i++) limits().otp.ip.take('192.0.2.1')
    await deps.write(async () => undefined)
    expect((await listBans(deps)).map(({ budget, secondsLeft }) => [budget, secondsLeft]).toSorted()).toEqual([
      ['otp', 1800],
      ['reads', 1800],
    ])
    await restart()
    expect(isBan(limits().reads.ip.take('192.0.2.1'))).toBe(true)
    expect(limits().writes.ip.take('192.0.2.1').refused).toBeUndefined()
  })
})

test('the list of bans names the same end as the refusal, however long the flood continues', async () => {
  const { ask, clock, deps } = await openBareLimits()
  for (const times of [FLOOD, 3, 14, 7]) {
    const waitS = await ask('192.0.2.1', times)
    const endsAt = new Date((clock.nowS + waitS) * 1000).toISOString()
    expect(await listBans(deps)).toEqual([{ scope: 'ip', subject: '192.0.2.1', budget: 'reads', secondsLeft: waitS, endsAt }])
  }
})

test('R05: of an IPv6 network, each /64 has the limit and the /48 sixteen times as much', async () => {
  const { take, limits } = await openBareLimits()
  const subject = (n: number) => `2001:db8:7:${n.toString(16)}::/64`
  for (let n = 0; n < 16; n++) for (let i = 0; i < LIMIT; i++) expect(take(subject(n)).refused).toBeUndefined()
  expect(take(subject(99)).refused).toMatchObject({ subject: '2001:db8:7::/48' })
  expect(take('2001:db8:8:0::/64').refused).toBeUndefined()
  expect(limits().reads.ip.isExhausted(subject(77))).toBe(true)
})

test('lifting a ban takes effect immediately and removes its strikes', async () => {
  const { ask, clock, deps, restart } = await openBareLimits()
  await ask('2001:db8:0:1::/64', FLOOD)
  await ask('192.0.2.1', FLOOD)
  expect(await listBans(deps)).toHaveLength(2)
  expect(await liftBan(deps, '2001:db8:0:1::77')).toEqual({ subject: '2001:db8:0:1::/64', lifted: true })
  expect(await ask('2001:db8:0:1::/64', 1)).toBe(0)
  await restart()
  expect(await ask('2001:db8:0:1::/64', 1)).toBe(0)
  expect(await listBans(deps)).toMatchObject([{ scope: 'ip', subject: '192.0.2.1', budget: 'reads', secondsLeft: 1800 }])
  clock.nowS += 3600
  expect(await ask('2001:db8:0:1::/64', FLOOD)).toBe(1800)
  await expect(liftBan(deps, '192.0.2.9')).rejects.toMatchObject({ kind: 'not-found' })
})

describe('F-10: of a ban for which the database did not confirm that it was lifted', () => {
  async function openBanned() {
    const { ask, deps, limits, restart } = await openBareLimits()
    await deps.write((tx) =>
      tx.insertInto('account').values({ id: 'ann', name: 'Ann', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute(),
    )
    const banned = () => {
      const { account, ip } = limits().reads
      return [account.take('ann'), ip.take('192.0.2.1')].map(isBan)
    }
    for (let i = 0; i < FLOOD; i++) limits().reads.account.take('ann')
    await ask('192.0.2.1', FLOOD)
    const lifting = (write: Write) => ({ ...deps, write })
    return { banned, deps, lifting, restart }
  }

  test.each([
    { became: 'was kept', isKept: true },
    { became: 'was not kept: it is listed, and can be lifted once more', isKept: false },
  ])('no client is refused by one that $became', async ({ isKept }) => {
    const { banned, deps, lifting, restart } = await openBanned()
    expect(banned()).toEqual([true, true])
    const unknown = lifting(unanswered(deps.write, isKept))
    await expect(liftAccountBan(unknown, 'ann', 'command-line', 'ann')).rejects.toThrow('has an unknown outcome')
    await expect(liftBan(unknown, '192.0.2.1')).rejects.toThrow('has an unknown outcome')
    expect(banned()).toEqual([false, false])
    const listed = await listBans(deps)
    expect(listed).toHaveLength(isKept ? 0 : 2)
    for (const { subject } of listed) await liftBan(lifting(deps.write), subject)
    await restart()
    expect(banned()).toEqual([false, false])
  })

  test('no owner lets another’s go', async () => {
    const { banned, deps, lifting } = await openBanned()
    await expect(liftAccountBan(lifting(unanswered(deps.write, false)), 'ben', 'command-line', 'ann')).rejects.toMatchObject({
      kind: 'not-found',
    })
    expect(banned()).toEqual([true, true])
  })
})

/** Runs a call, or does not, and reports an unknown outcome. */
function unanswered(write: Write, isKept: boolean): Write {
  const fails = async <T>(change: (tx: Db) => Promise<T>) => {
    if (isKept) await write(change)
    throw new CommitOutcomeUnknown('has an unknown outcome')
  }
  return Object.assign(fails, {
    append: fails,
    makingRoom: fails,
    outsideTransaction: write.outsideTransaction,
    onCommit: write.onCommit,
  })
}

test('several limits exceeded at the same time are several bans', async () => {
  const { ask, deps } = await openBareLimits()
  const subjects = Array.from({ length: 50 }, (_, i) => `192.0.2.${i}`)
  await Promise.all(subjects.map((subject) => ask(subject, FLOOD)))
  expect((await listBans(deps)).map(({ subject }) => subject).toSorted()).toEqual(subjects.toSorted())
})
