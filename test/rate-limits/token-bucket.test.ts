import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PlaybackRefusal } from '../../src/playback/refusal.ts'
import { createTokenBucket, PROOF_RATE, takeToken } from '../../src/rate-limits/token-bucket.ts'
import { openBarePlayback } from '../playback/playback-deps.ts'

test('a session’s valid proofs pass at 20 a second, in bursts of 60, over any period', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 300 }), (gapsMs) => {
      let nowMs = 5000
      const pace = createTokenBucket(PROOF_RATE, nowMs)
      const passedAtMs: number[] = []
      for (const gapMs of gapsMs) {
        nowMs += gapMs
        if (takeToken(pace, nowMs)) passedAtMs.push(nowMs)
        else expect(passedAtMs.filter((atMs) => nowMs - atMs < 3000).length).toBeGreaterThanOrEqual(60) // none is refused early
      }
      for (const [i, fromMs] of passedAtMs.entries())
        for (const [n, toMs] of passedAtMs.slice(i).entries())
          expect(n + 1).toBeLessThanOrEqual(60 + ((toMs - fromMs) / 1000) * 20 + 1e-6)
    }),
  )
})

/**
 * How many of 100 requests pass while the clock stands still; the others must get slow-down. One after the other: proofs that are
 * verified concurrently can overtake each other by more than the window of sequence numbers.
 */
async function countPassed(send: () => Promise<unknown>): Promise<number> {
  let passed = 0
  for (let n = 0; n < 100; n++) {
    const refusal = await send().then(
      () => undefined,
      (error: unknown) => error,
    )
    if (refusal === undefined) passed++
    else {
      expect(refusal).toBeInstanceOf(PlaybackRefusal)
      expect(refusal).toMatchObject({ code: 'slow-down', details: { retryAfterS: 1 } })
    }
  }
  return passed
}

test('P10: a session that requests too fast gets slow-down, and another session is not', async () => {
  const bare = await openBarePlayback()
  Object.assign(bare.deps, { isRateLimited: true })
  const [fast, other] = [await bare.newPlayingViewer(), await bare.newPlayingViewer()]
  expect(await countPassed(() => bare.ask(fast))).toBe(60)
  await bare.ask(other)
  bare.passS(1)
  expect(await countPassed(() => bare.ask(fast))).toBe(20)
})

test('R19: during a flood from its address a session’s proofs are checked at 5 a second, in bursts of 20', async () => {
  const bare = await openBarePlayback()
  const viewer = await bare.newPlayingViewer()
  const ask = () => bare.ask(viewer, 'beat', bare.deps.nonces.current(), { isFlooding: true })
  expect(await countPassed(ask)).toBe(20)
  bare.passS(1)
  expect(await countPassed(ask)).toBe(5)
  await bare.ask(viewer)
})
