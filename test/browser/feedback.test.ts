import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { addFile } from '../assets/sample-files.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

const { test, draw } = sampledTests('what controls show', 4)

// What keys and gestures change, and how the player shows it. In every engine: engines/viewers-way.ts.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  await addFile(reelgate.owner, reelgate.videoId, '1\n00:00:00,000 --> 00:00:30,000\nHello\n', 'en')
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

async function watch(context: BrowserContextOptions = {}, options = ''): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  const player = await openPlayer(await chromium.newContext(context), playerAddress(reelgate.url, otp, `&t=20${options}`))
  await player.shows('ready')
  return player
}

async function playAndPause(player: Player): Promise<number> {
  await player.play()
  await player.playsPast(20)
  await player.page.keyboard.press('k')
  return (await player.until(({ paused, seeking }) => paused && !seeking)).timeS
}

/** Records each text of the polite live region, and whether it could be seen. */
const RECORD_SIGNS = `{
  window.signs = []
  const region = document.querySelector('[aria-live="polite"]')
  new MutationObserver(() => {
    if (region.textContent !== '') signs.push([region.textContent, region.checkVisibility({ opacityProperty: true })])
  }).observe(region, { childList: true })
}`

test('P-09: each key shows over the picture what it has changed, in one polite live region', async () => {
  const player = await watch()
  await player.play()
  await player.playsPast(20)
  const { page } = player
  await page.evaluate(RECORD_SIGNS)
  for (const [key, words] of [
    ['ArrowDown', 'Volume 95 %'],
    ['ArrowUp', 'Volume 100 %'],
    ['m', 'Sound off'],
    ['m', 'Sound on'],
    ['>', 'Speed 1.25 ×'],
    ['<', 'Speed 1 ×'],
    ['c', 'Captions: English'],
    ['c', 'Captions off'],
    ['j', '10 seconds back'],
    ['ArrowRight', '5 seconds ahead'],
    ['ArrowRight', '10 seconds ahead'],
    ['l', '20 seconds ahead'],
    ['ArrowLeft', '5 seconds back'],
    ['5', '0:30'],
    ['k', 'Pause'],
    ['.', 'One frame ahead'],
    ['k', 'Play'],
  ] as const) {
    await page.keyboard.press(key)
    await expect.poll(() => page.evaluate('signs.pop()'), { message: key }).toEqual([words, true])
  }
  expect(await page.evaluate(`document.querySelectorAll('[aria-live]').length`)).toBe(1)
  await player.keepPicture('feedback-sign')
  await expect.poll(() => page.locator('[aria-live="polite"]:empty').count()).toBe(1)
  expect(player.complaints).toEqual([])
})

test('P-09: the keys , and . show the frame before and the next one, and pause', async () => {
  const player = await watch()
  await playAndPause(player)
  const frame = async () => Math.floor(10 * (await player.until(({ seeking }) => !seeking)).timeS + 0.01)
  await player.page.keyboard.press('3') // not where a segment begins: Chromium takes its first frame for the one before, until that is loaded
  await player.until(({ timeS, seeking }) => Math.abs(timeS - 18) < 0.05 && !seeking)
  for (const [key, number] of [
    ['.', 181],
    ['.', 182],
    [',', 181],
    [',', 180],
    [',', 179],
  ] as const) {
    await player.page.keyboard.press(key)
    await expect.poll(frame, { message: key }).toBe(number)
  }
  await expect.poll(() => player.page.evaluate(READ_SHOWN_TIME)).toBe(17.9)
  await player.page.keyboard.press('k')
  await player.playsPast(18)
  await player.page.keyboard.press('.')
  await player.until(({ paused }) => paused)
})

test('P-10: volume and mute that were set by key are kept for the next video, and not what the page sets', async () => {
  const browser = await chromium.newContext()
  const open = async () => {
    const player = await openPlayer(browser, playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId)))
    await player.shows('ready')
    return player
  }
  const sound = ({ page }: Player) =>
    page.evaluate(`(({ volume, muted }) => ({ volume, muted }))(document.querySelector('video'))`)
  const first = await open()
  for (const key of ['ArrowDown', 'ArrowDown', 'm']) await first.page.keyboard.press(key)
  await expect.poll(() => sound(first)).toEqual({ volume: expect.closeTo(0.9), muted: true })
  const second = await open()
  await expect.poll(() => sound(second)).toEqual({ volume: expect.closeTo(0.9), muted: true })
  await second.page.keyboard.press('m')
  await second.page.evaluate(`document.querySelector('video').volume = 0.2`)
  await expect.poll(async () => sound(await open())).toEqual({ volume: expect.closeTo(0.9), muted: false })
})

test('P-11: a paused video that is dragged to its very end offers "Watch again"', async () => {
  const player = await watch()
  const { page } = player
  await playAndPause(player)
  const bar = await page.locator('media-time-range').boundingBox()
  if (!bar) throw new Error('The player has no seek bar')
  await page.mouse.move(bar.x + bar.width / 2, bar.y + bar.height / 2)
  await page.mouse.down()
  await page.mouse.move(bar.x + bar.width + 50, bar.y + bar.height / 2, { steps: 3 })
  await page.mouse.up()
  await player.shows('playing', 'ended')
  await page.keyboard.press('ArrowLeft')
  await player.shows('playing', '')
  await page.keyboard.press('End')
  await player.press('Watch again')
  await player.until(({ timeS, paused, ended }) => timeS < 10 && !paused && !ended)
})

test('P-12: a double click on the picture goes to full screen and back, and plays on', async () => {
  const player = await watch()
  const { page } = player
  await page.locator('.big-play').dblclick() // the second click is not one on the picture
  await player.playsPast(20)
  expect((await player.video()).paused).toBe(false)
  await page.mouse.dblclick(300, 200)
  await page.waitForSelector('media-controller:fullscreen')
  expect((await player.video()).paused).toBe(false)
  await page.mouse.dblclick(300, 200)
  await page.waitForSelector('media-controller:not(:fullscreen)')
  await player.playsPast((await player.video()).timeS)
})

test.each([320, 390])(
  'P-12: on a phone of %i px a double tap and a button seek by 10 s, and a single tap does not',
  async (width) => {
    const height = Math.ceil((width * 9) / 16)
    const player = await watch({ viewport: { width, height }, hasTouch: true, isMobile: true })
    const { page } = player
    const atS = await playAndPause(player)
    await player.keepPicture(`phone-paused-${width}`)
    await player.tapPicture(0.9, 1)
    await player.tapPicture(0.1, 1)
    await player.tapPicture(0.9, 2)
    await player.until(({ timeS }) => Math.abs(timeS - atS - 10) < 0.01)
    await player.tapPicture(0.1, 3)
    await player.until(({ timeS }) => Math.abs(timeS - atS + 10) < 0.01)
    await page.getByText('20 seconds back').waitFor()
    await player.keepPicture(`phone-sign-${width}`)
    if (height > 180) {
      const ahead = page.getByRole('button', { name: '10 seconds ahead' })
      expect((await ahead.boundingBox())?.x).toBeGreaterThan(0.75 * width) // captions are in the middle
      await ahead.tap()
      await player.until(({ timeS }) => Math.abs(timeS - atS) < 0.01)
    }
    expect((await player.video()).paused).toBe(true)
    expect(player.complaints).toEqual([])
  },
)

/** Of the frame that is shown, in seconds. */
const READ_SHOWN_TIME = `(() => {
  const frame = new VideoFrame(document.querySelector('video'))
  frame.close()
  return frame.timestamp / 1e6
})()`

draw()
