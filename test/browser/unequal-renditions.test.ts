import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { makeOddVideo, ODD_VIDEOS } from '../encode/format-matrix.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { openPlayer, playerAddress } from './player.ts'

// Videos of which sound and picture are not equally long, in Debian's Chromium. The drawn ones beep on every odd second.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate()
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const VIDEOS = [
  { is: 'of sound only, MP3', lengthS: 10, audioRenditions: true, posters: 0 },
  { is: 'whose sound ends 8 s early', lengthS: 12, audioRenditions: true, posters: 2 },
  { is: 'whose audio lasts 6 s longer', lengthS: 12, audioRenditions: true, posters: 2 },
  { is: 'without sound', lengthS: 10, audioRenditions: false, posters: 2 },
]

test.each(sampleOf('videos of unequal sound and picture', VIDEOS, 1))(
  'a video $is plays across the place where one of the two ends, and to its end',
  async ({ is, lengthS, audioRenditions, posters }) => {
    const recipe = ODD_VIDEOS.find((odd) => odd.is === is)
    if (!recipe) throw new Error(`no video ${is}`)
    const videoId = await reelgate.owner.upload(is, await makeOddVideo(recipe))
    await untilFinished(reelgate, videoId)
    const video = await reelgate.owner.video(videoId)
    expect(video.posters).toHaveLength(posters)
    expect(Math.abs(video.length - lengthS)).toBeLessThan(0.6)

    const context = await chromium.newContext()
    const player = await openPlayer(context, playerAddress(reelgate.url, await reelgate.owner.issueOtp(videoId)))
    await player.play()
    const early = await player.playsPast(0.5)
    expect(Math.abs(early.durationS - lengthS)).toBeLessThan(0.6)
    await player.seekNear(3)
    await player.playsPast(5)
    const before = (await player.video()).soundBytesDecoded
    await player.seekNear(lengthS - 2.5)
    await player.shows('playing', 'ended')
    const { timeS, framesDecoded, soundBytesDecoded } = await player.video()
    expect(Math.abs(timeS - lengthS)).toBeLessThan(0.6)
    expect(framesDecoded > 0).toBe(posters > 0)
    expect(soundBytesDecoded > before).toBe(audioRenditions)
    expect(player.complaints).toEqual([])
    await context.close()
  },
  120_000,
)
