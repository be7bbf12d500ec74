import { describe, expect, test } from 'vitest'
import { affordableInS, earn, termsOfVideo, termsOfViewer } from '../../src/playback/keys/key-budget.ts'

// How fast keys are released: playback-protocol.md, section 6.

test.each([
  { minutes: 4, startS: 240, rate: 1.5, capS: 600 },
  { minutes: 10, startS: 300, rate: 1.5, capS: 600 },
  { minutes: 20, startS: 300, rate: 1.5, capS: 600 },
  { minutes: 30, startS: 450, rate: 1.5, capS: 600 },
  { minutes: 60, startS: 600, rate: 5 / 3, capS: 600 },
  { minutes: 120, startS: 600, rate: 11 / 6, capS: 600 },
])('the budget for a video of $minutes minutes', ({ minutes, startS, rate, capS }) => {
  expect(termsOfVideo(minutes * 60)).toEqual({ startS, rate: expect.closeTo(rate, 10), capS })
})

test('the budget of a viewer over all videos earns for each stream, four where there is no limit', () => {
  expect(termsOfViewer(1)).toEqual({ startS: 1200, capS: 1200, rate: 2 })
  expect(termsOfViewer(3).rate).toBe(6)
  expect(termsOfViewer(null).rate).toBe(8)
})

describe('a budget', () => {
  const terms = { startS: 600, capS: 600, rate: 1.5 }

  test('earns at its rate for as long as it is watched, and for one lease of silence', () => {
    const balance = { levelS: 0, earnedAtS: 1000 }
    earn(balance, terms, 1006)
    expect(balance).toEqual({ levelS: 9, earnedAtS: 1006 })
    earn(balance, terms, 1006 + 18)
    expect(balance.levelS).toBe(9 + 27)
    earn(balance, terms, 1024 + 3600)
    expect(balance).toEqual({ levelS: 9 + 27 + 27, earnedAtS: 4624 })
  })

  test('holds no more than its cap, and loses nothing when the clock has not moved', () => {
    const balance = { levelS: 599, earnedAtS: 1000 }
    earn(balance, terms, 1010)
    earn(balance, terms, 1010)
    expect(balance.levelS).toBe(600)
    earn(balance, terms, 1005) // the clock of the start after a crash may be some seconds behind
    expect(balance.levelS).toBe(600)
  })

  test('says when it holds a cost', () => {
    expect(affordableInS({ levelS: 12, earnedAtS: 0 }, terms, 12)).toBe(0)
    expect(affordableInS({ levelS: 3, earnedAtS: 0 }, terms, 12)).toBe(6)
  })

  test('pays for a whole video in parts whose sum is not exact', () => {
    const balance = { levelS: 240, earnedAtS: 0 }
    const partS = 240 / 19
    for (let part = 0; part < 19; part++) {
      expect(affordableInS(balance, terms, partS)).toBe(0)
      balance.levelS -= partS
    }
  })
})
