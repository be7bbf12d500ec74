import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { startChromium } from './chromium.ts'
import { openPlayer, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromium()
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('a player whose owner stops it says so by itself, and has nothing left to play', async () => {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'ann' })
  const player = await openPlayer(await chromium.newContext(), playerAddress(reelgate.url, otp))
  await player.shows('ready')
  await player.play()
  await player.playsPast(1)
  expect((await reelgate.owner.call('DELETE', '/api/sessions?userId=ann')).status).toBe(200)
  await player.shows('refused', 'session-ended.stopped')
  expect(await player.sentence()).toBe(
    'The owner of this video has stopped playback. Ask the owner of this site if you may watch on.',
  )
  expect((await player.video()).durationS).toBeNaN()
  await player.screenshot('stopped')
})
