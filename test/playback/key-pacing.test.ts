import { describe, expect, test } from 'vitest'
import { createKeyPacing } from '../../src/playback/keys/key-pacing.ts'
import { prunePlayback } from '../../src/playback/prune.ts'
import { openOwnDatabase } from '../db/database.ts'
import { sampleOf } from '../sample.ts'
import { newChance } from '../seeded-random.ts'
import { createViewer, type Viewer } from '../viewer.ts'
import { openBarePlayback, videoOf } from './playback-deps.ts'
import { HABITS, type Habit, type Trace, watchTogether } from './viewer-traces.ts'

// A viewer's own program asks for every key as soon as it may. The clock is moved, not waited for.

const WINDOW_S = 12
const minutes = (count: number) => count * 60

type Playback = Awaited<ReturnType<typeof openBarePlayback>>
type Options = Parameters<Playback['newPlayingViewer']>[0]
/** What a program does between two keys that it was refused. */
type Trick = (playback: Playback, viewers: Viewer[], round: number) => Promise<void>

/**
 * Asks for all keys of a video with these sessions in turn.
 * @param newAddress where the next request comes from
 * @returns in how many seconds it has them
 */
async function rip(
  playback: Playback,
  viewers: Viewer[],
  durationS: number,
  trick?: Trick,
  newAddress: () => string | undefined = () => undefined,
): Promise<number> {
  const startedS = playback.preciseNowS()
  let round = 0
  for (let window = 0; window < Math.ceil(durationS / WINDOW_S); round++) {
    const waits: number[] = []
    for (const viewer of viewers) {
      const refusal = await playback.key(viewer, window, newAddress()).catch((error) => {
        if (error.code === 'stream-limit') return error
        throw error
      })
      if (refusal === undefined) break
      waits.push(refusal.details.waitMs ?? Number.POSITIVE_INFINITY)
    }
    if (waits.length < viewers.length) {
      window++
      continue
    }
    await trick?.(playback, viewers, round)
    playback.passS(Math.min(...waits) / 1000)
  }
  return playback.preciseNowS() - startedS
}

async function newViewers(playback: Playback, count: number, options: Options): Promise<Viewer[]> {
  return Promise.all(Array.from({ length: count }, () => playback.newPlayingViewer(options)))
}

describe('P21: all keys of a video, at the earliest, with several OTPs of one userId', () => {
  const PROGRAMS = [1, 2, 6, 20].flatMap((count) => [undefined, 1, 2].map((streamLimit) => ({ count, streamLimit })))
  test.each(sampleOf('programs that ask for all keys', PROGRAMS, 1))(
    '60 minutes with $count OTPs and the stream limit $streamLimit: in 30 minutes',
    async ({ count, streamLimit }) => {
      const durationS = minutes(60)
      const playback = await openBarePlayback({ durationS })
      const viewers = await newViewers(playback, count, { userId: 'ann', streamLimit })
      expect(await rip(playback, viewers, durationS)).toBeCloseTo(minutes(30), 0)
    },
  )

  test.each([
    [5, 0],
    [10, 200],
    [20, minutes(10)],
    [30, minutes(15)],
    [120, minutes(60)],
  ])('%i minutes of video: in %i seconds', async (length, ripS) => {
    const playback = await openBarePlayback({ durationS: minutes(length) })
    const viewers = await newViewers(playback, 2, { userId: 'ann' })
    expect(await rip(playback, viewers, minutes(length))).toBeCloseTo(ripS, 0)
  })

  const TRICKS: Record<string, Trick> = {
    'leaves and comes back': async (playback, viewers) => {
      for (const viewer of viewers) await playback.leave(viewer).catch(() => {})
    },
    'begins a session more each time, a new OTP for each': async (playback, viewers, round) => {
      if (round % 20 === 0) viewers.push(await playback.newPlayingViewer({ userId: 'ann', streamLimit: 1 }))
    },
    'sends beats as if many watched': async (playback, viewers) => {
      for (let beat = 0; beat < 5; beat++)
        for (const viewer of viewers) await playback.beat(viewer, beat % 2 ? 'stalled' : 'playing').catch(() => {})
    },
    'is there for a restart of the server': async (playback, _, round) => {
      if (round % 10 !== 0) return
      await playback.save()
      playback.crash()
    },
    'is silent for an hour': async (playback, _, round) => {
      if (round === 3) playback.passS(3599)
    },
  }
  test.each(sampleOf('tricks of programs', Object.entries(TRICKS), 1))(
    '60 minutes in 30 minutes at the earliest, also when the program %s',
    async (_, trick) => {
      const durationS = minutes(60)
      const playback = await openBarePlayback({ durationS })
      const viewers = await newViewers(playback, 2, { userId: 'ann', streamLimit: 1 })
      expect(await rip(playback, viewers, durationS, trick)).toBeGreaterThan(minutes(30) - 1)
    },
  )

  test('a kill of the server costs at most what was not saved since: the budget does not begin again', async () => {
    const durationS = minutes(60)
    const playback = await openBarePlayback({ durationS })
    const [viewer] = await newViewers(playback, 1, { userId: 'ann' })
    if (!viewer) throw new Error('there is no viewer')
    for (let window = 0; window < 50; window++) expect(await playback.key(viewer, window)).toBe(undefined)
    expect((await playback.key(viewer, 50))?.code).toBe('key-pace')
    await playback.save()
    playback.crash()
    expect((await playback.key(viewer, 51))?.code).toBe('key-pace')
    for (let window = 0; window < 50; window++) expect(await playback.key(viewer, window)).toBe(undefined)
  })

  test('a budget is kept for a day after its last use, with what it has released', async () => {
    const playback = await openBarePlayback({ durationS: minutes(60) })
    const ask = async (windows: number) => {
      const viewer = await playback.newPlayingViewer({ userId: 'ann' })
      const released: number[] = []
      for (let window = 0; window < windows; window++) if (!(await playback.key(viewer, window))) released.push(window)
      await playback.save()
      return released.length
    }
    expect(await ask(60)).toBe(50)
    for (const hours of [23, 24]) {
      playback.passS(3600 * hours)
      playback.crash()
      await prunePlayback(playback, 90)
      // A lease of silence earns 30 s: two windows, and half of the next.
      expect(await ask(70)).toBe(hours === 23 ? 52 : 55)
    }
    playback.passS(3600 * 24 + 1)
    playback.crash()
    await prunePlayback(playback, 90)
    expect(await ask(60)).toBe(50)
  })

  test('a second video starts with a budget of its own, until the one over all videos is used up', async () => {
    const playback = await openBarePlayback({ durationS: minutes(60) })
    const videoIds = [playback.videoId, await playback.addVideo(), await playback.addVideo()]
    const viewers = await Promise.all(
      videoIds.map((videoId) => playback.newPlayingViewer({ userId: 'ann', streamLimit: 4, videoId })),
    )
    const keys: number[] = []
    for (const viewer of viewers) {
      let window = 0
      while (!(await playback.key(viewer, window))) window++
      keys.push(window)
    }
    expect(keys).toEqual([50, 50, 0]) // 1 200 s
  })
})

describe('P21: without a userId', () => {
  test.each([1, 6, 20])(
    '%i sessions behind one address have 60 minutes of video in 10 minutes at the earliest',
    async (count) => {
      const durationS = minutes(60)
      const playback = await openBarePlayback({ durationS })
      const viewers = await newViewers(playback, count, {})
      const atLeastS = count === 1 ? minutes(30) : minutes(10)
      expect(await rip(playback, viewers, durationS, beatAll)).toBeGreaterThan(atLeastS - 1)
    },
  )

  test.each([20, 30, 120])('%i minutes of video: in a sixth of them', async (length) => {
    const playback = await openBarePlayback({ durationS: minutes(length) })
    const viewers = await newViewers(playback, 6, {})
    expect(await rip(playback, viewers, minutes(length), beatAll)).toBeGreaterThan(minutes(length) / 6 - 1)
  })

  const beatAll: Trick = async (playback, viewers) => {
    for (const viewer of viewers) await playback.beat(viewer)
  }

  test('a class of 30 behind one address that watches together never waits', async () => {
    const durationS = minutes(20)
    const playback = await openBarePlayback({ durationS })
    const viewers = await newViewers(playback, 30, {})
    for (let window = 0; window < durationS / WINDOW_S; window++) {
      for (const viewer of viewers) expect(await playback.key(viewer, window)).toBe(undefined)
      for (let beat = 0; beat < 2; beat++) {
        playback.passS(6)
        for (const viewer of viewers) await playback.beat(viewer)
      }
    }
  })

  test('viewers at other addresses have budgets of their own', async () => {
    const playback = await openBarePlayback({ durationS: minutes(60) })
    const [viewer] = await newViewers(playback, 1, {})
    if (!viewer) throw new Error('there is no viewer')
    for (let window = 0; window < 50; window++) expect(await playback.key(viewer, window)).toBe(undefined)
    expect((await playback.key(viewer, 50))?.code).toBe('key-pace')
    const other = await playback.newPlayingViewer()
    expect(await playback.key(other, 50, '198.51.100.1')).toBe(undefined)
  })
})

describe('P24: without a userId, from address to address', () => {
  /** Another /64 of one /48 for each request, or another address of IPv4. */
  const MOVES: Record<string, (request: number) => string> = {
    'the /64s of one /48': (request) => `2001:db8:1:${request.toString(16)}::1`,
    'addresses of IPv4': (request) => `10.${request >> 16}.${(request >> 8) & 255}.${request & 255}`,
  }
  const newAddresses = (location: (request: number) => string) => {
    let request = 0
    return () => location(++request & 0xffff)
  }

  test.each(Object.entries(MOVES))('one session over %s has 60 minutes in 30 minutes', async (_, location) => {
    const durationS = minutes(60)
    const playback = await openBarePlayback({ durationS })
    const viewers = await newViewers(playback, 1, {})
    expect(await rip(playback, viewers, durationS, undefined, newAddresses(location))).toBeCloseTo(minutes(30), 0)
  })

  test.each([
    [6, 60],
    [20, 60],
    [6, 20],
    [6, 120],
  ])('%i OTPs over any /64s of one /48 have %i minutes in a sixth of them at the earliest', async (count, length) => {
    const playback = await openBarePlayback({ durationS: minutes(length) })
    const viewers = await newViewers(playback, count, {})
    const newAddress = newAddresses((request) => `2001:db8:1:${request.toString(16)}::1`)
    const beatAll: Trick = async () => {
      for (const viewer of viewers) await playback.beat(viewer, 'playing', newAddress())
    }
    expect(await rip(playback, viewers, minutes(length), beatAll, newAddress)).toBeGreaterThan(minutes(length) / 6 - 1)
  })

  test('a key is paid by all budgets or by none: what one of them refuses costs the others nothing', async () => {
    const playback = await openBarePlayback({ durationS: minutes(60) })
    const [first, second] = await newViewers(playback, 2, {})
    if (!first || !second) throw new Error('there are no viewers')
    for (let window = 0; window < 50; window++) expect(await playback.key(first, window, '2001:db8:1:1::1')).toBe(undefined)
    // The network has nothing left for the second session, which has all of its own.
    for (let request = 0; request < 60; request++)
      expect((await playback.key(second, 50 + request, '2001:db8:1:2::1'))?.code).toBe('key-pace')
    for (let window = 0; window < 50; window++) expect(await playback.key(second, window, '2001:db8:1:2::1')).toBe(undefined)
  })
})

describe('P27: a video that is encrypted again gives its viewers no new ten minutes', () => {
  const ASK = { 'with a userId': { userId: 'ann' }, 'without one, at the same address': {} }
  const RESTARTS: Record<string, (playback: Playback) => Promise<void>> = {
    immediately: async () => {},
    'after a restart': async (playback) => {
      await playback.save()
      playback.crash()
    },
  }
  const cases = Object.entries(ASK).flatMap(([who, options]) =>
    Object.entries(RESTARTS).map(([when, restart]) => ({ who, when, options, restart })),
  )
  test.each(cases)('$who, $when', async ({ options, restart }) => {
    const playback = await openBarePlayback({ durationS: minutes(60) })
    for (const generation of [1, 2, 4]) {
      if (generation > 1) await playback.playNextGeneration(generation)
      const viewer = await playback.newPlayingViewer(options)
      let released = 0
      while (!(await playback.key(viewer, released))) released++
      expect([generation, released]).toEqual([generation, generation === 1 ? 50 : 0])
      await restart(playback)
    }
    // It earns from where it was.
    playback.passS(18)
    const viewer = await playback.newPlayingViewer(options)
    expect([await playback.key(viewer, 0), await playback.key(viewer, 1)]).toEqual([undefined, undefined])
    expect((await playback.key(viewer, 2))?.code).toBe('key-pace')
  })

  test('a viewer who comes for the first time starts as ever', async () => {
    const playback = await openBarePlayback({ durationS: minutes(60) })
    await playback.playNextGeneration(2)
    const viewer = await playback.newPlayingViewer({ userId: 'ben' })
    for (let window = 0; window < 50; window++) expect(await playback.key(viewer, window)).toBe(undefined)
  })
})

describe('P25: thirty viewers of one /48 who start one lesson within ten minutes', () => {
  const LESSON = { minutes: 60, viewers: 30 }
  const watchLesson = async (habits: readonly Habit[], speeds: readonly number[]) => {
    const { db, write } = await openOwnDatabase()
    const clock = { nowS: 1_800_000_000 }
    const chance = newChance('thirty viewers of one network')
    const pacing = createKeyPacing({ db, write, nowS: () => clock.nowS })
    const video = videoOf('a lesson', minutes(LESSON.minutes))
    const people = Array.from({ length: LESSON.viewers }, async (_, n) => {
      const row = { id: `session ${n}`, accountId: 'an account', userId: null, streamLimit: null }
      const budgets = await pacing.budgetsOf({ row, address: `2001:db8:1:${n}::1`, video })
      const speed = speeds[n % speeds.length] ?? 1
      const trace: Trace = { durationS: minutes(LESSON.minutes), speed, habits: habits.filter(() => chance.next() < 0.4) }
      return { trace, budgets, startsAfterS: chance.between(0, 600) }
    })
    return watchTogether(await Promise.all(people), clock, chance)
  }
  const HARMLESS = HABITS.filter((habit) => habit !== 'seeks in bursts')

  test.each([
    ['at the speed of the lesson', [], [1]],
    ['at speeds up to 1.5', [], [1, 1.25, 1.5]],
    ['with pauses, other speeds, sleeping tabs, second looks and bad networks', HARMLESS, [1]],
  ])('%s never wait', async (_, habits, speeds) => {
    expect(Math.max(...(await watchLesson(habits, speeds)))).toBe(0)
  })
})

test('a paused viewer earns nothing, and one without a slot neither', async () => {
  const playback = await openBarePlayback({ durationS: minutes(60) })
  const [first, second] = await newViewers(playback, 2, { userId: 'ann', streamLimit: 1 })
  if (!first || !second) throw new Error('there are no viewers')
  for (let window = 0; window < 50; window++) expect(await playback.key(first, window)).toBe(undefined)
  for (const ask of [() => playback.beat(first, 'paused'), () => playback.beat(second).catch(() => {})]) {
    const before = await playback.key(first, 50)
    for (let n = 0; n < 20; n++) {
      playback.passS(0.5)
      await ask()
    }
    playback.passS(-10)
    expect((await playback.key(first, 50))?.details.waitMs).toBe(before?.details.waitMs)
  }
})

test('a viewer who watches gets the time to ask again, and how fast to play until then', async () => {
  const playback = await openBarePlayback({ durationS: minutes(60) })
  const viewer = createViewer('http://viewer.invalid')
  await playback.redeemBy(viewer, await playback.newOtp(3600, { userId: 'ann' }))
  for (let window = 0; window < 50; window++) expect(await playback.key(viewer, window)).toBe(undefined)
  expect((await playback.key(viewer, 50))?.details).toEqual({ waitMs: 7200, maxRate: expect.closeTo(5 / 3, 10), retryAfterS: 8 })
  playback.passS(7)
  expect((await playback.key(viewer, 50))?.details).toMatchObject({ waitMs: expect.closeTo(200, -1), retryAfterS: 1 })
  playback.passS(0.2)
  expect(await playback.key(viewer, 50)).toBe(undefined)
})
