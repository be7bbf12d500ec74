import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { answerOf } from '../viewer.ts'
import { playerAddress } from './player.ts'
import { startChromiumWithTabs } from './real-tabs.ts'
import { makeSmallVideo } from './videos.ts'

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Awaited<ReturnType<typeof startChromiumWithTabs>>

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromiumWithTabs()
})

afterAll(async () => {
  await chromium?.end()
  await reelgate?.remove()
})

/** A stream slot without beats and keys ends after it. */
const LEASE_MS = 18_000

test('P10: a video that plays on in a hidden tab, whose timers are slowed, keeps its place for longer than a lease', async () => {
  const issueOtp = () => reelgate.owner.issueOtp(reelgate.videoId, { userId: 'ann', streamLimit: 1 })
  const tab = await chromium.openTab(playerAddress(reelgate.url, await issueOtp()))
  const playedS = () => tab.run<number>("document.querySelector('video')?.currentTime ?? 0")
  await expect.poll(() => tab.run("document.body?.dataset.state ?? ''")).toBe('ready')
  // So quiet that Chromium takes it for silent: timers of a page with audible sound are not slowed, and a muted video is paused.
  await tab.run("{ const video = document.querySelector('video'); video.volume = 0.0001; video.play() }")
  await expect.poll(playedS).toBeGreaterThan(0.5)
  await tab.hide()
  await expect.poll(() => tab.run('document.visibilityState')).toBe('hidden')
  await tab.run('globalThis.hidden = { ms: performance.now(), ticks: 0 }; setInterval(() => hidden.ticks++, 100); 0')
  const { ms: hiddenMs } = await tab.run<{ ms: number }>('hidden')
  const hiddenAtS = await playedS()

  const beatsMs = () =>
    tab.run<number[]>(`performance.getEntriesByType('resource').filter(({ name, startTime }) =>
      name.endsWith('/beat') && startTime > hidden.ms).map(({ responseEnd }) => responseEnd)`)
  await expect.poll(async () => Math.max(...(await beatsMs()))).toBeGreaterThan(hiddenMs + LEASE_MS)
  const { ticks, elapsedMs } = await tab.run<{ ticks: number; elapsedMs: number }>(
    '({ ticks: hidden.ticks, elapsedMs: performance.now() - hidden.ms })',
  )
  expect(ticks).toBeLessThan(elapsedMs / 1000 + 2) // of ten a second
  expect(await playedS()).toBeGreaterThan(hiddenAtS + 5)

  const other = reelgate.newViewer()
  await other.redeem(await issueOtp())
  expect(await answerOf(other.key(0))).toEqual([409, 'stream-limit'])
})
