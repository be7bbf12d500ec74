import { createStorageQuota } from '../accounts/storage-quota.ts'
import { recordDamagedFile } from '../assets/damaged-file.ts'
import type { CheckDeps } from '../assets/media-check.ts'
import type { DeletionDeps } from '../catalogue/deletion.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { Config } from '../config/config.ts'
import type { Channel, Db } from '../db/database.ts'
import type { EncodeCounters } from '../encode/encode-counters.ts'
import { type EncodePartAgain, encodePartAgain } from '../encode/encode-part-again.ts'
import { type RequestedDeps, reencryptVideo } from '../encode/next-generation.ts'
import { type Damage, reportDamage } from '../encode/repair.ts'
import { type Retry, retryVideo } from '../encode/retry.ts'
import { videoNotFound } from '../errors.ts'
import { type ImportDeps, retryImport } from '../ingest/import.ts'
import type { ResumableUploadDeps } from '../ingest/resumable-upload.ts'
import type { SourceDeps } from '../ingest/source.ts'
import { createUploadLocks } from '../ingest/upload-locks.ts'
import { endSessionsOfVideos } from '../playback/sessions/session-store.ts'

/** What any process may have done to videos. It is asked for in rows and by signals, so that the process which does it need not be this one. */
export type VideoWork = {
  deletion: DeletionDeps
  /** What an upload or an import needs to become a video. */
  receiving: SourceDeps & ImportDeps & Pick<ResumableUploadDeps, 'uploadLocks' | 'uploadExpiryS'>
  recordDamagedFile: CheckDeps['recordDamagedFile']
  /** Has a damaged segment encoded again. @returns false when it is no longer published */
  repairSegment(damage: Damage): Promise<boolean>
  /** Has a video encoded again under a new content key: see `reencryptVideo`. */
  reencrypt(videoId: string, alsoInTransaction: (tx: Db, accountId: string) => Promise<void>): Promise<void>
  retry: Retry
  /** The same for a video of an account that is ready. @throws Failure `not-found`; as `reencryptVideo` */
  encodeAgain: Retry
  /** The same for what plays at a position: see `encodePartAgain`. */
  encodePartAgain: EncodePartAgain
  /** Of this process. */
  counters: EncodeCounters
}

type VideoWorkDeps = Omit<
  RequestedDeps & SourceDeps & ImportDeps,
  'endVideoSessions' | 'sources' | 'uploadMaxBytes' | 'quota'
> & {
  config: Pick<Config, 'uploadMaxBytes' | 'uploadExpiryS'>
  nowS: () => number
  channel: Channel | undefined
}

export function openVideoWork(deps: VideoWorkDeps): VideoWork {
  const endVideoSessions: DeletionDeps['endVideoSessions'] = (tx, ids, why, generation) =>
    endSessionsOfVideos(tx, ids, deps.nowS(), why, generation)
  const encoding = { ...deps, endVideoSessions }
  const { uploadMaxBytes, uploadExpiryS } = deps.config
  const receiving = {
    ...{ ...deps, sources: deps.folders.sources, uploadMaxBytes, quota: createStorageQuota(deps) },
    ...{ uploadExpiryS, uploadLocks: createUploadLocks(deps.channel && { channel: deps.channel, signals: deps.signals }) },
  }
  async function assertOfAccount(accountId: string, videoId: string): Promise<void> {
    const video = await findVideo(deps.db, accountId, videoId)
    if (!video || video.deletedAtS !== null) throw videoNotFound()
  }
  return {
    deletion: encoding,
    receiving,
    recordDamagedFile: (...file) => recordDamagedFile(deps, ...file),
    repairSegment: (damage) => reportDamage(deps, damage),
    reencrypt: (...video) => reencryptVideo(encoding, ...video),
    async encodeAgain({ accountId, videoId }, alsoInTransaction) {
      await assertOfAccount(accountId, videoId)
      await reencryptVideo(encoding, videoId, alsoInTransaction)
    },
    async encodePartAgain({ accountId, ...part }, alsoInTransaction) {
      await assertOfAccount(accountId, part.videoId)
      await encodePartAgain(encoding, part, alsoInTransaction)
    },
    async retry(...failed) {
      if (!(await retryImport(receiving, ...failed))) await retryVideo(encoding, ...failed)
    },
    counters: { segments: 0, failures: 0 },
  }
}
