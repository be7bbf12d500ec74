import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openPlayer, openTab } from './player.ts'

// The first minute of a new owner, in a browser on the same machine.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ env: { REELGATE_DEMO: 'on' } })
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const SCREENS = [
  { on: 'a desk', viewport: { width: 1280, height: 900 } },
  { on: 'a phone', viewport: { width: 390, height: 844 } },
]

test.each(sampleOf('screens of the demo', SCREENS, 1))(
  'the link that the first start prints shows the demo video on $on, also while it is still being made, and plays it',
  async ({ on, viewport }) => {
    const browser = await chromium.newContext({ viewport })
    const page = await openTab(browser)
    await page.goto(/A demo video +(\S+)/.exec(reelgate.output())?.[1] ?? '')
    await page.waitForSelector('iframe') // the page continues by itself when the video is there
    const frame = page.frames().at(1)
    if (!frame) throw new Error('The page has no frame')
    const player = lookAtPlayer(page, frame)
    await player.shows('ready')
    await player.play()
    await player.playsPast(2)
    const { durationS } = await player.video()
    expect(durationS).toBeCloseTo(20, 0)
    await player.keepPicture(`demo-on-${on.replace(' ', '-')}`)
    const widthPx = await page.evaluate<number>('document.documentElement.scrollWidth')
    expect(widthPx).toBe(viewport.width) // nothing sticks out at the side

    const spent = frame.url()
    await page.reload() // as on an owner's site: another visit, another OTP
    await expect.poll(() => page.frames().at(1)?.url()).toMatch(/\/player\//)
    expect(page.frames().at(1)?.url()).not.toBe(spent)
    expect(player.complaints).toEqual([])
    await browser.close()
  },
)

test('the link that try prints plays the video in one browser, and a second one shows that it was used', async () => {
  const { stdout } = await reelgate.cli('try', await makeVideo())
  const [link = ''] = /http:\S+/.exec(stdout) ?? []
  const first = await openPlayer(await chromium.newContext(), link)
  await first.shows('ready')
  await first.play()
  await first.playsPast(1)
  const second = await openPlayer(await chromium.newContext(), link)
  await second.shows('refused', 'otp-used')
})
