import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { findFreePort } from '../free-port.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { startChromium } from './chromium.ts'
import { openPlayer, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// Segments from another origin than the page's: this very server under another name, whose clock the test moves.

let reelgate: Reelgate & { remove(): Promise<void> }
let chromium: Awaited<ReturnType<typeof startChromium>>
let origin: string
beforeAll(async () => {
  const port = String(await findFreePort())
  origin = `http://localhost:${port}`
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), env: { PORT: port, REELGATE_MEDIA_URL: origin } })
  chromium = await startChromium()
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

/** The hours of the server, which is in this process. */
function moveableClock(): { passMinutes(minutes: number): void } {
  let passedMs = 0
  const now = performance.now.bind(performance)
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + passedMs)
  onTestFinished(() => spy.mockRestore())
  return {
    passMinutes(minutes) {
      passedMs += minutes * 60_000
    },
  }
}

test('F-202: a video whose segments are at another origin plays; paused for three hours, so that their addresses have ended there, it plays on after a seek', async () => {
  const clock = moveableClock()
  const player = await openPlayer(
    await chromium.newContext(),
    playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId)),
  )
  const { page } = player
  const answered: { url: string; status: number }[] = []
  page.on('response', (response) => {
    if (response.url().includes('/media/')) answered.push({ url: response.url(), status: response.status() })
  })
  const beats: unknown[] = []
  page.on('request', (request) => request.url().endsWith('/beat') && beats.push(request.postDataJSON()))
  await player.play()
  await player.playsPast(0.5)
  expect(answered.filter(({ url, status }) => !url.startsWith(`${origin}/media/`) || status !== 200)).toEqual([])
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
  await player.seekNear(50)
  await page.keyboard.press('k')
  await player.playsPast(51)
  expect(answered.some(({ status }) => status === 403)).toBe(true)
  expect(answered.at(-1)).toMatchObject({ url: expect.stringContaining(`${origin}/media/`), status: 200 })
  expect(beats).toContainEqual(expect.objectContaining({ rendition: expect.any(Number) }))
})
