import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listSegments } from '../data-folder.ts'
import { footage } from '../footage.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
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
  const before = listSegments(reelgate, video).length
  const seekedToS = await player.seekNear(150)
  const frames = await player.takeFrames(seekedToS + 0.1)
  const published = await listPublished(reelgate, video)
  const meanwhile = published.indexOf(Math.floor(seekedToS / SEGMENT_S)) - before

  expect(tries.filter((status) => status === 503).length).toBeLessThan(10)
  expect(meanwhile).toBeLessThan(30) // in order, more than a hundred would have come before
  await player.playsPast(seekedToS + 0.5)
  await reelgate.stop() // what is left to encode is not needed
  const [likeness] = await compareWithSource(frames, footage.wannaworktogether)
  expect(likeness?.source).toBeGreaterThan(0.9)
})

const SEGMENT_S = 4

/** The numbers of the segments in the order in which they were written: what was encoded since, while a busy machine showed the frame, does not count. */
async function listPublished(reelgate: Reelgate, videoId: string): Promise<number[]> {
  const written = await Promise.all(
    listSegments(reelgate, videoId).map(async ({ number, file }) => {
      const { mtimeMs } = await stat(join(reelgate.dataDir, 'segments', file))
      return { number, mtimeMs }
    }),
  )
  return written.toSorted((a, b) => a.mtimeMs - b.mtimeMs).map(({ number }) => number)
}
