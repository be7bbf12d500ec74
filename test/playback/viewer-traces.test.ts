import { expect, test } from 'vitest'
import { createKeyPacing } from '../../src/playback/keys/key-pacing.ts'
import { openOwnDatabase } from '../db/database.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { videoOf } from './playback-deps.ts'
import { HABITS, type Trace, watch } from './viewer-traces.ts'

// Pacing must not be noticed by people: playback-protocol.md, section 6.

const MINUTES = [4, 10, 20, 30, 60, 120]
const TRACES = rounds(200, 40_000)

test(`of ${TRACES} people who watch in their own ways none waits for a key for more than 3 s; 8 s who watch at 2× throughout and seek in bursts`, async () => {
  const chance = newChance('people who watch')
  const { db, write } = await openOwnDatabase()
  const clock = { nowS: 1_800_000_000 }
  const pacing = createKeyPacing({ db, write, nowS: () => clock.nowS })
  const tooLong: (Trace & { waitS: number })[] = []
  for (let n = 0; n < TRACES; n++) {
    const trace = newTrace(n)
    const video = videoOf(`video ${n}`, trace.durationS)
    const row = { id: `session ${n}`, accountId: 'an account', userId: `viewer ${n}`, streamLimit: null }
    const waitS = watch(trace, await pacing.budgetsOf({ row, address: '192.0.2.1', video }), clock, chance)
    if (waitS > (isHasty(trace) ? 8 : 3)) tooLong.push({ ...trace, waitS })
  }
  expect(tooLong).toEqual([])

  /** A quarter watch at 2× throughout, half of them with bursts of seeks; the others do some of everything. */
  function newTrace(n: number): Trace {
    const durationS = 60 * (MINUTES[n % MINUTES.length] ?? 60)
    if (n % 8 === 0) return { durationS, speed: 2, habits: [] }
    if (n % 8 === 1) return { durationS, speed: 2, habits: ['seeks in bursts'] }
    const habits = HABITS.filter(() => chance.next() < 0.4)
    return { durationS, speed: 1, habits }
  }
})

function isHasty({ speed, habits }: Trace): boolean {
  return speed === 2 && habits.includes('seeks in bursts')
}
