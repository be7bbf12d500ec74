import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { addFile, makeImage } from '../assets/sample-files.ts'
import { untilFinished } from '../data-folder.ts'
import { COLOR_SOURCES, COLORS, drawColors, SPOTS } from '../encode/color-matrix.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { makeSound } from '../videos.ts'
import { startChromium } from './chromium.ts'
import { colorAt, findColour, type Rgb } from './frame-pixels.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'

const { test, draw } = sampledTests('pictures of any kind', 2)

// Whatever a file shows: its colors, watermarks on any of them, and a file that shows nothing.

const [RGB] = COLOR_SOURCES
if (!RGB) throw new Error('there is no source of RGB')

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await drawColors({ ...RGB, seconds: 4 }), title: 'Colors' })
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

type Watching = BrowserContextOptions & { videoId?: string; otp?: Record<string, unknown>; options?: string }

async function watch({ videoId = reelgate.videoId, otp, options = '&loop=true', ...context }: Watching = {}): Promise<Player> {
  const address = playerAddress(reelgate.url, await reelgate.owner.issueOtp(videoId, otp), options)
  return openPlayer(await chromium.newContext(context), address)
}

test('I-23: a video of RGB has its colors in the browser at every quality, and in its poster', async () => {
  const player = await watch({ viewport: { width: 1280, height: 720 } })
  await player.shows('ready')
  const poster = `document.querySelector('video').poster`
  await expect.poll(() => player.page.evaluate(`${poster} && fetch(${poster}).then(() => true)`)).toBe(true)
  const shown = [await player.screenshot('colors-poster')]
  await player.play()
  for (const label of ['720p', '480p', '240p']) {
    await player.chooseSetting('Quality', label)
    await player.until(({ heightPx }) => `${heightPx}p` === label)
    const [frame] = await player.takeFrames(0.1)
    shown.push(Buffer.from(frame?.pngBase64 ?? '', 'base64'))
  }
  // Above the middle, which is under the button that plays.
  for (const png of shown)
    for (const [index, color] of COLORS.entries()) expectColor(colorAt(png, [SPOTS[index] ?? 0, 0.3]), color)
})

/** Without a GPU, Chromium multiplies BT.709's blue by 2 instead of 2.1. */
const BLUE_TOLERANCE = 8

function expectColor(seen: Rgb, color: Rgb) {
  const [red = 0, green = 0, blue = 0] = seen.map((value, at) => Math.abs(value - (color[at] ?? 0)))
  expect(Math.max(red, green), `${seen} instead of ${color}`).toBeLessThanOrEqual(4)
  expect(blue, `${seen} instead of ${color}`).toBeLessThanOrEqual(BLUE_TOLERANCE)
}

/** Text in the colors of two stripes, on the stripe of its color. */
const WATERMARKS = [
  { type: 'text', text: 'reader', color: '0xffffff', size: '24', x: '63%', y: '45%', alpha: '1' },
  { type: 'text', text: 'reader', color: '0x000000', size: '24', x: '83%', y: '45%', alpha: '1' },
]

test('P-15: a white watermark on white and a black one on black are legible', async () => {
  const player = await watch({ otp: { annotate: JSON.stringify(WATERMARKS) }, viewport: { width: 768, height: 432 } })
  await player.play()
  await player.playsPast(0.3)
  for (const [leftPart, outline] of [
    [0.6, [17, 18, 20]],
    [0.8, [255, 255, 255]],
  ] as const) {
    const clip = { x: 768 * leftPart + 4, y: 432 * 0.4, width: 768 / 5 - 8, height: 80 }
    const { pixels, ...box } = findColour(await player.page.screenshot({ clip }), outline)
    expect(pixels).toBeGreaterThan(150)
    expect(box.rightPx - box.leftPx).toBeGreaterThan(50)
  }
  await player.keepPicture('watermarks-768')
})

test('P-16: in a frame of 320 pixels a title gives way to a watermark, and controls leave half of the picture', async () => {
  const annotate = JSON.stringify([{ type: 'text', text: 'reader@example.org', size: '16', x: '5%', y: '5%' }])
  const viewport = { width: 320, height: 180 }
  const [marked, plain] = [await watch({ otp: { annotate }, viewport }), await watch({ viewport })]
  for (const [player, title] of [
    [marked, 'rgba(0, 0, 0, 0)'],
    [plain, 'rgb(242, 240, 236)'],
  ] as const) {
    await player.play()
    await player.playsPast(0.3)
    await player.page.mouse.move(160, 40)
    const { y = 0 } = (await player.page.locator('media-time-range').boundingBox()) ?? {}
    expect(y).toBeGreaterThan(viewport.height / 2)
    await expect.poll(() => titleStyle(player, 'color')).toBe(title)
    await player.keepPicture(`small-320-${player === marked ? 'marked' : 'plain'}`)
  }
})

test('P-14: audio shows its title and a wave, or its poster, and is not offered as picture in picture', async () => {
  const videoId = await reelgate.owner.upload('A talk', await makeSound(4))
  await untilFinished(reelgate, videoId)
  const plain = await watch({ videoId, viewport: { width: 768, height: 432 } })
  await plain.play()
  await plain.playsPast(0.3)
  await plain.page.locator('media-controller[userinactive]').waitFor()
  expect(await titleStyle(plain, 'opacity')).toBe('1')
  const wave = findColour(await plain.screenshot('audio-768'), [165, 162, 155])
  expect(wave.rightPx - wave.leftPx).toBeGreaterThan(300)
  await plain.page.mouse.move(10, 10)
  expect(await plain.page.getByRole('button', { name: 'Picture in picture' }).isVisible()).toBe(false)
  await plain.openSettings()
  expect(await plain.page.getByRole('menuitem', { name: 'Picture in picture' }).count()).toBe(0)

  expect((await addFile(reelgate.owner, videoId, await makeImage('320x180'))).status).toBe(200)
  const player = await watch({ videoId, viewport: { width: 768, height: 432 } })
  await player.play()
  await player.playsPast(0.3)
  const middle = async () => colorAt(await player.screenshot('audio-poster-768'), [0.5, 0.4])
  await expect.poll(async () => (await middle())[0]).toBeGreaterThan(250)
})

function titleStyle(player: Player, property: 'color' | 'opacity'): Promise<unknown> {
  return player.page.evaluate(`getComputedStyle(document.querySelector('.title')).${property}`)
}

draw()
