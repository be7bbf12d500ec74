import { expect, test } from 'vitest'
import { planConstantRate } from '../../src/encode/frame-rate.ts'
import { fitFrameTimes } from '../../src/encode/frame-times.ts'
import { newChance, rounds } from '../seeded-random.ts'

// A grid that is fitted to frame times: every frame of a constant rate has a slot of its own, whatever its container and first time.

const RATES = [
  24_000 / 1001,
  24,
  25,
  30_000 / 1001,
  30,
  48,
  50,
  60_000 / 1001,
  60,
  10,
  12.5,
  15_000 / 1001,
  15,
  18,
  20,
  29.9,
  33.3,
  120,
]
/** Ticks a second of a container's clock. */
const CLOCKS = [1000, 1000, 90_000, 12_800, 44_100, 1_000_000]

type Source = { rateHz: number; firstS: number; clockHz: number; jitter: number; lost: number; frames: number }

function timesOf({ rateHz, firstS, clockHz, jitter, lost, frames }: Source, chance: () => number): number[] {
  const times: number[] = []
  for (let frame = 0; frame < frames; frame++) {
    const shift = jitter * (2 * chance() - 1)
    if (frame > 0 && chance() < lost) continue
    times.push(Math.round((firstS + (frame + shift) / rateHz) * clockHz) / clockHz)
  }
  return times
}

function runsOf(times: readonly number[]): number[][] {
  const middle = Math.floor(times.length / 2)
  return times.length <= 2500 ? [times.slice(0, 2000)] : [times.slice(0, 2000), times.slice(middle, middle + 500)]
}

/** In how many slots frames of an hour collide, and how many slots before the last frame have none. */
function slotsOf(times: readonly number[], { rateHz, startS }: { rateHz: number; startS: number }) {
  const slots = times.map((timeS) => Math.round((timeS - startS) * rateHz))
  const taken = new Set(slots).size
  return { doubled: slots.length - taken, empty: (slots.at(-1) ?? 0) + 1 - taken }
}

test('I-01: each frame of a constant rate gets a slot of its own, for any rate, container clock, first time and jitter', () => {
  const { between, next } = newChance('constant rates')
  const choose = <T>(all: readonly T[]) => all[Math.floor(between(0, all.length))] as T
  for (let round = 0; round < rounds(50, 500); round++) {
    const rateHz = choose(RATES)
    const frames = Math.floor(choose([between(24, 400), between(400, 3000), between(20_000, 120_000)]))
    const source = {
      rateHz,
      firstS: choose([0, between(0, 1) / rateHz, between(0, 2)]),
      clockHz: choose(CLOCKS),
      jitter: frames > 20_000 ? 0 : choose([0, 0, 0.1, 0.2, 0.25]),
      lost: 0,
      frames,
    }
    const times = timesOf(source, next)
    const announced = { rateNum: Math.round(rateHz * 1001), rateDen: 1001 }
    const fit = fitFrameTimes(runsOf(times), next() < 0.5 ? [announced] : [])
    const found = fit && { rateHz: fit.rate.rateNum / fit.rate.rateDen, startS: fit.startS }
    const late = Math.floor((times[0] ?? 0) * rateHz + 0.001)
    expect({ source, slots: found && slotsOf(times, found) }).toEqual({
      source,
      slots: { doubled: 0, empty: expect.any(Number) },
    })
    expect({ source, ...fit, empty: found && slotsOf(times, found).empty }).toEqual({
      source,
      ...fit,
      empty: expect.toSatisfy((empty) => empty <= late + 1),
    })
  }
})

test('I-12: frames that share their times have no rate', () => {
  const times = Array.from({ length: 100 }, (_, frame) => Math.floor(frame / 2) / 25)
  expect(fitFrameTimes([times], [{ rateNum: 25, rateDen: 1 }])).toBe(undefined)
})

test('I-35: however few frames a second there are, none is moved by more than 20 ms, and little sound is cut off', () => {
  for (const rateHz of [1, 2.5, 5, 8, 10, 12.5, 15])
    for (let firstS = 0; firstS < 1.5 / rateHz; firstS += 0.007) {
      const times = Array.from({ length: 40 }, (_, frame) => firstS + frame / rateHz)
      const fit = fitFrameTimes([times], [])
      if (!fit) throw new Error('no fit')
      const { startS, ...grid } = { ...fit, ...planConstantRate(fit) }
      const hz = grid.rateNum / grid.rateDen
      const slots = times.map((timeS) => Math.round((timeS - grid.slotStartS) * hz))
      const movedS = slots.map((slot, frame) => Math.abs(startS + slot / hz - (times[frame] ?? 0)))
      expect({ rateHz, firstS, movedS: Math.max(...movedS), startS }).toEqual({
        ...{ rateHz, firstS, movedS: expect.toSatisfy((moved) => moved < 0.0201) },
        startS: expect.toSatisfy((start) => start <= 0.0601 && start > -1 / hz),
      })
    }
})
