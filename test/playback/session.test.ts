import { describe, expect, test } from 'vitest'
import { prunePlayback } from '../../src/playback/prune.ts'
import { insertSession } from '../../src/playback/sessions/session-store.ts'
import { createViewer } from '../viewer.ts'
import { openBarePlayback, outcomeOf } from './playback-deps.ts'

// When a session ends: playback-protocol.md, section 4. The clock is the test's own.

const MINUTE_S = 60
const HOUR_S = 3600
const DAY_S = 24 * HOUR_S

test('the usage of a thousand viewers is written in parts, and other writes happen in between', async () => {
  const playback = await openBarePlayback()
  const live = await playback.ask(await playback.newPlayingViewer())
  const ids = Array.from({ length: 1_000 }, (_, i) => `viewer ${i}`)
  for (const id of ids) {
    const row = { ...live.row, id, otpHash: Buffer.from(id) }
    await playback.write((tx) => insertSession(tx, row))
    playback.deps.sessions.getOrMake(id, () => ({ ...live, row }))
  }
  playback.passS(7)
  for (const session of playback.deps.sessions.values()) session.lastSeenAtS = playback.nowS()
  let isSaved = false
  const saving = playback.save().then(() => {
    isSaved = true
  })
  for (const _ of [1, 2]) await playback.write(async () => undefined)
  expect(isSaved).toBe(false)
  await saving
  const seen = await playback.db.selectFrom('playbackSession').select('lastSeenAtS').execute()
  expect(seen).toEqual(Array(1_001).fill({ lastSeenAtS: playback.nowS() }))
})

describe('P08: a session ends', () => {
  test('after an hour without a proof, and not a second before', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    playback.passS(HOUR_S - 1)
    expect(await outcomeOf(playback.ask(viewer))).toBe('allowed')
    playback.passS(HOUR_S)
    expect(await outcomeOf(playback.ask(viewer))).toBe('session-ended: idle')
    expect(await playback.rowOf(viewer)).toMatchObject({ endedAtS: playback.nowS(), endReason: 'idle' })
  })

  test('P09: a viewer who pauses for hours and beats once a minute stays', async () => {
    const playback = await openBarePlayback({ durationS: 2 * HOUR_S })
    const viewer = await playback.newPlayingViewer()
    for (let minute = 0; minute < 5 * 60; minute++) {
      playback.passS(MINUTE_S)
      await playback.ask(viewer)
    }
    expect(await outcomeOf(playback.ask(viewer))).toBe('allowed')
  })

  test.each([
    ['after twelve hours', 2 * HOUR_S, 12 * HOUR_S],
    ['after twice its video’s length, where that is longer', 10 * HOUR_S, 20 * HOUR_S],
  ])('%s, however busy', async (_, durationS, lastsS) => {
    const playback = await openBarePlayback({ durationS })
    const viewer = await playback.newPlayingViewer()
    for (let passedS = 0; passedS + 30 * MINUTE_S < lastsS; passedS += 30 * MINUTE_S) {
      playback.passS(30 * MINUTE_S)
      await playback.ask(viewer)
    }
    playback.passS(30 * MINUTE_S - 1)
    expect(await outcomeOf(playback.ask(viewer))).toBe('allowed')
    playback.passS(1)
    expect(await outcomeOf(playback.ask(viewer))).toBe('session-ended: time')
  })

  test('ten minutes after its page was closed', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    await playback.leave(viewer)
    playback.passS(10 * MINUTE_S)
    expect(await outcomeOf(playback.ask(viewer))).toBe('session-ended: viewer-left')
  })

  test('not if a page of it came back within those ten minutes', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    await playback.leave(viewer)
    playback.passS(10 * MINUTE_S - 1)
    viewer.newPage()
    expect(await outcomeOf(playback.ask(viewer, 'page'))).toBe('allowed')
    playback.passS(30 * MINUTE_S)
    expect(await outcomeOf(playback.ask(viewer))).toBe('allowed')
  })

  test('and then no page, no second redeem and no restart brings it back', async () => {
    const playback = await openBarePlayback()
    const viewer = createViewer('http://viewer.invalid')
    const otp = await playback.newOtp(DAY_S)
    await playback.redeemBy(viewer, otp)
    await playback.leave(viewer)
    playback.passS(10 * MINUTE_S)
    viewer.newPage()
    for (const _ of [1, 2]) {
      expect(await outcomeOf(playback.ask(viewer, 'page'))).toBe('session-ended: viewer-left')
      expect(await outcomeOf(playback.redeemBy(viewer, otp))).toBe('session-ended: viewer-left')
      await playback.save()
      playback.crash()
    }
    expect(await outcomeOf(playback.redeemBy(createViewer('http://viewer.invalid'), otp))).toBe('otp-used')
  })

  test('once: what ended it first stays the reason', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    playback.passS(HOUR_S)
    await outcomeOf(playback.ask(viewer))
    const endedAtS = playback.nowS()
    playback.passS(12 * HOUR_S)
    expect(await outcomeOf(playback.ask(viewer))).toBe('session-ended: idle')
    expect(await playback.rowOf(viewer)).toMatchObject({ endedAtS, endReason: 'idle' })
  })
})

describe('what was in memory alone', () => {
  test('a closed page is written down, also when it was opened and closed within one second', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    await playback.leave(viewer)
    await playback.save()
    playback.crash()
    playback.passS(10 * MINUTE_S)
    expect(await outcomeOf(playback.ask(viewer))).toBe('session-ended: viewer-left')
  })

  test('that a page came back is written down, too', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    await playback.leave(viewer)
    await playback.save()
    viewer.newPage()
    await playback.ask(viewer, 'page')
    playback.crash()
    playback.passS(10 * MINUTE_S)
    expect(await outcomeOf(playback.ask(viewer))).toBe('allowed')
  })

  test('a session without requests for minutes leaves memory and is complete when it is read again', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    const nonce = playback.deps.nonces.current()
    playback.passS(MINUTE_S)
    await playback.ask(viewer)
    const proofs = viewer.state.seq
    playback.passS(6 * MINUTE_S)
    await playback.save()
    expect(playback.deps.sessions.size).toBe(0)
    // The numbers it had seen went with it: proofs of that time are stale, so none of them counts again.
    for (let seq = 1; seq <= proofs; seq++) {
      viewer.state.seq = seq - 1
      expect(await outcomeOf(playback.ask(viewer, 'beat', nonce))).toBe('proof-stale')
    }
    expect(await outcomeOf(playback.ask(viewer))).toBe('allowed')
  })

  test('a restart keeps the session and makes every proof of before stale', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    const nonce = playback.deps.nonces.current()
    playback.crash()
    expect(await outcomeOf(playback.ask(viewer, 'beat', nonce))).toBe('proof-stale')
    expect(await outcomeOf(playback.ask(viewer))).toBe('allowed')
  })

  test('a page opened before a crash is the newest after it', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer()
    const first = { ...viewer.state }
    viewer.newPage()
    await playback.ask(viewer, 'page')
    playback.crash()
    expect(await outcomeOf(playback.ask(viewer))).toBe('allowed')
    Object.assign(viewer.state, { pageId: first.pageId, seq: 100 })
    expect(await outcomeOf(playback.ask(viewer))).toBe('page-replaced')
  })
})

describe('rows are kept as long as an answer may need them', () => {
  test('an ended session for a day, its OTP for a week after its expiry', async () => {
    const playback = await openBarePlayback()
    const viewer = createViewer('http://viewer.invalid')
    const otp = await playback.newOtp(HOUR_S)
    await playback.redeemBy(viewer, otp)
    playback.passS(HOUR_S)
    await outcomeOf(playback.ask(viewer))
    const sweepAndCount = async () => {
      await prunePlayback(playback, 90)
      const count = (table: 'playbackSession' | 'otp' | 'redeemAttempt') =>
        playback.db
          .selectFrom(table)
          .select((row) => row.fn.countAll<number>().as('count'))
          .executeTakeFirstOrThrow()
      return Promise.all([count('playbackSession'), count('otp'), count('redeemAttempt')]).then((rows) =>
        rows.map((row) => row.count),
      )
    }
    playback.passS(DAY_S)
    expect(await sweepAndCount()).toEqual([1, 1, 1])
    playback.passS(1)
    expect(await sweepAndCount()).toEqual([0, 1, 1])
    playback.passS(6 * DAY_S - 1)
    expect(await sweepAndCount()).toEqual([0, 1, 1])
    playback.passS(1)
    expect(await sweepAndCount()).toEqual([0, 0, 0])
  })

  test('an OTP whose session may still play is never among them', async () => {
    const playback = await openBarePlayback({ durationS: 30 * DAY_S })
    const viewer = createViewer('http://viewer.invalid')
    const otp = await playback.newOtp(MINUTE_S)
    await playback.redeemBy(viewer, otp)
    for (let half = 0; half < 20 * 48; half++) {
      playback.passS(30 * MINUTE_S)
      await playback.ask(viewer)
    }
    await prunePlayback(playback, 90)
    expect(await outcomeOf(playback.redeemBy(viewer, otp))).toBe('allowed')
  })
})

test('O16: two videos opened by one viewer at the same time are two sessions; the end of one leaves the other', async () => {
  const playback = await openBarePlayback()
  const [first, second] = await Promise.all([1, 2].map(() => playback.newPlayingViewer({ userId: 'viewer-1' })))
  if (!first || !second) throw new Error('two were asked for')
  expect(first.state.session).not.toBe(second.state.session)
  playback.passS(HOUR_S - 1)
  await playback.ask(second)
  playback.passS(1)
  expect(await outcomeOf(playback.ask(first))).toBe('session-ended: idle')
  expect(await outcomeOf(playback.ask(second))).toBe('allowed')
})
