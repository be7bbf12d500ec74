import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { footage } from '../footage.ts'
import { startReelgate } from '../in-process.ts'
import { startChromium } from './chromium.ts'
import { compareWithSource } from './frame-pixels.ts'
import { openPlayer, playerAddress } from './player.ts'

test('a viewer who seeks far ahead in a video that is still being encoded sees that place before the segments in between', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_ENCODERS: '1' } })
  await using chromium = await startChromium()
  const browser = await chromium.newContext({ viewport: { width: 1280, height: 720 } })
  const video = await reelgate.owner.readyVideo(footage.wannaworktogether)
  const player = await openPlayer(browser, playerAddress(reelgate.url, await reelgate.owner.issueOtp(video)))
  const tries: number[] = []
  player.page.on('response', (response) => {
    if (response.url().endsWith('.m4s')) tries.push(response.status())
  })
  await player.play()
  await player.playsPast(0.1)
  const seekedToS = await player.seekNear(150)
  const frames = await player.takeFrames(seekedToS + 0.1)
  const segments = await countSegments(reelgate.dataDir)

  expect(tries.filter((status) => status === 503).length).toBeLessThan(10)
  expect(segments).toBeLessThan(SEGMENTS * 0.7) // in order, five of six would have come before
  await player.playsPast(seekedToS + 0.5)
  await reelgate.stop() // what is left to encode is not needed
  const [likeness] = await compareWithSource(frames, footage.wannaworktogether)
  expect(likeness?.source).toBeGreaterThan(0.9)
})

/** Of about 4 s each: two sizes of picture and the sound. */
const SEGMENTS = 3 * 45

async function countSegments(dataDir: string): Promise<number> {
  const files = await readdir(join(dataDir, 'segments'), { recursive: true, withFileTypes: true })
  return files.filter((file) => file.isFile()).length
}
