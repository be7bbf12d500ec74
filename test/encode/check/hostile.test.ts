import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { checkResult } from '../../../src/encode/check/check-result.ts'
import { sampleOf } from '../../sample.ts'
import { newChance, rounds } from '../../seeded-random.ts'
import { count } from '../videos.ts'
import { makeHardSource } from './hard-sources.ts'
import { ATTACKS, newVictim, type Victim } from './hostile-results.ts'

// A worker that has a token and sends something else than the chunk that it was given.

const chance = newChance('hostile results')
const names = sampleOf('kinds of hostile results', Object.keys(ATTACKS) as (keyof typeof ATTACKS)[], 2)
let victims: Victim[]

beforeAll(async () => {
  const filmed = await makeHardSource('a scene that a camera pans over')
  const drawn = await makeHardSource('a moving drawing with sound')
  const folder = await mkdtemp(path.join(tmpdir(), 'reelgate-check-'))
  const pairs = [
    [filmed, drawn],
    [drawn, filmed],
  ] as const
  victims = []
  for (const [file, other] of sampleOf('sources of hostile results', pairs, 1)) victims.push(await newVictim(folder, file, other))
  return () => rm(folder, { recursive: true })
}, 600_000)

test.each(names.map((name) => ({ name })))(
  'J30: a result with $name is refused',
  async ({ name }) => {
    const passed: number[] = []
    for (const attempt of count(rounds(1, 56))) {
      const victim = victims[Math.floor(chance.between(0, victims.length))]
      if (!victim) throw new Error('no victim')
      const verdict = await checkResult(await ATTACKS[name](victim, chance))
      if (verdict.ok) passed.push(attempt)
    }
    expect(passed).toEqual([])
  },
  900_000,
)

test('J30: what a worker makes of the same chunks as it should is accepted', async () => {
  for (const { video, audio } of victims)
    for (const result of [video, audio]) expect(await checkResult(result)).toMatchObject({ ok: true })
})
