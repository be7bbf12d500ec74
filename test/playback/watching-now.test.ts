import { expect, test } from 'vitest'
import { markViewed } from '../../src/playback/sessions/session-store.ts'
import { listSessions } from '../../src/playback/sessions/stop.ts'
import type { Viewer } from '../viewer.ts'
import { openBarePlayback } from './playback-deps.ts'

// Who is in the list of who watches now: playback-protocol.md, section 4.

type Playback = Awaited<ReturnType<typeof openBarePlayback>>

async function open() {
  const playback = await openBarePlayback()
  const { accountId } = await playback.db
    .selectFrom('video')
    .select('accountId')
    .where('id', '=', playback.videoId)
    .executeTakeFirstOrThrow()
  const list = async (filter = {}, limit = 10) =>
    (await listSessions(playback.deps, accountId, filter, limit)).map(({ id }) => id)
  return { ...playback, playback, list }
}

/** A viewer whose player was started. */
async function start(playback: Playback, options: { userId?: string; videoId?: string } = {}): Promise<Viewer> {
  const viewer = await playback.newPlayingViewer(options)
  await playback.key(viewer, 0)
  return viewer
}
const idOf = ({ state }: Viewer) => state.session

test('U35: a player that is open and was never started is not among those who watch now', async () => {
  const { playback, list } = await open()
  const viewer = await playback.newPlayingViewer()
  await playback.ask(viewer, 'playlist')
  await playback.save()
  expect(await list()).toEqual([])
  await playback.key(viewer, 0)
  expect(await list()).toEqual([idOf(viewer)])
})

test('U35: ten players that were removed from their page leave the list immediately, and one that comes back is in it again', async () => {
  const { playback, list } = await open()
  const viewers: Viewer[] = []
  for (let n = 0; n < 10; n++) {
    const viewer = await start(playback)
    await playback.beat(viewer)
    viewers.push(viewer)
    if (n % 2 === 0) await playback.save()
  }
  expect(await list()).toHaveLength(10)
  for (const viewer of viewers) await playback.leave(viewer)
  expect(await list()).toEqual([])
  await playback.save()
  expect(await list()).toEqual([])
  const [first] = viewers
  if (first) await playback.beat(first)
  expect(await list()).toEqual([first && idOf(first)])
})

test('U35: a page that went away without a word is out of the list when its stream slot would be free', async () => {
  const { playback, list } = await open()
  const viewer = await start(playback)
  await playback.beat(viewer)
  playback.passS(17)
  expect(await list()).toEqual([idOf(viewer)])
  await playback.save()
  playback.passS(1)
  expect(await list()).toEqual([])
})

test('U35: a paused page, which reports once a minute, is in the list for as long as it is open', async () => {
  const { playback, list } = await open()
  const viewer = await start(playback)
  for (let minute = 0; minute < 5; minute++) {
    await playback.beat(viewer, 'paused')
    playback.passS(60)
    await playback.save()
    expect(await list()).toEqual([idOf(viewer)])
  }
  playback.passS(30)
  expect(await list()).toEqual([])
})

test('U35: who watched when the server was restarted is in the list before the player reports again', async () => {
  const { playback, list } = await open()
  const [stays, left] = [await start(playback), await start(playback)]
  await playback.leave(left)
  await playback.save()
  // As the counter of views writes it.
  for (const { state } of [stays, left])
    await playback.write((tx) => markViewed(tx, { id: state.session, viewedAtS: playback.nowS() }))
  playback.crash()
  expect(await list()).toEqual([idOf(stays)])
  await playback.leave(stays)
  expect(await list()).toEqual([])
})

test('the list is filtered by viewer and by video, has the newest first and no more than asked for', async () => {
  const { playback, list } = await open()
  const videoId = await playback.addVideo()
  const ann = await start(playback, { userId: 'ann' })
  playback.passS(1)
  const ben = await start(playback, { userId: 'ben', videoId })
  expect(await list()).toEqual([idOf(ben), idOf(ann)])
  expect(await list({}, 1)).toEqual([idOf(ben)])
  expect(await list({ userId: 'ann' })).toEqual([idOf(ann)])
  expect(await list({ videoId })).toEqual([idOf(ben)])
})
