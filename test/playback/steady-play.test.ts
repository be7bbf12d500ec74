import { expect, test } from 'vitest'
import { createKeyPacing } from '../../src/playback/keys/key-pacing.ts'
import type { SessionBudgets } from '../../src/playback/keys/session-budgets.ts'
import { openOwnDatabase } from '../db/database.ts'
import { type Chance, isLong, newChance, rounds } from '../seeded-random.ts'
import { videoOf } from './playback-deps.ts'
import { type BeatAt, collectKeys, longestSteadyPlayS, type Program } from './steady-play.ts'
import { HABITS, type Trace, watch } from './viewer-traces.ts'

// Why no alert is raised for playing at 2× without anything else that people do: decision 54.

const MINUTES = [4, 10, 20, 30, 60, 120]
const THRESHOLDS = [1, 2, 5, 10, 15, 20, 30, 40, 50, 58]
const PEOPLE = rounds(240, 24_000)
const MAX_SUSPECTED = 1 / 10_000

/** How they watch, and how many of eight people do. */
const WAYS: Record<string, { ofEight: number; newWay(chance: Chance): Omit<Trace, 'durationS'> }> = {
  'at 2× throughout': { ofEight: 1, newWay: () => ({ speed: 2, habits: [] }) },
  'at 2×, with seeks': { ofEight: 1, newWay: () => ({ speed: 2, habits: ['seeks in bursts'] }) },
  'with some of everything': {
    ofEight: 6,
    newWay: (chance) => ({ speed: 1, habits: HABITS.filter(() => chance.next() < 0.4) }),
  },
}
const PROGRAMS: readonly Program[] = ['claims to play on', 'waits as the player does']

test('P28: minutes at 2× without a pause, a seek, another speed, a hidden tab or a wait do not tell a program from people at 1 in 10 000', async () => {
  const chance = newChance('steady play')
  const { db, write } = await openOwnDatabase()
  const clock = { nowS: 1_800_000_000 }
  const pacing = createKeyPacing({ db, write, nowS: () => clock.nowS })
  let sessionCount = 0

  type Note = (beat: Omit<BeatAt, 'atS'>) => void
  async function measureMinutes(durationS: number, play: (budgets: SessionBudgets, note: Note) => void): Promise<number> {
    const n = sessionCount++
    const row = { id: `session ${n}`, accountId: 'an account', userId: `viewer ${n}`, streamLimit: null }
    const budgets = await pacing.budgetsOf({ row, address: '192.0.2.1', video: videoOf(`video ${n}`, durationS) })
    const beats: BeatAt[] = []
    play(budgets, (beat) => void beats.push({ ...beat, atS: clock.nowS }))
    return longestSteadyPlayS(beats) / 60
  }

  const people: { way: string; steady: number }[] = []
  for (const [way, { ofEight, newWay }] of Object.entries(WAYS))
    for (let n = 0; n < (PEOPLE * ofEight) / 8; n++) {
      const trace = { ...newWay(chance), durationS: 60 * (MINUTES[n % MINUTES.length] ?? 60) }
      const steady = await measureMinutes(trace.durationS, (budgets, note) => watch(trace, budgets, clock, chance, note))
      people.push({ way, steady })
    }
  const programs: { way: string; steady: number }[] = []
  for (const program of PROGRAMS)
    for (const minutes of MINUTES) {
      const play = (budgets: SessionBudgets, note: Note) => collectKeys(program, 60 * minutes, budgets, clock, note)
      programs.push({ way: program, steady: await measureMinutes(60 * minutes, play) })
    }

  const shareFrom = (minutes: number, all: { steady: number }[]) =>
    all.filter(({ steady }) => steady >= minutes).length / all.length
  if (isLong)
    for (const minutes of THRESHOLDS) {
      const shares = [...Object.keys(WAYS), ...PROGRAMS].map((way) => {
        const percent =
          100 *
          shareFrom(
            minutes,
            [...people, ...programs].filter((one) => one.way === way),
          )
        return `${way} ${percent.toFixed(2)} %`
      })
      process.stderr.write(
        `${minutes} minutes: people ${(100 * shareFrom(minutes, people)).toFixed(2)} %; ${shares.join(', ')}\n`,
      )
    }
  expect(shareFrom(1, programs)).toBe(1)
  const separating = THRESHOLDS.filter(
    (minutes) => shareFrom(minutes, people) <= MAX_SUSPECTED && shareFrom(minutes, programs) > 0,
  )
  expect(separating).toEqual([])
})
