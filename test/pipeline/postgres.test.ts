import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findEncoders, listSegments, untilFinished } from '../data-folder.ts'
import { startPostgres } from '../postgres.ts'
import { startReelgate } from '../reelgate.ts'
import { expectWhole, makeCountedVideo } from './counted-video.ts'
import { findChanged, lookAtSegments, type Sightings } from './segment-snapshots.ts'

test('F-03: a video on PostgreSQL is encoded whole although the server is killed in the middle, and then PostgreSQL', async () => {
  const postgres = await startPostgres()
  const reelgate = await startReelgate({ database: postgres })
  const videoId = await reelgate.owner.upload('A video', await makeCountedVideo(join(reelgate.dataDir, '..', 'video.mp4')))
  await reelgate.owner.until(videoId, 'ready')
  const seen: Sightings = new Map()
  await lookAtSegments(reelgate, videoId, seen)
  await reelgate.kill()
  await expect.poll(() => findEncoders(reelgate)).toEqual([])
  await reelgate.restart()

  await lookAtSegments(reelgate, videoId, seen)
  const published = listSegments(reelgate, videoId).length
  await expect.poll(() => listSegments(reelgate, videoId).length).toBeGreaterThan(published)
  await postgres.crash()
  await postgres.start()
  await untilFinished(reelgate, videoId)
  expect(await findChanged(reelgate, videoId, seen)).toEqual([])
  await expectWhole(reelgate, videoId)
})
