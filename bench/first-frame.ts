import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { startChromium } from '../test/browser/chromium.ts'
import { createOwner } from '../test/client.ts'
import { footage } from '../test/footage.ts'
import { median, repeat, timeMs } from './interleaved.ts'
import type { Row, Scope } from './row.ts'
import { firstApiKey, startService } from './service.ts'
import { makeHalfHourVideo } from './videos.ts'

const TIMES = 5

export const FIRST_FRAME_ROWS: readonly Row[] = [
  {
    name: 'first-frame',
    what: 'upload end → ready → first frame decoded in Chromium, 8 s of 720p',
    unit: 's',
    aim: { oursAtMost: 2.5 },
    measure: (scope) => measureFirstFrame(scope, footage.movieHello),
  },
  {
    name: 'first-frame-long',
    what: 'the same, half an hour of 480 × 352',
    unit: 's',
    aim: { oursAtMost: 2.5 },
    prepare: makeHalfHourVideo,
    measure: async (scope) => measureFirstFrame(scope, await makeHalfHourVideo()),
  },
]

async function measureFirstFrame(scope: Scope, video: string) {
  const service = await startService(scope, join(scope.folder, 'data'))
  const owner = createOwner(service.url, firstApiKey(service))
  const browser = await startChromium()
  scope.defer(() => browser.close())

  const seconds = await repeat(TIMES + 1, async () => {
    const videoId = await owner.upload('A video', video)
    const ms = await timeMs(async () => {
      while ((await owner.video(videoId)).status !== 'ready') await pause(10)
      await showFirstFrame(browser, `${service.url}/player/?otp=${await owner.issueOtp(videoId)}`)
    })
    await owner.delete([videoId]) // so that its encoding does not slow down the next one
    return ms / 1000
  })
  return { ours: median(seconds.slice(1)) }
}

/** A viewer with an empty cache presses play as soon as the button is there. */
async function showFirstFrame(browser: Browser, url: string): Promise<void> {
  await using viewer = await browser.newContext()
  const page = await viewer.newPage()
  await page.goto(url, { waitUntil: 'commit' })
  await page.waitForSelector('body[data-state="ready"]')
  const frame = page.evaluate('new Promise((shown) => document.querySelector("video").requestVideoFrameCallback(() => shown()))')
  await page.locator('.big-play').click()
  await frame
}
