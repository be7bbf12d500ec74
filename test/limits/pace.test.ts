import fc from 'fast-check'
import { expect, test } from 'vitest'
import { keepsPace, newPace } from '../../src/limits/pace.ts'
import { PlaybackRefusal } from '../../src/playback/refusal.ts'
import { openBarePlayback } from '../playback/bare.ts'

test('a session’s true proofs pass at 20 a second, and 60 at once, in any stretch of time', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 300 }), (gapsMs) => {
      let nowMs = 5000
      const pace = newPace(nowMs)
      const passedAtMs: number[] = []
      for (const gapMs of gapsMs) {
        nowMs += gapMs
        if (keepsPace(pace, nowMs)) passedAtMs.push(nowMs)
        else expect(passedAtMs.filter((atMs) => nowMs - atMs < 3000).length).toBeGreaterThanOrEqual(60) // none is refused early
      }
      for (const [i, fromMs] of passedAtMs.entries())
        for (const [n, toMs] of passedAtMs.slice(i).entries())
          expect(n + 1).toBeLessThanOrEqual(60 + ((toMs - fromMs) / 1000) * 20 + 1e-6)
    }),
  )
})

test('P10: a session that asks faster is told to slow down, and another session is not', async () => {
  const bare = await openBarePlayback()
  Object.assign(bare.deps, { paced: true })
  const [fast, other] = [await bare.newPlayingViewer(), await bare.newPlayingViewer()]
  const startedMs = performance.now()
  let passed = 0
  const refusals: unknown[] = []
  for (let i = 0; i < 400; i++) {
    await bare.ask(fast).then(
      () => {
        passed += 1
      },
      (error) => refusals.push(error),
    )
  }
  const tookS = (performance.now() - startedMs) / 1000
  expect(passed).toBeGreaterThanOrEqual(60)
  expect(passed).toBeLessThanOrEqual(61 + tookS * 20)
  for (const refusal of refusals) {
    expect(refusal).toBeInstanceOf(PlaybackRefusal)
    expect(refusal).toMatchObject({ code: 'slow-down', details: { retryAfterS: 1 } })
  }
  await bare.ask(other)
})
