import { expect, test } from 'vitest'
import { startReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import type { Viewer } from '../viewer.ts'
import { stretchVideo } from './stretched-video.ts'

test('a key that comes too early is answered with the time to wait and the speed to play at until then', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  stretchVideo(reelgate, 3600)
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'ann' }))
  const { window, refused } = await takeKeys(viewer, 0)
  expect(window).toBeGreaterThanOrEqual(50) // ten minutes
  const body: { waitMs: number } = JSON.parse(await refused.text())
  expect([refused.status, body]).toEqual([
    429,
    {
      code: 'key-pace',
      message: 'The next part of the video can be played in a moment.',
      waitMs: expect.any(Number),
      maxRate: expect.closeTo(5 / 3, 2),
      requestId: expect.any(String),
    },
  ])
  expect(body.waitMs).toBeGreaterThan(0)
  expect(body.waitMs).toBeLessThanOrEqual(7300)
  expect(Number(refused.headers.get('retry-after'))).toBe(Math.max(1, Math.ceil(body.waitMs / 1000)))
  expect((await viewer.key(0)).status).toBe(200) // what was released is free

  const other = reelgate.newViewer()
  await other.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'ann' }))
  expect((await takeKeys(other, window)).window).toBeLessThan(window + 10) // what was earned since, not ten minutes more

  await reelgate.stop()
  await reelgate.restart()
  await viewer.openPage()
  expect((await takeKeys(viewer, window)).window).toBeLessThan(window + 20)

  /** Asks for keys from a window on. @returns the first that came too early */
  async function takeKeys(viewer: Viewer, from: number): Promise<{ window: number; refused: Response }> {
    for (let window = from; ; window++) {
      const answer = await viewer.key(window)
      if (answer.status !== 200) return { window, refused: answer }
    }
  }
})
