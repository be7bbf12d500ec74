import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { findFreePort } from '../free-port.ts'
import { startReelgate } from '../in-process.ts'
import { type FaultProxy, startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, storeEndpoint } from '../s3.ts'
import { startChromium } from './chromium.ts'
import { openPlayer, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// Segments straight from a bucket, whose hours, like those of the server in this process, pass when the test says so.

let chromium: Awaited<ReturnType<typeof startChromium>>
beforeAll(async () => {
  chromium = await startChromium()
})
afterAll(() => chromium?.close())

/** The hours of the server, and of a store that refuses what has ended by them. */
function moveableClock(store: FaultProxy): { passMinutes(minutes: number): void; refusals(): number } {
  let passedMs = 0
  let refusals = 0
  for (const clock of [performance, Date]) {
    const now = clock.now.bind(clock)
    const spy = vi.spyOn(clock, 'now').mockImplementation(() => now() + passedMs)
    onTestFinished(() => spy.mockRestore())
  }
  store.fault = ({ path, reply }) => {
    const { searchParams } = new URL(path, store.endpoint)
    const [, day, hour] = /^(\d{8})T(\d\d)0000Z$/.exec(searchParams.get('X-Amz-Date') ?? '') ?? []
    if (day === undefined) return false // the server's own request
    const madeMs = Date.parse(`${day.replace(/(....)(..)(..)/, '$1-$2-$3')}T${hour}:00:00Z`)
    if (Date.now() < madeMs + Number(searchParams.get('X-Amz-Expires')) * 1000) return false
    refusals++
    // As many stores do: without the headers that would let the page see what it is.
    reply.writeHead(403).end('<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>')
    return true
  }
  return {
    refusals: () => refusals,
    passMinutes(minutes) {
      passedMs += minutes * 60_000
    },
  }
}

test('F-211: a video whose segments are in a bucket plays; paused for three hours, so that their addresses have ended, it plays on after a seek', async () => {
  const store = await startFaultProxy(await storeEndpoint())
  const { env } = await bucketEnvironment(store.endpoint)
  const port = String(await findFreePort())
  const reelgate = await startReelgate({
    env: { ...env, PORT: port, REELGATE_PUBLIC_URL: `http://127.0.0.1:${port}`, REELGATE_DEMO: 'off' },
  })
  const videoId = await reelgate.owner.readyVideo(await makeSmallVideo())
  await untilFinished(reelgate, videoId)
  const clock = moveableClock(store)
  const otp = await reelgate.owner.issueOtp(videoId)
  const player = await openPlayer(await chromium.newContext(), playerAddress(reelgate.url, otp))
  const { page } = player
  const answered: { url: string; status: number }[] = []
  page.on('response', (response) => {
    if (response.url().includes('.m4s')) answered.push({ url: response.url(), status: response.status() })
  })
  await player.play()
  await player.playsPast(0.5)
  expect(answered.filter(({ url, status }) => !url.startsWith(`${store.endpoint}/`) || status !== 200)).toEqual([])
  expect(player.complaints).toEqual([])
  await page.keyboard.press('k')
  await player.until(({ paused }) => paused)
  for (let step = 0; step < 8; step++) {
    clock.passMinutes(25)
    // A paused page sends a beat each minute; here as when the viewer presses pause.
    const beat = page.waitForResponse((response) => response.url().endsWith('/beat') && response.status() === 200)
    await player.frame.evaluate(`document.querySelector('video').dispatchEvent(new Event('pause'))`)
    await beat
  }
  answered.length = 0
  expect(clock.refusals()).toBe(0)
  await player.seekNear(50)
  await page.keyboard.press('k')
  await player.playsPast(51)
  expect(clock.refusals()).toBeGreaterThan(0)
  expect(answered.at(-1)).toMatchObject({ url: expect.stringContaining(`${store.endpoint}/`), status: 200 })
})
