import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { cutVideo } from '../videos.ts'
import { startChromium } from './chromium.ts'
import { compareWithSource, findColour, type Likeness } from './frame-pixels.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'

const { test: sampled, draw } = sampledTests('playing in a browser', 1)

// Videos that people made, from the upload to the picture in Debian's Chromium, compared with the file that was uploaded.

const ALIKE = 0.9 // SSIM; measured: 0.96 and better
const DESKTOP = { width: 1280, height: 720 }
const PHONE = { width: 390, height: 844 }

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let hello: string

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
  hello = reelgate.videoId
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('a phone recording plays from its first frame to its last as it was recorded', async () => {
  const player = await watch(hello)
  await player.play()
  const likenesses = await compareWithSource(await player.takeFrames(0, 2, 4.2, 6, 8), footage.movieHello)
  expectSourcesPicture(likenesses)
  for (const { source, neighbour } of likenesses) expect(neighbour).toBeLessThan(source) // little moves in it, but never nothing
  await player.shows('playing', 'ended')
  const { framesDecoded, soundBytesDecoded } = await player.video()
  expect(framesDecoded).toBe(249) // what decodes of its 250
  expect(soundBytesDecoded).toBeGreaterThan(50_000)
})

sampled('a video of 28 s plays past its first key window, after a seek forward and after one back', async () => {
  const source = await cutVideo(footage.wannaworktogether, 28)
  const player = await watch(await add(source), { options: '&t=8' }) // the windows end at 12 and 24 s
  await player.play()
  const early = await player.playsPast(8.5)
  const first = await player.takeFrames(10, 11.9, 12.1, 13)
  const later = await player.video()
  const playedS = later.timeS - early.timeS
  expect(later.framesDecoded - early.framesDecoded).toBeGreaterThan(0.9 * 29.97 * playedS)
  expect(later.soundBytesDecoded - early.soundBytesDecoded).toBeGreaterThan(4000 * playedS) // silence is smaller than that

  const forwardS = await player.seekNear(25)
  const forward = await player.takeFrames(forwardS + 0.5)
  const backS = await player.seekNear(17)
  const back = await player.takeFrames(backS + 0.5)
  expect(Math.abs(forwardS - 25)).toBeLessThan(1)
  expect(Math.abs(backS - 17)).toBeLessThan(1)

  const likenesses = await compareWithSource([...first, ...forward, ...back], source)
  expectSourcesPicture(likenesses)
  expect(likenesses.filter(({ neighbour }) => neighbour < ALIKE).length).toBeGreaterThan(likenesses.length / 2) // some of it stands still
  expect(player.complaints).toEqual([])
})

sampled('a video that decodes falsely after a seek shows each of its frames, and plays to its end', async () => {
  const player = await watch(await add(footage.cockatoo))
  await player.play()
  const frames = await player.takeFrames(0, 3, 6, 9, 11.9, 12, 12.3, 12.7, 13, 13.3, 13.6, 13.9)
  const likenesses = await compareWithSource(frames, footage.cockatoo)
  expectSourcesPicture(likenesses)
  for (const { neighbour } of likenesses) expect(neighbour).toBeLessThan(ALIKE)
  await player.shows('playing', 'ended')
  const { framesDecoded, soundBytesDecoded } = await player.video()
  expect(framesDecoded).toBe(280)
  expect(soundBytesDecoded).toBeGreaterThan(0) // its MP3 holds digital silence, which AAC says in few bytes
})

sampled('the viewer chooses another picture size in the settings and gets it', async () => {
  const player = await watch(hello, { options: '&loop=true' })
  await player.play()
  await player.playsPast(0.5)
  await player.chooseSetting('Quality', '720p')
  await player.until(({ heightPx }) => heightPx === 720)
  await player.chooseSetting('Quality', '240p')
  await player.until(({ heightPx }) => heightPx === 240)
})

const MARKS = [
  { type: 'text', text: 'school 7', alpha: '1', color: '0x00ff00', size: '20', x: '10%', y: '10%' },
  { type: 'rtext', text: '{name} {email}', alpha: '0.95', color: '0xff00ff', size: '16', interval: '500', skip: '0' },
]
const VIEWER = { name: 'Ada', email: 'ada@example.org' }
const GREEN = [0, 255, 0] as const
const MAGENTA = [245, 10, 245] as const

sampled.each([
  { screen: 'desktop', viewport: DESKTOP },
  { screen: 'phone', viewport: PHONE },
])('P15: the picture carries the viewer’s marks, one fixed and one moving, on a $screen', async ({ screen, viewport }) => {
  const otp = { annotate: JSON.stringify(MARKS), viewer: VIEWER }
  const player = await watch(hello, { viewport, otp, options: '&loop=true' })
  await player.play()
  await player.playsPast(0.5)
  const picture = pictureIn(viewport, 16 / 9)
  const fixed = await findColour(await player.screenshot(`marks-${screen}`), GREEN)
  expect(fixed.pixels).toBeGreaterThan(50)
  expect(Math.abs(fixed.leftPx - (picture.leftPx + 0.1 * picture.widthPx))).toBeLessThan(6)
  expect(Math.abs(fixed.topPx - (picture.topPx + 0.1 * picture.heightPx))).toBeLessThan(12)

  const locations = new Set<string>()
  while (locations.size < 3) {
    const moving = await findColour(await player.screenshot(`marks-${screen}-moved`), MAGENTA)
    expect(moving.pixels).toBeGreaterThan(50)
    expect(moving.topPx).toBeGreaterThanOrEqual(Math.floor(picture.topPx))
    expect(moving.bottomPx).toBeLessThanOrEqual(Math.ceil(picture.topPx + picture.heightPx))
    locations.add(`${moving.leftPx},${moving.topPx}`)
  }
})

sampled('a picture size that is chosen at the end of a short video is there when it begins again', async () => {
  const player = await watch(hello, { options: '&loop=true' })
  await player.play()
  await player.chooseSetting('Quality', '240p')
  await player.until(({ heightPx, timeS, durationS }) => heightPx === 240 && timeS > durationS - 1)
  await player.until(({ timeS }) => timeS < 1)
  await player.until(({ timeS, durationS }) => timeS > durationS - 1)
  await player.chooseSetting('Quality', '720p')
  await player.until(({ heightPx }) => heightPx === 720)
})

sampled('a video whose OTP asks for no mark shows none', async () => {
  const player = await watch(hello)
  await player.play()
  await player.playsPast(0.5)
  const png = await player.screenshot('no-marks')
  expect((await findColour(png, GREEN)).pixels).toBe(0)
  expect((await findColour(png, MAGENTA)).pixels).toBe(0)
})

async function add(path: string): Promise<string> {
  const videoId = await reelgate.owner.upload('Another', path)
  await untilFinished(reelgate, videoId)
  return videoId
}

async function watch(
  videoId: string,
  how: { viewport?: typeof DESKTOP; options?: string; otp?: Record<string, unknown> } = {},
): Promise<Player> {
  const browser = await chromium.newContext(how.viewport && { viewport: how.viewport })
  const otp = await reelgate.owner.issueOtp(videoId, how.otp)
  return openPlayer(browser, playerAddress(reelgate.url, otp, how.options))
}

function expectSourcesPicture(likenesses: readonly Likeness[]) {
  for (const { timeS, source } of likenesses) expect(source, `the frame at ${timeS} s`).toBeGreaterThanOrEqual(ALIKE)
}

/** The part of the window that a picture of this shape fills. */
function pictureIn(viewport: { width: number; height: number }, shape: number) {
  const widthPx = Math.min(viewport.width, viewport.height * shape)
  const heightPx = widthPx / shape
  return { leftPx: (viewport.width - widthPx) / 2, topPx: (viewport.height - heightPx) / 2, widthPx, heightPx }
}

draw()
