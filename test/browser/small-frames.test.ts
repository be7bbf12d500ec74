import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { findColour, type Spot } from './frame-pixels.ts'
import { lookAtPlayer, openPlayer, openTab, type Player, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// The player in small frames.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  const title = 'A long title that fills its line'
  await reelgate.owner.call('POST', `/api/videos/${reelgate.videoId}`, { body: { title } })
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const newBrowser = (width: number, height: number): Promise<BrowserContext> =>
  chromium.newContext({ viewport: { width, height }, hasTouch: width < 600 })

async function watch(browser: BrowserContext, options = '', otpOptions: Record<string, unknown> = {}): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, otpOptions)
  return openPlayer(browser, playerAddress(reelgate.url, otp, options))
}

const MARK = { annotate: [{ type: 'text', text: 'reader@example.org', size: 24, x: '5%', y: '45%' }] }

describe.each(
  sampleOf(
    'small frames',
    [
      { what: 'a frame as HTML makes it', width: 300, height: 150 },
      { what: 'the frame of a phone', width: 288, height: 162 },
    ],
    1,
  ),
)('in $what', ({ width, height }) => {
  test('a click in its middle plays', async () => {
    const player = await watch(await newBrowser(width, height), '', MARK)
    await player.shows('ready')
    await player.keepPicture(`small-ready-${width}`)
    await player.page.mouse.click(width / 2, height / 2)
    await player.playsPast(0.3)
    await player.keepPicture(`small-playing-${width}`)
    expect(player.complaints).toEqual([])
  })

  test('the settings cover everything, marks too, scroll, and are left by their own button', async () => {
    const player = await watch(await newBrowser(width, height), '', MARK)
    await player.play()
    await player.playsPast(0.3)
    await player.openSettings()
    const sheet = player.page.getByRole('menu')
    await player.keepPicture(`small-settings-${width}`)
    expect(await sheet.boundingBox()).toEqual({ x: 0, y: 0, width, height })
    await player.openChoices('Speed')
    expect(await sheet.evaluate((menu) => menu.matches(':popover-open') && menu.scrollHeight > menu.clientHeight)).toBe(true)
    await player.page.getByRole('menuitemradio', { name: '2 ×', exact: true }).click()
    await player.until(({ rate }) => rate === 2)
    await player.page.getByRole('menuitem', { name: 'Close' }).click()
    await sheet.waitFor({ state: 'hidden' })
  })
})

test('a long text as a watermark leaves the controls of a small frame free, and is legible', async () => {
  const text = 'reader@example.org, 203.0.113.7, School of Light, for personal use only'
  const annotate = [{ type: 'text', text, size: 40, color: '0xff80c0', x: '5%', y: '45%' }]
  const player = await watch(await newBrowser(300, 150), '', { annotate })
  await player.play()
  await player.playsPast(0.3)
  await player.page.keyboard.press('k')
  await player.until(({ paused }) => paused)
  const { y: controlsTopPx } = (await player.page.locator('media-time-range').boundingBox()) ?? { y: 0 }
  const watermark = async () => findColour(await player.screenshot('small-long-watermark'), [255, 128, 192])
  await expect.poll(watermark).toSatisfy(({ bottomPx, rightPx, pixels }: Spot) => {
    return bottomPx <= controlsTopPx && rightPx < 300 && pixels > 200
  })
})

test('a sentence in the player is above the watermarks', async () => {
  const browser = await newBrowser(640, 360)
  const player = await watch(browser, '', MARK)
  await player.play()
  await player.playsPast(0.3)
  const other = lookAtPlayer(await openTab(browser))
  await other.page.goto(player.page.url()) // the same session in another tab
  await other.shows('ready')
  await player.page.evaluate(`document.querySelector('video').currentTime = 50`) // for which it needs a key
  await player.shows('refused', 'page-replaced')
  await player.keepPicture('sentence-above-marks')
  expect(await player.page.locator('.panel').evaluate((panel) => panel.matches(':popover-open'))).toBe(true)
})

test('Enter on the player plays and pauses', async () => {
  const player = await watch(await newBrowser(640, 360))
  await player.shows('ready')
  await player.page.keyboard.press('Enter')
  await player.playsPast(0.3)
  await player.page.keyboard.press('Enter')
  await player.until(({ paused }) => paused)
})

test('a play before the session is open starts the video when it is', async () => {
  const browser = await newBrowser(640, 360)
  const page = await openTab(browser)
  const player = lookAtPlayer(page)
  const asked = Promise.withResolvers<void>()
  const goesOn = Promise.withResolvers<void>()
  await page.route('**/play/redeem', async (route) => {
    asked.resolve()
    await goesOn.promise
    await route.continue()
  })
  await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId), '&controls=native'))
  await asked.promise
  // As a media key or a script does.
  await page.evaluate("void document.querySelector('video').play()")
  goesOn.resolve()
  await player.playsPast(0.3)
})

test('a viewer of a video whose `public` is 0 sees its poster, which is served to their session alone', async () => {
  const { owner, videoId, url } = reelgate
  const setPublic = (value: 0 | 1) => owner.call('POST', `/api/videos/${videoId}`, { body: { public: value } })
  await setPublic(0)
  onTestFinished(async () => void (await setPublic(1)))
  const page = await openTab(await newBrowser(640, 360))
  await page.goto(playerAddress(url, await owner.issueOtp(videoId)))
  await expect.poll(() => page.evaluate("document.querySelector('video').poster")).toMatch(/^data:image\/jpeg;base64,\/9j\//)
})

describe('litemode', () => {
  test('loads the poster alone, redeems at the first click, and plays with all its controls', async () => {
    const page = await openTab(await newBrowser(640, 360))
    const player = lookAtPlayer(page)
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    const otp = await reelgate.owner.issueOtp(reelgate.videoId)
    const playbackInfo = Buffer.from(JSON.stringify({ videoId: reelgate.videoId })).toString('base64')
    const poster = page.waitForResponse((answer) => answer.url().includes('/poster/'))
    await page.goto(playerAddress(reelgate.url, otp, `&playbackInfo=${encodeURIComponent(playbackInfo)}&litemode=true`))
    expect((await poster).status()).toBe(200)
    await player.shows('ready')
    await player.keepPicture('litemode')
    expect(asked.filter((path) => path.startsWith('/play/') || path.startsWith('/media/'))).toEqual([])
    expect(page.url()).toContain(otp)
    await player.play()
    await player.playsPast(0.3)
    await page.mouse.move(10, 10)
    await page.getByRole('button', { name: 'Settings' }).waitFor()
    expect(page.url()).not.toContain(otp)
  })
})

test('a browser remembers the speed, for another video too', async () => {
  const browser = await newBrowser(640, 360)
  const first = await watch(browser)
  await first.play()
  await first.playsPast(0.3)
  await first.chooseSetting('Speed', '1.5 ×')
  await first.page.close()
  const second = await watch(browser)
  await second.play()
  await second.until(({ rate }) => rate === 1.5)
})
