import type { StorageQuota } from '../accounts/storage-quota.ts'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { CatalogueDeps, ListDeps } from '../catalogue/catalogue-deps.ts'
import { findVideo } from '../catalogue/video-store.ts'
import { findGeneration, isFinished } from '../encode/generation-store.ts'
import { Failure, videoNotFound } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'
import { hasMp4, insertRequestedMp4 } from './mp4-store.ts'
import { getFile, type VideoFile } from './video-file.ts'

export type Mp4Deps = CatalogueDeps &
  ListDeps & {
    quota: StorageQuota
    signals: Pick<Signals, 'send'>
  }

/**
 * Requests a video's MP4, which is made in the background: its best video rendition and its audio as one file for redistribution.
 * Durable when it resolves. There is one for each video: requesting it again returns the same one.
 * @returns the file; once made, it has a size and can be downloaded
 * @throws Failure `not-found`; `conflict` while renditions are missing; `over-quota` for a new one when nothing more fits
 */
export async function requestMp4(deps: Mp4Deps, accountId: string, by: Actor, videoId: string): Promise<VideoFile> {
  const atS = deps.wallNowS()
  if (!(await findVideo(deps.db, accountId, videoId))) throw videoNotFound()
  if (!(await hasMp4(deps.db, videoId))) await deps.quota.assertNotFull(accountId)
  const id = await deps.write(async (tx) => {
    const video = await findVideo(tx, accountId, videoId)
    if (!video) throw videoNotFound()
    const generation = await findGeneration(tx, { videoId, generation: video.generation })
    if (!generation || !(await isFinished(tx, generation)))
      throw new Failure(
        'conflict',
        `The video has no finished rendition yet (its status is ${video.status}). Ask for the MP4 after video:readyall.`,
      )
    const best = generation.plan.videoTrack?.renditions[0]
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'mp4:requested', subjects: [videoId] })
    return insertRequestedMp4(tx, { videoId, createdAtS: atS, widthPx: best?.widthPx, heightPx: best?.heightPx })
  })
  void deps.signals.send('work-queued', 'mp4')
  return getFile(deps, accountId, videoId, id)
}
