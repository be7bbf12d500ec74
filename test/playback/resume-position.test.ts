import { expect, test } from 'vitest'
import { recordBeat } from '../../src/playback/serve.ts'
import { createViewer, type Viewer } from '../viewer.ts'
import { openBarePlayback } from './playback-deps.ts'

// A viewer that OTPs name resumes behind the last second that they watched, in every browser. The video is an hour long.

async function openVideo() {
  const bare = await openBarePlayback({ durationS: 3600 })
  const beat = async (viewer: Viewer, positionS: number, state: 'playing' | 'paused' = 'playing') =>
    recordBeat(bare.deps, await bare.ask(viewer), { state, positionS, rate: 1 })
  return {
    ...bare,
    beat,
    /** A viewer who has opened a new OTP in a browser of its own. */
    async open(userId?: string) {
      const viewer = createViewer('http://viewer.invalid')
      const session = await bare.redeemBy(viewer, await bare.newOtp(3600, { userId }))
      return { viewer, startsAtS: session.positionS }
    },
    /** The viewer watches the six seconds before this place. */
    async watchTo(viewer: Viewer, positionS: number) {
      for (const atS of [positionS - 6, positionS - 0.1]) await bare.key(viewer, Math.floor(atS / 12))
      await beat(viewer, positionS - 6)
      bare.passS(6)
      await beat(viewer, positionS)
    },
  }
}

test('a viewer continues where they left the video, in another browser and after the server was killed', async () => {
  const { open, watchTo, save, crash } = await openVideo()
  const { viewer, startsAtS } = await open('viewer-1')
  expect(startsAtS).toBe(0)
  await watchTo(viewer, 234.5)
  expect((await open('viewer-1')).startsAtS).toBe(234)
  await save()
  crash()
  expect((await open('viewer-1')).startsAtS).toBe(234)
})

test('a reload after the server was killed continues where the viewer was', async () => {
  const { open, watchTo, ask, save, crash } = await openVideo()
  const { viewer } = await open('viewer-1')
  await watchTo(viewer, 120)
  await save()
  crash()
  expect((await ask(viewer)).positionS).toBe(120)
})

test('what was not watched is no place to resume: a look ahead, and what a page reports without keys', async () => {
  const { open, watchTo, beat, passS } = await openVideo()
  const { viewer } = await open('viewer-1')
  await watchTo(viewer, 120)
  await beat(viewer, 3000, 'paused')
  expect((await open('viewer-1')).startsAtS).toBe(120)
  for (const positionS of [2000, 2006, 2012]) {
    await beat(viewer, positionS)
    passS(6)
  }
  expect((await open('viewer-1')).startsAtS).toBe(120)
})

test('another viewer, and one that no OTP names, start at the beginning', async () => {
  const { open, watchTo } = await openVideo()
  await watchTo((await open('viewer-1')).viewer, 120)
  await watchTo((await open()).viewer, 240)
  expect([(await open('viewer-2')).startsAtS, (await open()).startsAtS]).toEqual([0, 0])
  expect((await open('viewer-1')).startsAtS).toBe(120)
})

test.each([
  ['within ten seconds of the end', 3595],
  ['within ten seconds of the beginning', 9],
])('a viewer who left it %s starts at the beginning', async (_, positionS) => {
  const { open, watchTo } = await openVideo()
  const { viewer } = await open('viewer-1')
  await watchTo(viewer, 120)
  await watchTo(viewer, positionS)
  expect((await open('viewer-1')).startsAtS).toBe(0)
})
