import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests, sampleOf } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// One screen too many, as its viewer meets it. Who gets a place: test/playback/stream-limit.test.ts.

const { test: sampled, draw } = sampledTests('places that are kept and lost', 1)

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let video: string

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromium()
  video = reelgate.videoId
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const DESKTOP: BrowserContextOptions = {}
const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
  deviceScaleFactor: 2,
}
const SENTENCE = 'You are already watching on as many screens as allowed. Stop one of them, then try again.'

async function openScreen(userId: string, screen: BrowserContextOptions): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(video, { userId, streamLimit: 1 })
  const player = await openPlayer(await chromium.newContext(screen), playerAddress(reelgate.url, otp))
  await player.shows('ready')
  return player
}

const SCREENS = [
  ['desktop', DESKTOP],
  ['phone', PHONE],
] as const

test.each(sampleOf('screens of the stream limit', SCREENS, 1))(
  'P10: one screen too many says so (%s), plays nothing, and plays by itself when the other is closed',
  async (name, screen) => {
    const [first, second] = [await openScreen(`ann-${name}`, DESKTOP), await openScreen(`ann-${name}`, screen)]
    await first.play()
    await first.playsPast(0.5)
    // The place is free 18 s from here, which is within the 20 s that the second waits, however late a busy machine closes the first.
    await first.page.keyboard.press('k')
    await first.until(({ paused }) => paused)
    await second.play()
    await second.shows('waiting', 'stream-limit')
    expect(await second.sentence()).toBe('Still playing on another screen. It continues here when that one is closed.')
    expect(await second.frame.locator('.panel .countdown').textContent()).toMatch(/^Trying again in \d+ s$/)
    expect(await second.video()).toMatchObject({ framesDecoded: 0 })
    await second.keepPicture(`stream-limit-waits-${name}`)
    await expectReadable(second, ['.panel .sentence', '.panel .countdown'])

    await first.page.close({ runBeforeUnload: true })
    await second.playsPast(0.5)
  },
)

sampled('P10: a screen that plays on keeps its place, and the other says so', async () => {
  const [first, second] = [await openScreen('carl', DESKTOP), await openScreen('carl', PHONE)]
  await first.play()
  await first.playsPast(0.5)
  await second.play()
  await second.shows('refused', 'stream-limit')
  expect(await second.sentence()).toBe(SENTENCE)
  expect(await second.video()).toMatchObject({ framesDecoded: 0 })
  await second.keepPicture('stream-limit')
  await expectReadable(second, ['.panel .sentence', '.panel .action'])
  expect((await first.video()).paused).toBe(false)

  await first.page.close({ runBeforeUnload: true })
  await second.press('Try again')
  await second.playsPast(0.5)
})

sampled(
  'P10: a viewer who paused and comes back after another screen has begun sees why, and can continue where they were',
  async () => {
    const [first, second] = [await openScreen('ben', DESKTOP), await openScreen('ben', DESKTOP)]
    await first.play()
    await first.playsPast(1)
    await first.page.keyboard.press('k')
    await first.until(({ paused }) => paused)
    const { timeS } = await first.video()
    await second.play() // the place is free 18 s after the pause
    await second.playsPast(0.5)
    await first.page.keyboard.press('k')
    await first.shows('waiting', 'stream-limit')
    expect((await first.video()).paused).toBe(true)

    await second.page.close({ runBeforeUnload: true })
    await first.playsPast(timeS + 0.5)
  },
)

draw()

/** These parts lie whole within the screen, and the button is as large as a thumb. */
async function expectReadable({ page }: Player, parts: string[]) {
  const { width, height } = page.viewportSize() ?? { width: 0, height: 0 }
  for (const part of parts) {
    const box = await page.locator(part).boundingBox()
    if (!box) throw new Error(`${part} is not on the screen`)
    expect(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height).toBe(true)
    if (part.endsWith('action')) expect(Math.min(box.width, box.height)).toBeGreaterThanOrEqual(44)
  }
}
