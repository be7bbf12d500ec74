import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { request as openRequest } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { HEADLESS_SHELL, startChromiumAt } from '../test/browser/chromium.ts'
import { createOwner } from '../test/client.ts'
import { footage } from '../test/footage.ts'
import { createTusClient } from '../test/ingest/tus-client.ts'
import { measureInterleaved, median, repeat, timeMs } from './interleaved.ts'
import type { Aim, Row, Scope } from './row.ts'
import { firstApiKey, startService } from './service.ts'
import { makeHalfHourVideo, makeLongVideo } from './videos.ts'

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
  ...[1, 10, 60].map((minutes) => lengthRow(minutes, { oursAtMost: 1.5 })),
  lengthRow(120, { maxExtraS: 0.3 }),
]

/** From the last byte of a resumable upload; the longest one is compared with one minute. */
function lengthRow(minutes: number, aim: Aim): Row {
  const isCompared = 'maxExtraS' in aim
  return {
    name: `last-byte-${minutes}`,
    what: `last byte of a resumable upload → first frame decoded in Chromium, ${minutes} min of 480 × 352${isCompared ? '; peer: 1 min' : ''}`,
    unit: 's',
    aim,
    prepare: async () => [await makeLongVideo(minutes), await makeLongVideo(1)],
    measure: async (scope) => {
      const measureOf = await openLastByte(scope)
      const ours = measureOf(await makeLongVideo(minutes))
      const peer = measureOf(await makeLongVideo(1))
      await peer() // the first requests of a process are slow
      if (isCompared) return measureInterleaved(TIMES, ours, peer)
      return { ours: median(await repeat(TIMES, ours)) }
    },
  }
}

async function openLastByte(scope: Scope) {
  const service = await startService(scope, join(scope.folder, 'data'))
  const apiKey = firstApiKey(service)
  const owner = createOwner(service.url, apiKey)
  const tus = createTusClient({ url: service.url, apiKey })
  const browser = await startChromiumAt(HEADLESS_SHELL)
  scope.defer(() => browser.close())
  return (video: string) => async () => {
    const { size } = await stat(video)
    const { address, videoId = '' } = await tus.create(size)
    const lastByteAtMs = await sendLast(address, tus.authorization, video, size)
    while ((await owner.video(videoId)).status !== 'ready') await pause(10)
    await showFirstFrame(browser, `${service.url}/player/?otp=${await owner.issueOtp(videoId)}`)
    const seconds = (performance.now() - lastByteAtMs) / 1000
    await owner.delete([videoId])
    return seconds
  }
}

/** Sends a file as one part. @returns when its last byte was sent; resolves once it is acknowledged */
async function sendLast(address: string, authorization: string, path: string, sizeBytes: number): Promise<number> {
  const headers = { Authorization: authorization, 'Tus-Resumable': '1.0.0', 'Upload-Offset': 0, 'Content-Length': sizeBytes }
  const part = { 'Content-Type': 'application/offset+octet-stream' }
  const request = openRequest(address, { method: 'PATCH', headers: { ...headers, ...part } })
  const responded = once(request, 'response')
  await pipeline(createReadStream(path), request)
  const lastByteAtMs = performance.now()
  const [response] = await responded
  response.resume()
  if (response.statusCode !== 204) throw new Error(`PATCH was answered with ${response.statusCode}`)
  return lastByteAtMs
}

async function measureFirstFrame(scope: Scope, video: string) {
  const service = await startService(scope, join(scope.folder, 'data'))
  const owner = createOwner(service.url, firstApiKey(service))
  const browser = await startChromiumAt(HEADLESS_SHELL)
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
export async function showFirstFrame(browser: Browser, url: string): Promise<void> {
  await using viewer = await browser.newContext()
  const page = await viewer.newPage()
  await page.goto(url, { waitUntil: 'commit' })
  await page.waitForSelector('body[data-state="ready"]')
  const frame = page.evaluate('new Promise((shown) => document.querySelector("video").requestVideoFrameCallback(() => shown()))')
  await page.locator('.big-play').click()
  await frame
}
