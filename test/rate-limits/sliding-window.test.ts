import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSlidingWindows, WINDOW_S } from '../../src/rate-limits/sliding-window.ts'

test('of any calls at any time, the same pass as by counting them one by one; a client that obeys Retry-After passes', () => {
  const call = fc.record({
    afterS: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 70 })),
    subject: fc.constantFrom('a', 'b'),
    weight: fc.constantFrom(1, 1, 1, 0.25),
    isGivenBack: fc.constantFrom(false, false, false, true),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.array(call, { maxLength: 80 }), (limit, calls) => {
      let nowS = 1000
      const windows = createSlidingWindows(() => nowS)
      const seen: { subject: string; atS: number; passed: number; all: number }[] = []
      const stillIn = (subject: string, atS: number) => seen.filter((one) => one.subject === subject && one.atS + WINDOW_S > atS)
      const sum = (calls: { passed: number }[]) => calls.reduce((total, { passed }) => total + passed, 0)
      const wouldPass = (subject: string, atS: number) => sum(stillIn(subject, atS)) < limit - 1e-6

      for (const { afterS, subject, weight, isGivenBack } of calls) {
        nowS += afterS
        const passes = wouldPass(subject, nowS)
        seen.push({ subject, atS: nowS, passed: passes ? weight : 0, all: weight })
        const found = windows.take(subject, limit, weight)
        expect(found.passed).toBe(passes)
        expect(found.all).toBeCloseTo(stillIn(subject, nowS).reduce((total, { all }) => total + all, 0))
        expect(found.remaining).toBeCloseTo(limit - sum(stillIn(subject, nowS)))
        if (!passes) {
          expect(found.waitS).toBeGreaterThan(0)
          expect(found.waitS).toBeLessThanOrEqual(WINDOW_S)
          expect(wouldPass(subject, nowS + found.waitS)).toBe(true)
          // The first one refused could not have come a second earlier.
          const isFirst = Math.abs(found.all - weight - sum(stillIn(subject, nowS))) < 1e-6
          if (isFirst) expect(wouldPass(subject, nowS + found.waitS - 1)).toBe(false)
        }
        expect(windows.isExhausted(subject, limit)).toBe(!wouldPass(subject, nowS))
        if (passes && weight === 1 && isGivenBack) {
          windows.refund(subject)
          seen.pop()
        }
      }
    }),
  )
})

test('R17: around no edge do more calls pass than the limit, wherever two bursts of it fall', () => {
  const bursts = fc.array(fc.record({ atMs: fc.integer({ min: 0, max: 300_000 }), calls: fc.integer({ min: 1, max: 20 }) }), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 }), bursts, (limit, unordered) => {
      let nowMs = 0
      const windows = createSlidingWindows(() => Math.floor(nowMs / 1000))
      const passedAtMs: number[] = []
      for (const { atMs, calls } of unordered.toSorted((a, b) => a.atMs - b.atMs)) {
        nowMs = atMs
        for (let i = 0; i < calls; i++) if (windows.take('a', limit).passed) passedAtMs.push(atMs)
      }
      // Seconds are the grain: 59 of them are always within the window.
      for (const fromMs of passedAtMs) {
        expect(passedAtMs.filter((atMs) => atMs >= fromMs && atMs <= fromMs + 59_000).length).toBeLessThanOrEqual(limit)
      }
    }),
  )
})

test('R17: a pardon lets no call more pass in a minute, and only a new flood counts as one', () => {
  let nowS = 1000
  const windows = createSlidingWindows(() => nowS)
  const times = (count: number) => Array.from({ length: count }, () => windows.take('a', 5))
  expect(times(10).at(-1)).toMatchObject({ passed: false, all: 10 })
  nowS += 30
  windows.pardon('a')
  expect(times(4).map(({ passed, all }) => [passed, all])).toEqual([6, 7, 8, 9].map((all) => [false, all]))
  nowS += 30
  expect(times(6).map(({ passed }) => passed)).toEqual([true, true, true, true, true, false])
})
