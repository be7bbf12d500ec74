import { expect, test } from 'vitest'
import { removeTombstone, tombstoneVideos } from '../../src/catalogue/video-store.ts'
import { prunePlayback } from '../../src/playback/prune.ts'
import { createViewer } from '../viewer.ts'
import { openBarePlayback } from './playback-deps.ts'

// A viewer that OTPs name goes on where they left the video, in whatever browser. The video is an hour long.

async function openVideo() {
  const bare = await openBarePlayback({ durationS: 3600 })
  return {
    ...bare,
    /** A viewer who has opened a new OTP in a browser of its own. */
    async open(userId?: string) {
      const viewer = createViewer('http://viewer.invalid')
      const session = await bare.redeemBy(viewer, await bare.newOtp(3600, { userId }))
      return { viewer, startsAtS: session.positionS }
    },
    /** The viewer watches up to there; the server saves it as it does every few seconds. */
    async watchTo(viewer: Parameters<typeof bare.ask>[0], positionS: number) {
      const session = await bare.ask(viewer)
      session.positionS = positionS
      await bare.save()
    },
  }
}

test('a viewer continues where they left the video, in another browser and after the server was killed', async () => {
  const { open, watchTo, crash } = await openVideo()
  const { viewer, startsAtS } = await open('viewer-1')
  expect(startsAtS).toBe(0)
  await watchTo(viewer, 1234.5)
  expect((await open('viewer-1')).startsAtS).toBe(1234.5)
  crash()
  expect((await open('viewer-1')).startsAtS).toBe(1234.5)
})

test('a reload after the server was killed continues where the viewer was', async () => {
  const { open, watchTo, ask, crash } = await openVideo()
  const { viewer } = await open('viewer-1')
  await watchTo(viewer, 600)
  crash()
  expect((await ask(viewer)).positionS).toBe(600)
})

test('another viewer, and one whom no OTP names, begin at the beginning', async () => {
  const { open, watchTo } = await openVideo()
  await watchTo((await open('viewer-1')).viewer, 600)
  await watchTo((await open()).viewer, 900)
  expect([(await open('viewer-2')).startsAtS, (await open()).startsAtS]).toEqual([0, 0])
  expect((await open('viewer-1')).startsAtS).toBe(600)
})

test.each([
  ['within ten seconds of the end', 3595],
  ['within ten seconds of the beginning', 9],
])('who left it %s begins at the beginning', async (_, positionS) => {
  const { open, watchTo, leave, save } = await openVideo()
  const { viewer } = await open('viewer-1')
  await watchTo(viewer, 600)
  await watchTo(viewer, positionS)
  await leave(viewer)
  await save()
  expect((await open('viewer-1')).startsAtS).toBe(0)
})

test('a place is written down when it is 15 seconds away, or when the page is closed', async () => {
  const { open, watchTo, leave, save } = await openVideo()
  const { viewer } = await open('viewer-1')
  await watchTo(viewer, 100)
  await watchTo(viewer, 114)
  expect((await open('viewer-1')).startsAtS).toBe(100)
  await leave(viewer)
  await save()
  expect((await open('viewer-1')).startsAtS).toBe(114)
})

test('places go with their video, and when viewer data is no longer kept', async () => {
  const { open, watchTo, db, write, videoId, passS, deps, nowS } = await openVideo()
  const count = async () => (await db.selectFrom('watchPosition').selectAll().execute()).length
  await watchTo((await open('viewer-1')).viewer, 600)
  passS(89 * 24 * 3600)
  await prunePlayback(deps, 90)
  expect(await count()).toBe(1)
  passS(2 * 24 * 3600)
  await prunePlayback(deps, 90)
  expect(await count()).toBe(0)

  await watchTo((await open('viewer-1')).viewer, 600)
  const { accountId } = await db.selectFrom('account').select('id as accountId').executeTakeFirstOrThrow()
  await write(async (tx) => {
    await tombstoneVideos(tx, accountId, [videoId], nowS())
    await removeTombstone(tx, videoId)
  })
  expect(await count()).toBe(0)
})
