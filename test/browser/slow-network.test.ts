import type { Browser, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openTab, playerAddress } from './player.ts'

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo({ seconds: 12, size: '640x360', rate: 10 }), title: 'Lesson' })
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('P-17: on a slow network the beginning of the video is loaded before the click, and nothing that counts as watching', async () => {
  const page = await openTab(await chromium.newContext())
  const player = lookAtPlayer(page)
  await limitNetwork(page, 800_000)
  const requested: string[] = []
  page.on('request', (request) => requested.push(pathOf(request)))
  // Of the lowest quality, and of the audio.
  const beginning = Promise.all(
    [/\/2\/0\.m4s$/, /\/3\/0\.m4s$/].map((path) => page.waitForEvent('requestfinished', (request) => path.test(pathOf(request)))),
  )
  await page.goto(await newAddress())
  await player.shows('ready')
  await beginning
  expect(requested.filter((path) => path.includes('/key/'))).toEqual([])
  expect(await listWatchingNow()).toEqual([])

  const firstSegments = requested.filter((path) => path.endsWith('/0.m4s'))
  await player.play()
  await player.playsPast(0.3)
  expect((await player.video()).heightPx).toBe(240)
  expect(requested.filter((path) => path.endsWith('/0.m4s'))).toEqual(firstSegments)
  expect(await listWatchingNow()).toMatchObject([{ video: reelgate.videoId }])
})

test('P-17: where play is pressed before the list of qualities has come, the video plays once it is there', async () => {
  const page = await openTab(await chromium.newContext())
  const player = lookAtPlayer(page)
  await limitNetwork(page, 800_000)
  const arrives = Promise.withResolvers<void>()
  await page.route('**/playlist/main', async (route) => {
    await arrives.promise
    await route.continue().catch(() => {}) // of a request that the player has given up for a new one
  })
  await page.goto(await newAddress())
  await player.shows('ready')
  await player.play()
  arrives.resolve()
  await player.playsPast(0.3)
})

test('P-17: a viewer who waits for more than 3 s for what is on its way reads why, until the picture is there', async () => {
  const page = await openTab(await chromium.newContext())
  const player = lookAtPlayer(page)
  const arrives = Promise.withResolvers<void>()
  await page.route('**/*.m4s', async (route) => {
    await arrives.promise
    await route.continue()
  })
  await page.goto(await newAddress())
  await player.play()
  await player.shows('playing', 'slow-network')
  expect(await player.note()).toContain('connection is slow')
  await player.keepPicture('slow-network')
  arrives.resolve()
  await player.playsPast(0.3)
  await player.shows('playing', '')
})

test('F-105: where a change of quality ends the request of the first key, for which the audio waits, too, the video loads it again and plays', async () => {
  const page = await openTab(await chromium.newContext())
  const player = lookAtPlayer(page)
  const arrives = Promise.withResolvers<void>()
  await page.route('**/key/0', async (route) => {
    await arrives.promise
    await route.continue().catch(() => {}) // of the request that has ended
  })
  const ended = page.waitForEvent('requestfailed', (request) => pathOf(request).endsWith('/key/0'))
  const asked = page.waitForRequest('**/key/0')
  const audio = page.waitForEvent('requestfinished', (request) => pathOf(request).endsWith('/3/0.m4s'))
  await page.goto(await newAddress())
  await player.play()
  await Promise.all([asked, audio])
  await player.chooseSetting('Quality', '240p')
  await ended
  arrives.resolve()
  await player.playsPast(0.3)
})

async function newAddress(): Promise<string> {
  return playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId))
}

const pathOf = (request: Request) => new URL(request.url()).pathname

async function limitNetwork(page: Page, bps: number): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Network.enable')
  const throughput = { downloadThroughput: bps / 8, uploadThroughput: bps / 8 }
  await devtools.send('Network.emulateNetworkConditions', { offline: false, latency: 20, ...throughput })
}

async function listWatchingNow(): Promise<unknown[]> {
  const response = await reelgate.owner.call('GET', '/api/sessions')
  return ((await response.json()) as { rows: unknown[] }).rows
}
