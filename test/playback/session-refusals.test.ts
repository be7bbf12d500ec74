import { expect, test } from 'vitest'
import { listRefusedAttempts } from '../../src/playback/suspicion/refusal-store.ts'
import { openBarePlayback, outcomeOf } from './playback-deps.ts'

// What sessions are refused while they play, as their owner sees it.

async function listRefusals({ db }: Awaited<ReturnType<typeof openBarePlayback>>) {
  const { id } = await db.selectFrom('account').select('id').executeTakeFirstOrThrow()
  const rows = await listRefusedAttempts(db, id, { limit: 100 })
  return rows.map(({ outcome, userId, attemptCount, address }) => ({ outcome, userId, attemptCount, address }))
}

test('a screen too many is one row for its owner, with how often its player asked, also over a restart', async () => {
  const playback = await openBarePlayback()
  const first = await playback.newPlayingViewer({ userId: 'ann', streamLimit: 1 })
  const second = await playback.newPlayingViewer({ userId: 'ann', streamLimit: 1 })
  expect(await playback.key(first, 0)).toBeUndefined()
  for (let asked = 0; asked < 3; asked++) expect(await outcomeOf(playback.key(second, 0))).toBe('stream-limit')
  await playback.save()
  expect(await outcomeOf(playback.beat(second))).toBe('stream-limit')
  await playback.save()
  await playback.save()
  expect(await listRefusals(playback)).toEqual([
    { outcome: 'stream-limit', userId: 'ann', attemptCount: 4, address: '192.0.2.1' },
  ])
})

test('a session that asks for keys faster than people watch is one row for its owner', async () => {
  const playback = await openBarePlayback({ durationS: 7200 })
  const viewer = await playback.newPlayingViewer({ userId: 'bob' })
  let refused = 0
  for (let window = 0; refused < 5; window++) if (await playback.key(viewer, window)) refused++
  await playback.save()
  expect(await listRefusals(playback)).toEqual([{ outcome: 'key-pace', userId: 'bob', attemptCount: 5, address: '192.0.2.1' }])
})
