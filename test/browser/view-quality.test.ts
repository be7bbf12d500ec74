import type { Browser, CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { type Chance, newChance, rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openTab, playerAddress } from './player.ts'

// What the player reports of how a video plays, against what the test reads from the <video> itself while it shapes the network.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo({ seconds: 12, size: '640x360', rate: 10 }) })
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

/** `lookedMs`: how long before it saw a standstill begin and end it had looked before, in sum, which a busy page delays. */
type Truth = { startMs: number; stillMs: number; lookedMs: number; isStill: boolean; isDone: boolean }
type Row = { start_ms: number; wait_count: number; waited_ms: number; network: string; browser: string; played_ms: number }

/**
 * Watches the element as a viewer would: when it was asked to play, when it first showed a frame, and for how long its time did not move
 * although it was to play.
 */
const WATCH = `(() => {
  const truth = { startMs: 0, stillMs: 0, lookedMs: 0, isStill: false, isDone: false }
  globalThis.truth = truth
  let askedMs, movedMs, lastS, lookMs = performance.now(), gapMs = 0
  const video = document.querySelector('video')
  // Captured: the player's own listeners, which open the stream, may keep a busy machine for a tenth of a second.
  document.addEventListener('play', () => {
    if (askedMs !== undefined) return
    askedMs = performance.now()
    video.requestVideoFrameCallback(() => { truth.startMs = performance.now() - askedMs })
  }, { capture: true })
  const look = () => {
    const nowMs = performance.now()
    const sinceLookMs = nowMs - lookMs
    lookMs = nowMs
    const isToPlay = truth.startMs > 0 && !video.paused && !video.ended
    if (!isToPlay || video.currentTime !== lastS) {
      if (truth.isStill) { truth.stillMs += nowMs - movedMs; truth.lookedMs += gapMs + sinceLookMs; truth.isStill = false }
      movedMs = nowMs
      gapMs = sinceLookMs
      lastS = video.currentTime
    } else if (nowMs - movedMs > ${/* a frame lasts 100 ms */ 150}) truth.isStill = true
    truth.isDone = video.ended
    setTimeout(look, 4)
  }
  look()
})()`

/** Sessions in a long run, and how many of them play concurrently: more would make the machine slower than the lines. */
const SESSIONS = rounds(1, 200)
const CONCURRENT = rounds(1, 4)

test('F-321: start and waiting are what the video element shows, on lines that break off and come back', async () => {
  const chance = newChance('view-quality')
  const differences: Difference[] = []
  while (differences.length < SESSIONS)
    differences.push(...(await Promise.all(Array.from({ length: CONCURRENT }, () => compare(chance)))))
  expect(differences.filter(({ startMs }) => Math.abs(startMs) > 50)).toEqual([])
  expect(differences.filter(({ waitedMs, lookedMs }) => Math.abs(waitedMs) > 100 + lookedMs)).toEqual([])
  expect(differences.filter(({ stillMs }) => stillMs === 0)).toEqual([])
})

/** By how much a report differs from what the element showed. */
type Difference = { startMs: number; waitedMs: number } & Pick<Truth, 'stillMs' | 'lookedMs'>

/** Plays on a line that breaks off until the video stands still, and comes back. */
async function compare(chance: Chance): Promise<Difference> {
  const page = await openTab(await chromium.newContext())
  const player = lookAtPlayer(page)
  const network = await page.context().newCDPSession(page)
  await network.send('Network.enable')
  await limit(network, chance.between(0.5e6, 3e6))
  await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId)))
  await player.shows('ready')
  await page.evaluate(WATCH)
  await limit(network, chance.between(0.05e6, 0.2e6))
  await player.play()
  await player.playsPast(0.2)
  await expect.poll(() => page.evaluate('truth.isStill'), { interval: 20 }).toBe(true)
  await limit(network, chance.between(1e6, 6e6))
  await expect.poll(() => page.evaluate('truth.isDone'), { interval: 50 }).toBe(true)
  const truth: Truth = await page.evaluate('truth')
  const row = await readReport(page)
  expect(row.browser).toBe('Chrome')
  await page.close()
  const { stillMs, lookedMs } = truth
  return { startMs: row.start_ms - truth.startMs, waitedMs: row.waited_ms - stillMs, stillMs, lookedMs }
}

async function limit(network: CDPSession, bps: number): Promise<void> {
  const throughput = { downloadThroughput: bps / 8, uploadThroughput: bps / 8 }
  await network.send('Network.emulateNetworkConditions', { offline: false, latency: 20, ...throughput })
}

/** What is stored of the page's session after its last beat, which says that the video has ended. */
async function readReport(page: Page): Promise<Row> {
  const session = new URL(page.url()).searchParams.get('session') ?? ''
  const columns = 'start_ms, wait_count, waited_ms, network, browser, played_ms'
  const rows = () =>
    readRows<Row>(reelgate, `select ${columns} from view_quality where session_id = ? and played_ms > 11000`, session)
  await expect.poll(rows, { interval: 200 }).toHaveLength(1)
  const [row] = rows()
  if (!row) throw new Error('no report')
  return row
}
