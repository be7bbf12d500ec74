import { expect, test } from 'vitest'
import { prunePlayback } from '../../src/playback/prune.ts'
import { type Beat, recordBeat } from '../../src/playback/serve.ts'
import { countWatched, newWatchedCounter, recordWindow, type TimedBeat } from '../../src/playback/sessions/watched-seconds.ts'
import { decodeIntervals, pairsOf } from '../../src/viewers/intervals.ts'
import type { Viewer } from '../viewer.ts'
import { openBarePlayback } from './playback-deps.ts'

// What counts as watched: what two beats and the keys of the session show, never what a page claims. Key windows are 12 s.

type Said = [state: TimedBeat['state'], atS: number, positionS: number, rate?: number]

/** The spans that the beats of a session count, which was given the keys of these windows. */
function spansOf(windows: number[], beats: Said[]): [number, number][] {
  const watched = newWatchedCounter(null)
  for (const window of windows) recordWindow(watched, window)
  return beats.flatMap(([state, atS, positionS, rate = 1]) =>
    countWatched(watched, { state, atS, positionS, rate }, 12).map(({ fromS, toS }): [number, number] => [fromS, toS]),
  )
}

const TEN = Array.from({ length: 10 }, (_, window) => window)

test.each<[string, number[], Said[], [number, number][]]>([
  [
    'two beats while it plays',
    TEN,
    [
      ['playing', 0, 0],
      ['playing', 6, 6],
    ],
    [[0, 6]],
  ],
  ['one beat: nothing', TEN, [['playing', 6, 6]], []],
  [
    'no keys: nothing',
    [],
    [
      ['playing', 0, 0],
      ['playing', 6, 6],
      ['playing', 12, 12],
    ],
    [],
  ],
  [
    'only in the windows that were given',
    [0, 2],
    [
      ['playing', 0, 0],
      ['playing', 18, 30, 2],
    ],
    [
      [0, 12],
      [24, 30],
    ],
  ],
  [
    'beats a lease apart',
    TEN,
    [
      ['playing', 0, 0],
      ['playing', 18, 18],
    ],
    [[0, 18]],
  ],
  [
    'beats more than a lease apart: nothing',
    TEN,
    [
      ['playing', 0, 0],
      ['playing', 18.1, 18],
    ],
    [],
  ],
  [
    'at double speed',
    TEN,
    [
      ['playing', 0, 0, 2],
      ['playing', 6, 12, 2],
    ],
    [[0, 12]],
  ],
  [
    'faster than its rate: nothing',
    TEN,
    [
      ['playing', 0, 0],
      ['playing', 6, 12],
    ],
    [],
  ],
  [
    'faster than a video may play, whatever rate is claimed: nothing',
    TEN,
    [
      ['playing', 0, 0, 16],
      ['playing', 6, 96, 16],
    ],
    [],
  ],
  [
    'a seek forward: nothing',
    TEN,
    [
      ['playing', 0, 0],
      ['playing', 6, 60],
      ['playing', 12, 66],
    ],
    [[60, 66]],
  ],
  [
    'a seek back: nothing',
    TEN,
    [
      ['playing', 0, 60],
      ['playing', 6, 10],
      ['playing', 12, 16],
    ],
    [[10, 16]],
  ],
  [
    'up to a pause',
    TEN,
    [
      ['playing', 0, 0],
      ['paused', 4, 4],
    ],
    [[0, 4]],
  ],
  [
    'nothing of what a paused page claims',
    TEN,
    [
      ['paused', 0, 0],
      ['paused', 6, 6],
      ['playing', 12, 12],
    ],
    [],
  ],
  [
    'on after a pause, without losing a second',
    TEN,
    [
      ['playing', 0, 0],
      ['paused', 4.5, 4.5],
      ['playing', 90, 4.5],
      ['playing', 96, 10.5],
    ],
    [
      [0, 4],
      [4, 10],
    ],
  ],
  [
    'up to the end',
    TEN,
    [
      ['playing', 0, 100],
      ['ended', 6, 106],
    ],
    [[100, 106]],
  ],
  [
    'while it stalled in between',
    TEN,
    [
      ['playing', 0, 0],
      ['stalled', 6, 2],
      ['playing', 12, 5],
    ],
    [
      [0, 2],
      [2, 5],
    ],
  ],
  [
    'a page that only stalls: nothing',
    TEN,
    [
      ['stalled', 0, 0],
      ['stalled', 6, 6],
    ],
    [],
  ],
  [
    'whole seconds only, none twice',
    TEN,
    [
      ['playing', 0, 10.4],
      ['playing', 6, 16.3],
      ['playing', 12, 22.6],
    ],
    [
      [11, 16],
      [16, 22],
    ],
  ],
  [
    'what was played before its first beat',
    TEN,
    [
      ['playing', 0, 0.2],
      ['playing', 6, 6.2],
    ],
    [[0, 6]],
  ],
])('counts %s', (_, windows, beats, expected) => {
  expect(spansOf(windows, beats)).toEqual(expected)
})

test('beats that arrive early and late lose nothing; what is gained so is two seconds once, not with each beat', () => {
  const late: Said[] = [
    ['playing', 0, 0],
    ['playing', 7.5, 6],
    ['playing', 12, 12],
    ['playing', 19.5, 18],
    ['playing', 24, 24],
  ]
  expect(spansOf(TEN, late).at(-1)?.[1]).toBe(24)
  // A script that claims a second more with each beat, or two with every other.
  const ahead = Array.from({ length: 11 }, (_, n): Said => ['playing', 6 * n, 7 * n])
  expect(spansOf(TEN, ahead).reduce((sum, [from, to]) => sum + to - from, 0)).toBeLessThanOrEqual(62)
  const jumping = Array.from({ length: 100 }, (_, n): Said => ['playing', 0.001 * n, n % 2 === 0 ? n : n + 1])
  expect(spansOf(TEN, jumping).reduce((sum, [from, to]) => sum + to - from, 0)).toBeLessThanOrEqual(2)
})

async function openVideo(durationS = 120) {
  const bare = await openBarePlayback({ durationS })
  return {
    ...bare,
    /** Beats every 6 s from a position on, for so long; with the keys of its windows or without. */
    async watch(viewer: Viewer, { fromS, forS, withKeys = true }: { fromS: number; forS: number; withKeys?: boolean }) {
      const say = async (beat: Beat) => recordBeat(bare.deps, await bare.ask(viewer), beat)
      await say({ state: 'playing', positionS: fromS, rate: 1 })
      for (let passedS = 6; passedS <= forS; passedS += 6) {
        if (withKeys) await bare.key(viewer, Math.floor((fromS + passedS - 6) / 12))
        bare.passS(6)
        await say({ state: 'playing', positionS: fromS + passedS, rate: 1 })
      }
    },
    async watched(userId = 'viewer-1') {
      const row = await bare.db.selectFrom('viewing').selectAll().where('userId', '=', userId).executeTakeFirst()
      return row && { intervals: pairsOf(decodeIntervals(row.intervals)), watchedS: row.watchedS, positionS: row.positionS }
    },
    days: () => bare.db.selectFrom('viewingDay').select(['day', 'userId', 'intervals', 'watchedS']).orderBy('day').execute(),
  }
}

test('what a viewer watches in several sessions is merged and saved', async () => {
  const { newPlayingViewer, watch, watched, save } = await openVideo()
  const first = await newPlayingViewer({ userId: 'viewer-1' })
  await watch(first, { fromS: 0, forS: 24 })
  await watch(first, { fromS: 60, forS: 12 })
  await save()
  expect(await watched()).toEqual({
    intervals: [
      [0, 24],
      [60, 72],
    ],
    watchedS: 36,
    positionS: 72,
  })
  await watch(await newPlayingViewer({ userId: 'viewer-1' }), { fromS: 18, forS: 12 })
  await save()
  expect(await watched()).toEqual({
    intervals: [
      [0, 30],
      [60, 72],
    ],
    watchedS: 42,
    positionS: 30,
  })
})

test('a script that beats without keys has watched nothing, not even what another session of its viewer was given', async () => {
  const { newPlayingViewer, watch, watched, save } = await openVideo()
  await watch(await newPlayingViewer({ userId: 'viewer-1' }), { fromS: 0, forS: 12 })
  await watch(await newPlayingViewer({ userId: 'viewer-1' }), { fromS: 0, forS: 60, withKeys: false })
  await watch(await newPlayingViewer({ userId: 'viewer-2' }), { fromS: 0, forS: 60, withKeys: false })
  await save()
  expect(await watched()).toMatchObject({ watchedS: 12 })
  expect(await watched('viewer-2')).toBeUndefined()
})

test('the seconds before and after a seek count, and not those in between', async () => {
  const { newPlayingViewer, watched, ask, key, deps, passS, save } = await openVideo()
  const viewer = await newPlayingViewer({ userId: 'viewer-1' })
  const say = async (positionS: number, leftAtS?: number) =>
    recordBeat(deps, await ask(viewer), { state: 'playing', positionS, rate: 1, leftAtS })
  for (const window of [0, 1, 5, 6]) await key(viewer, window)
  await say(0)
  passS(3)
  await say(60, 3)
  passS(4)
  await say(64)
  passS(2)
  await say(20, 66)
  passS(1)
  await say(21)
  await save()
  expect(await watched()).toEqual({
    intervals: [
      [0, 3],
      [20, 21],
      [60, 66],
    ],
    watchedS: 10,
    positionS: 21,
  })
})

test('a page that claims to have left a place that it could not have reached has watched nothing of it', async () => {
  const { newPlayingViewer, watched, ask, key, deps, passS, save } = await openVideo()
  const viewer = await newPlayingViewer({ userId: 'viewer-1' })
  for (const window of [0, 1, 2, 3, 4, 5, 6, 7, 8]) await key(viewer, window)
  const say = async (positionS: number, leftAtS?: number) =>
    recordBeat(deps, await ask(viewer), { state: 'playing', positionS, rate: 1, leftAtS })
  await say(0)
  for (let at = 0; at < 5; at++) {
    passS(1)
    await say(0, 100) // a second has passed
  }
  await save()
  expect(await watched()).toBeUndefined()
})

test('a session that names no viewer leaves no row', async () => {
  const { newPlayingViewer, watch, db, save } = await openVideo()
  await watch(await newPlayingViewer(), { fromS: 0, forS: 60 })
  await save()
  expect(await db.selectFrom('viewing').selectAll().execute()).toEqual([])
  expect(await db.selectFrom('viewingDay').selectAll().execute()).toEqual([])
})

test('after a kill the session counts on with the keys that it has, and adds to what was saved', async () => {
  const { newPlayingViewer, watch, watched, key, save, crash } = await openVideo()
  const viewer = await newPlayingViewer({ userId: 'viewer-1' })
  await watch(viewer, { fromS: 0, forS: 12 })
  await key(viewer, 1)
  await save()
  crash()
  await watch(viewer, { fromS: 12, forS: 12, withKeys: false }) // has this key from before
  await watch(viewer, { fromS: 24, forS: 12, withKeys: false }) // never had this one
  await watch(viewer, { fromS: 48, forS: 12 })
  await save()
  expect(await watched()).toMatchObject({
    intervals: [
      [0, 24],
      [48, 60],
    ],
  })
})

test('each day has what was watched on it, also when midnight comes before the save', async () => {
  const { newPlayingViewer, watch, days, save, passS, nowS } = await openVideo()
  passS(24 * 3600 - (nowS() % (24 * 3600)) - 12)
  const day = Math.floor(nowS() / (24 * 3600))
  await watch(await newPlayingViewer({ userId: 'viewer-1' }), { fromS: 0, forS: 30 })
  await save()
  await watch(await newPlayingViewer({ userId: 'viewer-1' }), { fromS: 0, forS: 12 })
  await save()
  expect(await days()).toEqual([
    { day, userId: 'viewer-1', intervals: '0 6', watchedS: 6 },
    { day: day + 1, userId: 'viewer-1', intervals: '0 30', watchedS: 30 },
  ])
})

test('what is watched while it is saved is saved the next time', async () => {
  const { newPlayingViewer, watch, watched, save } = await openVideo()
  const viewer = await newPlayingViewer({ userId: 'viewer-1' })
  await watch(viewer, { fromS: 0, forS: 12 })
  const saving = save()
  await watch(viewer, { fromS: 12, forS: 12 })
  await saving
  await save()
  expect(await watched()).toMatchObject({ intervals: [[0, 24]] })
})

test('a video that is deleted meanwhile gets no new rows', async () => {
  const { newPlayingViewer, watch, write, videoId, watched, save, nowS } = await openVideo()
  await watch(await newPlayingViewer({ userId: 'viewer-1' }), { fromS: 0, forS: 12 })
  await write((tx) => tx.updateTable('video').set({ deletedAtS: nowS() }).where('id', '=', videoId).execute())
  await save()
  expect(await watched()).toBeUndefined()
})

test('what was watched is removed after 90 days', async () => {
  const { newPlayingViewer, watch, watched, days, save, passS, deps } = await openVideo()
  await watch(await newPlayingViewer({ userId: 'viewer-1' }), { fromS: 0, forS: 12 })
  await save()
  passS(89 * 24 * 3600)
  await prunePlayback(deps, 90)
  expect([await watched(), await days()]).toMatchObject([{ watchedS: 12 }, [{ watchedS: 12 }]])
  passS(2 * 24 * 3600)
  await prunePlayback(deps, 90)
  expect([await watched(), await days()]).toEqual([undefined, []])
})
