import { expect, test } from 'vitest'
import { listAlerts } from '../../src/alerts/alert.ts'
import { createKeyPacing } from '../../src/playback/keys/key-pacing.ts'
import { splitAtSeek } from '../../src/playback/serve.ts'
import { createSuspicions } from '../../src/playback/suspicion/suspicion.ts'
import { isLong, newChance, rounds } from '../seeded-random.ts'
import type { Viewer } from '../viewer.ts'
import { openBarePlayback, outcomeOf, videoOf } from './playback-deps.ts'
import { HABITS, type Trace, watch } from './viewer-traces.ts'

// Suspicious playback raises an alert, with its numbers, once a day: docs/operations.md, "Suspicious sessions".

type Playback = Awaited<ReturnType<typeof openBarePlayback>>

async function alertsOf({ save, db, rowOf }: Playback, viewer: Viewer) {
  await save()
  const row = await rowOf(viewer)
  const alerts = await listAlerts({ db }, row?.accountId ?? '', {}, { limit: 100 })
  return alerts.map(({ cause, sessionId, userId, numbers, occurrenceCount }) => ({
    ...{ cause, sessionId, userId, numbers, occurrenceCount },
  }))
}

/** Takes keys one after the other, each as soon as it is released, and sends no beat. */
async function takeKeys(playback: Playback, viewer: Viewer, windows: number, from = 0): Promise<void> {
  for (let window = from; window < from + windows; window++) {
    for (;;) {
      const refusal = await playback.key(viewer, window)
      if (!refusal) break
      playback.passS((refusal.details.waitMs ?? 0) / 1000)
    }
  }
}

test('P10: a viewer who draws more than 15 minutes of keys without playing them is noticed, with both numbers', async () => {
  const playback = await openBarePlayback({ durationS: 3600 })
  const viewer = await playback.newPlayingViewer({ userId: 'ann' })
  await takeKeys(playback, viewer, 75)
  expect(await alertsOf(playback, viewer)).toEqual([])
  await takeKeys(playback, viewer, 1, 75)
  const sessionId = viewer.state.session
  const alert = { cause: 'keys-drawn', sessionId, userId: 'ann', numbers: { drawnS: 912, playedS: 0 }, occurrenceCount: 1 }
  expect(await alertsOf(playback, viewer)).toEqual([alert])
  await takeKeys(playback, viewer, 100, 76)
  expect(await alertsOf(playback, viewer)).toEqual([alert])
})

test.each([
  ['15 s, all of it counts', { everyS: 15, windows: 3 }, []],
  ['50 s, 18 s of it count', { everyS: 50, windows: 5 }, [{ cause: 'keys-drawn', numbers: { drawnS: 912, playedS: 270 } }]],
])('of the time between two beats with a seek between them, %s as played', async (_, { everyS, windows }, expected) => {
  const playback = await openBarePlayback()
  const { suspicions } = playback.deps
  const viewer = await playback.newPlayingViewer({ userId: 'ann' })
  const row = await playback.rowOf(viewer)
  if (!row) throw new Error('it has no session')
  for (let seek = 0; seek < 50; seek++) {
    for (let window = 0; window < windows; window++) suspicions.recordKey(row, 100 * seek + window, 12)
    playback.passS(everyS)
    suspicions.recordBeat(row, { isPlaying: true, positionS: 1200 * seek + 300 })
  }
  expect(await alertsOf(playback, viewer)).toMatchObject(expected)
})

test('keys that one userId draws in several sessions are added up; sessions without a userId are viewers of their own', async () => {
  const playback = await openBarePlayback({ durationS: 3600 })
  for (const options of [{}, { userId: 'ann' }]) {
    const viewers = [await playback.newPlayingViewer(options), await playback.newPlayingViewer(options)]
    for (const viewer of viewers) await takeKeys(playback, viewer, 40)
    const expected = 'userId' in options ? [{ cause: 'keys-drawn', userId: 'ann' }] : []
    expect(await alertsOf(playback, viewers[0] as Viewer)).toMatchObject(expected)
  }
})

test('one alert for each cause, viewer and day: what occurs again is counted, and the next day has its own', async () => {
  const playback = await openBarePlayback({ durationS: 3600 })
  const viewer = await playback.newPlayingViewer({ userId: 'ann' })
  await takeKeys(playback, viewer, 76)
  await playback.save()
  playback.passS(3600)
  const next = await playback.newPlayingViewer({ userId: 'ann' })
  await takeKeys(playback, next, 76)
  expect(await alertsOf(playback, viewer)).toMatchObject([{ occurrenceCount: 2 }])
  playback.passS(24 * 3600)
  const nextDay = await playback.newPlayingViewer({ userId: 'ann' })
  await takeKeys(playback, nextDay, 76)
  expect(await alertsOf(playback, nextDay)).toMatchObject([{ occurrenceCount: 1 }, { occurrenceCount: 2 }])
})

test('twenty key requests that come before their waitMs has passed are noticed', async () => {
  const playback = await openBarePlayback({ durationS: 3600 })
  const viewer = await playback.newPlayingViewer({ userId: 'ann' })
  let window = 0
  while (!(await playback.key(viewer, window))) window++
  for (let request = 1; request < 20; request++) await playback.key(viewer, window)
  expect(await alertsOf(playback, viewer)).toEqual([])
  await playback.key(viewer, window)
  expect(await alertsOf(playback, viewer)).toMatchObject([{ cause: 'key-pace-ignored', numbers: { earlyRequests: 20 } }])
})

test('a player that waits as it is asked to is not noticed, however often it is refused', async () => {
  const playback = await openBarePlayback({ durationS: 3600 })
  const viewer = await playback.newPlayingViewer({ userId: 'ann' })
  for (let window = 0; window < 120; window++) {
    for (let refusal = await playback.key(viewer, window); refusal; refusal = await playback.key(viewer, window))
      playback.passS((refusal.details.waitMs ?? 0) / 1000)
    await playback.beat(viewer)
  }
  expect((await alertsOf(playback, viewer)).filter(({ cause }) => cause === 'key-pace-ignored')).toEqual([])
})

test.each([
  ['3 countries', ['192.0.2.1', '198.51.100.1', '203.0.113.1'], { prefixes: 3, countries: 3 }],
  ['5 address prefixes', ['192.0.2.1', '10.0.1.1', '10.0.2.1', '10.0.3.1', '10.0.4.1'], { prefixes: 5, countries: 1 }],
  ['5 IPv6 networks', ['192.0.2.1', ...[1, 2, 3, 4].map((n) => `2001:db8:${n}::1`)], { prefixes: 5, countries: 1 }],
])('one userId at %s within an hour is noticed, also in one session', async (_, addresses, numbers) => {
  const playback = await openBarePlayback()
  const viewer = await playback.newPlayingViewer({ userId: 'ann' })
  for (const address of addresses.slice(0, -1)) await playback.beat(viewer, 'paused', address)
  expect(await alertsOf(playback, viewer)).toEqual([])
  playback.passS(3500)
  await playback.beat(viewer, 'paused', addresses.at(-1))
  expect(await alertsOf(playback, viewer)).toMatchObject([{ cause: 'many-places', userId: 'ann', numbers }])
})

test('places that are an hour apart, addresses of one network, and viewers without a userId are not noticed', async () => {
  const playback = await openBarePlayback()
  const viewer = await playback.newPlayingViewer({ userId: 'ann' })
  for (let n = 0; n < 12; n++) {
    await playback.beat(viewer, 'paused', `10.0.${n}.1`)
    playback.passS(1300)
  }
  for (let n = 0; n < 12; n++) await playback.beat(viewer, 'paused', `10.1.1.${n}`)
  const unnamed = await playback.newPlayingViewer()
  for (let n = 0; n < 12; n++) await playback.beat(unnamed, 'paused', `10.2.${n}.1`)
  expect(await alertsOf(playback, viewer)).toEqual([])
})

test('L06: an OTP that a second browser tries is an alert, with both addresses', async () => {
  const playback = await openBarePlayback()
  const [first, second] = [await playback.newPlayingViewer(), await playback.newPlayingViewer()]
  const otp = await playback.newOtp(3600, { userId: 'ann' })
  const session = await playback.redeemBy(first, otp)
  for (let attempt = 0; attempt < 2; attempt++)
    expect(await outcomeOf(playback.redeemBy(second, otp, { address: '198.51.100.1' }))).toBe('otp-used')
  playback.crash()
  const numbers = { firstAddress: '192.0.2.1', secondAddress: '198.51.100.1' }
  expect(await alertsOf(playback, first)).toEqual([
    { cause: 'otp-reused', sessionId: session.row.id, userId: 'ann', numbers, occurrenceCount: 1 },
  ])
})

test('refusals by an owner’s rule are an alert that names the rule and counts them', async () => {
  const playback = await openBarePlayback()
  const rules = { ipGeo: { block: ['FR'] } }
  const viewer = await playback.newPlayingViewer({ userId: 'ann', rules })
  for (const address of ['198.51.100.1', '192.0.2.1', '198.51.100.1']) await outcomeOf(playback.beat(viewer, 'paused', address))
  const sessionId = viewer.state.session
  const alert = { cause: 'rule-refused', sessionId, userId: 'ann', numbers: { rule: 'ipGeo.block' }, occurrenceCount: 2 }
  expect(await alertsOf(playback, viewer)).toEqual([alert])
  const stranger = await playback.newPlayingViewer()
  for (let n = 0; n < 3; n++) {
    const otp = await playback.newOtp(3600, { rules })
    expect(await outcomeOf(playback.redeemBy(stranger, otp, { address: '198.51.100.1' }))).toBe('place-not-allowed')
  }
  const ofVideo = { ...alert, sessionId: null, userId: null, occurrenceCount: 3 }
  expect(await alertsOf(playback, viewer)).toEqual([ofVideo, alert])
})

test('an account has at most 1000 alerts a day', async () => {
  const playback = await openBarePlayback()
  const viewer = await playback.newPlayingViewer()
  const row = await playback.rowOf(viewer)
  if (!row) throw new Error('it has no session')
  for (let n = 0; n < 1010; n++)
    for (let request = 0; request <= 20; request++) playback.deps.suspicions.recordPaced({ ...row, id: `session ${n}` }, 0, 9000)
  await playback.save()
  expect(await listAlerts(playback, row.accountId, {}, { limit: 2000 })).toHaveLength(1000)
})

const PEOPLE = rounds(200, 20_000)
/** Of some 100 000 viewers one who seeks for minutes, and whose beats are lost, is suspected: so a short run has always the same people. */
const MAX_SUSPECTED = rounds(0, 4)
const SHORT_RUN_SEED = 1

test(`P10: of ${PEOPLE} people who watch in their own ways ${isLong ? `at most ${MAX_SUSPECTED} raise` : 'none raises'} an alert`, async () => {
  const playback = await openBarePlayback()
  const chance = newChance('people who are not suspected', isLong ? undefined : SHORT_RUN_SEED)
  const clock = { nowS: 1_800_000_000 }
  const { db, write } = playback
  const suspicions = createSuspicions({ write, nowS: () => clock.nowS, countries: { find: async () => 'DE' } })
  const pacing = createKeyPacing({ db, write, nowS: () => clock.nowS })
  const accountId = (await playback.rowOf(await playback.newPlayingViewer()))?.accountId ?? ''
  const minutes = [4, 10, 20, 30, 60, 120]
  for (let n = 0; n < PEOPLE; n++) {
    const durationS = 60 * (minutes[n % minutes.length] ?? 60)
    const habits = n % 8 === 0 ? [] : n % 8 === 1 ? HABITS.slice(2, 3) : HABITS.filter(() => chance.next() < 0.4)
    const trace: Trace = { durationS, speed: n % 8 < 2 ? 2 : 1, habits }
    const { videoId } = playback
    const video = videoOf(videoId, durationS, n)
    const row = { id: `session ${n}`, accountId, userId: `viewer ${n}`, streamLimit: null, videoId }
    const budgets = await pacing.budgetsOf({ row, address: '192.0.2.1', video })
    const noticed: typeof budgets = {
      ...budgets,
      takeWindow(window) {
        const wait = budgets.takeWindow(window)
        if (wait) suspicions.recordPaced(row, window, wait.waitMs)
        else suspicions.recordKey(row, window, 12)
        return wait
      },
    }
    watch(trace, noticed, clock, chance, (beat) => {
      for (const { state, positionS } of splitAtSeek(beat))
        suspicions.recordBeat(row, { isPlaying: state === 'playing', positionS })
    })
  }
  await suspicions.save()
  expect((await listAlerts({ db }, accountId, {}, { limit: PEOPLE })).length).toBeLessThanOrEqual(MAX_SUSPECTED)
})
