import { expect, test } from 'vitest'
import { createRowWatch } from '../../src/installation/watch-rows.ts'
import { createKeyPacing, type KeyPacing } from '../../src/playback/keys/key-pacing.ts'
import type { PlaybackDeps } from '../../src/playback/playback-deps.ts'
import { findLiveSession } from '../../src/playback/sessions/session-memory.ts'
import { stopSessions } from '../../src/playback/sessions/stop.ts'
import { recordWindow } from '../../src/playback/sessions/watched-seconds.ts'
import { failingOnce } from '../db/failing-write.ts'
import { newChance } from '../seeded-random.ts'
import { openBarePlayback, outcomeOf, videoOf } from './playback-deps.ts'

// Two memories of the same rows, as of two servers: a save names the version of the row that it started from, and merges another one.

type Playback = Awaited<ReturnType<typeof openBarePlayback>>

async function openTwo({ durationS = 3600 } = {}) {
  const playback = await openBarePlayback({ durationS })
  const viewer = await playback.newPlayingViewer({ userId: 'ann' })
  const row = await playback.rowOf(viewer)
  if (!row) throw new Error('it has no session')
  return { playback, viewer, row, here: playback.deps, there: playback.openServer() }
}

async function liveOf(deps: PlaybackDeps, sessionId: string) {
  const session = await findLiveSession(deps, sessionId)
  if (!session) throw new Error('it has no session')
  return session
}

async function watchedOf({ db }: Playback) {
  const viewing = await db.selectFrom('viewing').selectAll().executeTakeFirst()
  const days = await db.selectFrom('viewingDay').select('intervals').execute()
  return { intervals: viewing?.intervals, positionS: viewing?.positionS, days: days.map(({ intervals }) => intervals) }
}

test('F-80: what a viewer watches at two servers is watched, on its day too, and is completed once', async () => {
  const { playback, row, here, there } = await openTwo({ durationS: 60 })
  const key = { accountId: row.accountId, userId: 'ann', videoId: row.videoId }
  const watch = (deps: PlaybackDeps, fromS: number, toS: number) =>
    deps.viewings.add(key, { spans: [{ fromS, toS }], positionS: toS, durationS: 60, timelineStartS: 0 })
  await watch(here, 0, 10)
  playback.passS(1)
  await watch(there, 20, 30)
  await there.viewings.save()
  await here.viewings.save()
  expect(await watchedOf(playback)).toEqual({ intervals: '0 10 20 30', positionS: 30, days: ['0 10 20 30'] })
  playback.passS(1)
  await watch(there, 30, 60)
  await watch(here, 10, 20)
  await Promise.all([here.viewings.save(), there.viewings.save()])
  expect((await watchedOf(playback)).intervals).toBe('0 60')
  const [viewing] = await playback.db.selectFrom('viewing').select('completedAtS').execute()
  expect(viewing?.completedAtS).toBe(playback.nowS())
})

test('F-80: whatever three servers add and save in any order, the row has all of it in the end', async () => {
  const { playback, row, here, there } = await openTwo()
  const chance = newChance('viewings of three servers')
  const servers = [here, there, playback.openServer()]
  const key = { accountId: row.accountId, userId: 'ann', videoId: row.videoId }
  const seconds = new Set<number>()
  for (let step = 0; step < 60; step++) {
    const { viewings } = servers[step % 3] as PlaybackDeps
    const fromS = Math.floor(chance.next() * 300)
    const toS = fromS + 1 + Math.floor(chance.next() * 5)
    for (let second = fromS; second < toS; second++) seconds.add(second)
    await viewings.add(key, { spans: [{ fromS, toS }], positionS: toS, durationS: 3600, timelineStartS: 0 })
    if (chance.next() < 0.4) await viewings.save()
  }
  for (const { viewings } of servers) await viewings.save()
  const [viewing] = await playback.db.selectFrom('viewing').select('watchedS').execute()
  expect(viewing?.watchedS).toBe(seconds.size)
})

/** Takes these windows for a viewer's session. @returns how many keys were released */
async function takeKeys(
  pacing: KeyPacing,
  row: Parameters<KeyPacing['budgetsOf']>[0]['row'] & { videoId: string },
  windows: number[],
) {
  const budgets = await pacing.budgetsOf({ row, address: '192.0.2.1', video: videoOf(row.videoId, 3600) })
  return windows.filter((window) => budgets.takeWindow(window) === undefined).length
}
const windowsFrom = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n)

test('F-81: keys that a viewer is given at two servers are paid from one budget, and are free at both', async () => {
  const { row, here, there } = await openTwo()
  const [a, b] = [here.keyPacing, there.keyPacing]
  expect(await takeKeys(a, row, windowsFrom(0, 30))).toBe(30)
  expect(await takeKeys(b, row, windowsFrom(100, 15))).toBe(15)
  await a.save()
  await b.save()
  // Of 50 windows at the start 5 are left, at the server that has saved last; the other one learns of it when it saves.
  expect(await takeKeys(b, row, windowsFrom(0, 30))).toBe(30)
  expect(await takeKeys(b, row, windowsFrom(200, 10))).toBe(5)
  await b.save()
  expect(await takeKeys(a, row, [290])).toBe(1)
  await a.save()
  expect(await takeKeys(a, row, windowsFrom(100, 15))).toBe(15)
  expect(await takeKeys(a, row, [291])).toBe(0)
})

test.each([true, false])(
  'F-82: a save of budgets whose outcome is not known (kept: %s) takes no key twice from a viewer',
  async (isKept) => {
    const { playback, row } = await openTwo()
    const write = failingOnce(playback.write, 1, { isKept })
    const pacing = createKeyPacing({ db: playback.db, write, nowS: playback.preciseNowS })
    await takeKeys(pacing, row, windowsFrom(0, 10))
    await expect(pacing.save()).rejects.toThrow('not known')
    await takeKeys(pacing, row, [10])
    await pacing.save()
    const stored = await playback.db.selectFrom('keyBudget').select('levelS').where('videoId', '=', row.videoId).execute()
    expect(stored).toEqual([{ levelS: 600 - 11 * 12 }])
    expect(await takeKeys(pacing, row, windowsFrom(11, 60))).toBe(50 - 11)
  },
)

test('F-83: a session at two servers was last seen where it was seen last, and has the keys of both', async () => {
  const { playback, row, here, there } = await openTwo()
  const [a, b] = [await liveOf(here, row.id), await liveOf(there, row.id)]
  for (const [session, window] of [
    [a, 1],
    [b, 2],
  ] as const)
    recordWindow(session.watched, window)
  a.lastSeenAtS = playback.nowS() + 5
  Object.assign(b, { lastSeenAtS: playback.nowS() + 3, leftAtS: playback.nowS() + 3 })
  await here.sessions.save()
  await there.sessions.save()
  const saved = await playback.db.selectFrom('playbackSession').selectAll().where('id', '=', row.id).executeTakeFirstOrThrow()
  expect(saved).toMatchObject({ lastSeenAtS: playback.nowS() + 5, leftAtS: null })
  expect(saved.keyWindows?.[0]).toBe(0b110)
})

test('F-141: a session that one server stops is refused at another one within a second, before that saves anything; others play on', async () => {
  const { playback, viewer, row, here, there } = await openTwo()
  const other = await playback.newPlayingViewer({ userId: 'ben' })
  await liveOf(there, row.id)
  const watchRows = createRowWatch(here) // runs once a second
  await watchRows()
  const stop = () =>
    stopSessions({ ...there, countries: there.countries }, { accountId: row.accountId, by: 'server', target: { userId: 'ann' } })
  expect(await stop()).toBe(1)
  await watchRows()
  expect(await outcomeOf(playback.ask(viewer))).toBe('session-ended: stopped')
  expect(await outcomeOf(playback.ask(other))).toBe('allowed')
})

test('F-84: a session that one server stops ends at another one when that saves it next', async () => {
  const { playback, viewer, row, here, there } = await openTwo()
  const session = await liveOf(there, row.id)
  await stopSessions(there, { accountId: row.accountId, by: 'command-line', target: { userId: 'ann' } })
  expect(session.row.endReason).toBe('stopped')
  playback.passS(1)
  await playback.ask(viewer)
  await here.sessions.save()
  expect(await outcomeOf(playback.ask(viewer))).toBe('session-ended: stopped')
  expect((await playback.rowOf(viewer))?.endReason).toBe('stopped')
})
