import { availableParallelism } from 'node:os'
import { createStorageQuota } from '../accounts/storage-quota.ts'
import { recordDamagedFile } from '../assets/damaged-file.ts'
import type { CheckDeps } from '../assets/media-check.ts'
import { startMp4Scheduler } from '../assets/mp4-scheduler.ts'
import type { DeletionDeps } from '../catalogue/deletion.ts'
import { findDemoVideo } from '../demo/demo-store.ts'
import { type Encoding, startEncoding } from '../encode/start.ts'
import { retryImport } from '../ingest/import.ts'
import { startImportScheduler } from '../ingest/import-work.ts'
import type { SourceDeps } from '../ingest/source.ts'
import type { Foundation } from '../installation/open-foundation.ts'
import { endSessionsOfVideos } from '../playback/sessions/session-store.ts'

/** What the other processes call to give this one work, or to change videos that it may be working on. */
export type Encoder = Pick<Encoding, 'counters' | 'repairSegment' | 'reencrypt'> & {
  recordDamagedFile: CheckDeps['recordDamagedFile']
  /** What an upload or an import needs to become a video. */
  receiving: SourceDeps
  /** Has a failed video encoded again, or imported again if its file did not fit. */
  retry: Encoding['retry']
  deletion: DeletionDeps
  /** Looks for all work that earlier runs left. */
  wake(): void
}

/** Encodes, imports and exports MP4s until the server stops. */
export async function startEncoder(foundation: Foundation): Promise<Encoder> {
  const { config, opened, db, slowQueryDb, signals, nowS, folders, space, ownership } = foundation
  const endVideoSessions: DeletionDeps['endVideoSessions'] = (tx, ids, why) => endSessionsOfVideos(tx, ids, nowS(), why)
  const encoding = startEncoding(
    {
      ...{ ...foundation, endVideoSessions },
      slots: config.encoders ?? availableParallelism(),
      databaseLost: ownership.lost,
      hasRoom: () => space.hasRoom(0),
      findDemoVideoId: async () => (await findDemoVideo(db))?.id,
    },
    opened,
  )
  const { uploadMaxBytes, importMaxS } = config
  const quota = createStorageQuota({ db, slowQueryDb })
  const receiving = { ...foundation, sources: folders.sources, uploadMaxBytes, hasRoom: space.hasRoom, quota }
  const imports = await startImportScheduler({ ...receiving, importMaxS })
  opened.defer(() => imports.stop())
  const mp4s = startMp4Scheduler({ ...foundation, hasRoom: space.hasRoom, reportDamage: encoding.repairSegment })
  opened.defer(() => mp4s.stop())
  return {
    ...encoding,
    recordDamagedFile: (...file) => recordDamagedFile(foundation, ...file),
    receiving,
    async retry(...failed) {
      if (!(await retryImport(receiving, ...failed))) await encoding.retry(...failed)
    },
    deletion: { ...foundation, endVideoSessions },
    wake() {
      for (const work of ['encode', 'import', 'mp4'] as const) void signals.send('work-queued', work)
    },
  }
}
