import { expect, test } from 'vitest'
import type { VideoBody } from '../client.ts'
import { untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import { haveWatched } from '../viewers/watched.ts'
import { play } from './replaced.ts'

// A part of the file instead of all of it: PUT /api/videos/{id}/trim.

test('X39: a video is trimmed, trimmed again and made whole; sessions continue, and watched seconds move with the scenes', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 12, size: '96x64' }) })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const before = await owner.video(videoId)
  haveWatched(reelgate, 'ann', 8)
  const watching = await play(reelgate)
  const first = await watching.download('1')

  expect((await trim(reelgate, { startS: 6, endS: 20 })).status).toBe(400)
  const asked = await trim(reelgate, { startS: 3, endS: 10 })
  expect([asked.status, await asked.json()]).toEqual([200, { message: 'Trimming', startS: 3, endS: 10 }])
  const trimmed = await untilMade(reelgate)
  expect(trimmed.length).toBeCloseTo(7, 1)
  expect(trimmed).toMatchObject({ trim: { startS: 3, endS: 10 }, kept: [{ length: before.length, replacedBy: 'trim' }] })
  expect(trimmed.poster).not.toBe(before.poster)
  expect(await watchedBy(reelgate)).toEqual({ watchedS: 5, intervals: [[0, 5]], positionS: 5 })
  expect((await watching.download('1')).segments).toEqual(first.segments)

  // The same seconds of the file, however it is trimmed now.
  expect((await trim(reelgate, { startS: 1, endS: 5 })).status).toBe(200)
  expect((await untilMade(reelgate)).trim).toMatchObject({ startS: 1, endS: 5 })
  expect(await watchedBy(reelgate)).toEqual({ watchedS: 4, intervals: [[0, 4]], positionS: expect.closeTo(4, 0) })

  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect((await owner.video(videoId)).trim).toMatchObject({ startS: 3, endS: 10 })
  expect((await trim(reelgate, {})).status).toBe(200)
  const whole = await untilMade(reelgate)
  expect([whole.length, whole.trim]).toEqual([before.length, undefined])
  expect(await watchedBy(reelgate)).toEqual({ watchedS: 8, intervals: [[0, 8]], positionS: 8 })
})

function trim({ owner, videoId }: Reelgate, body: { startS?: number; endS?: number }) {
  return owner.call('PUT', `/api/videos/${videoId}/trim`, { body })
}

async function untilMade({ owner, videoId }: Reelgate): Promise<VideoBody> {
  await expect.poll(async () => (await owner.video(videoId)).replacement, { timeout: 30_000 }).toBe(undefined)
  return owner.video(videoId)
}

async function watchedBy({ owner, videoId }: Reelgate) {
  const response = await owner.call('GET', `/api/videos/${videoId}/viewers`)
  const { rows } = (await response.json()) as {
    rows: { userId: string; watchedS: number; intervals: unknown; positionS: number }[]
  }
  const { watchedS, intervals, positionS } = rows.find(({ userId }) => userId === 'ann') ?? {}
  return { watchedS, intervals, positionS }
}
