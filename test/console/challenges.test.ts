import { expect, onTestFinished, test } from 'vitest'
import { openBatches } from '../../src/db/postgres/batches.ts'
import { toPublicError } from '../../src/db/postgres/failures.ts'
import { CHALLENGE_LIFE_S, createChallenges } from '../../src/users/challenges.ts'
import { openOwnPostgres } from '../db/postgres/database.ts'

// Challenges of passkeys where the signed one comes to another server than made it.

test('a challenge that one server made is spent at another, once, by the person it was made for, within its life', async () => {
  const { url } = await openOwnPostgres()
  const clock = { nowS: 1_800_000_000 }
  function openServer(isShared = true) {
    const batches = openBatches(url, toPublicError)
    onTestFinished(() => batches.close())
    return createChallenges({ batches, servers: { isShared: () => isShared }, nowS: () => clock.nowS })
  }
  const [here, there, alone] = [openServer(), openServer(), openServer(false)]
  const ofAnyone = await here.make()
  expect(await alone.spend(ofAnyone)).toBe(false)
  const spent = await Promise.all([here, there, here, there].map((server) => server.spend(ofAnyone)))
  expect(spent.filter(Boolean)).toEqual([true])
  expect(await here.spend(ofAnyone)).toBe(false)
  expect(await there.spend(await here.make('ann'), 'bob')).toBe(false)
  expect(await there.spend(await here.make('ann'), 'ann')).toBe(true)
  expect(await there.spend(undefined)).toBe(false)
  const late = await here.make()
  clock.nowS += CHALLENGE_LIFE_S
  expect(await there.spend(late)).toBe(false)
})
