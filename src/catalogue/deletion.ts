import type { Logger } from 'pino'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { MediaFolder } from '../config/data-paths.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { isHostFailure, logLevelFor, StorageUnavailable } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import type { CatalogueDeps } from './catalogue-deps.ts'
import type { VideoStatus } from './status.ts'
import { destroyKeys, listExisting, listTombstones, removeTombstone, tombstoneVideos } from './video-store.ts'

/** Where a video's files are, each under the video's id. */
export type VideoFolders = Readonly<Record<MediaFolder, BlobStore>>

export type DeletionDeps = CatalogueDeps & {
  endVideoSessions: EndVideoSessions
  signals: Pick<Signals, 'send'>
}

/** Ends the playback sessions of videos, or of one of their generations, in the transaction that deletes or replaces them. */
export type EndVideoSessions = (
  tx: Db,
  videoIds: readonly string[],
  why: 'video-deleted' | 'video-replaced',
  generation?: number,
) => Promise<void>

/** `onlyStatus`: others are left alone, so that an abandoned upload is not deleted when its file arrives at the same moment. */
export type VideoDeletion = { accountId: string; by: Actor; videoIds: readonly string[]; onlyStatus?: VideoStatus }

/**
 * Deletes the account's videos among `videoIds`. Resolves when it is durable: they are never listed or played again.
 * Their files are removed afterwards, by `startRemovals`.
 * @returns how many were deleted
 */
export async function deleteVideos(deps: DeletionDeps, { accountId, by, videoIds, onlyStatus }: VideoDeletion): Promise<number> {
  const atS = deps.wallNowS()
  const existingIds = await listExisting(deps.db, accountId, videoIds, onlyStatus)
  if (existingIds.length === 0) return 0
  const deletedIds = await deps.write
    .makingRoom(async (tx) => {
      const ids = await listExisting(tx, accountId, existingIds, onlyStatus)
      if (ids.length === 0) return ids // another call deleted them first
      await addVideoEvents(tx, 'video:deleted', ids) // first: a tombstone has no tags
      await tombstoneVideos(tx, accountId, ids, atS)
      await destroyKeys(tx, ids)
      await deps.endVideoSessions(tx, ids, 'video-deleted')
      await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:deleted', subjects: ids })
      return ids
    })
    .catch(async (error) => {
      // If it was committed, no viewer may continue. If it was not, viewers are rejected for some minutes.
      if (isCommitOutcomeUnknown(error)) await cleanUpDeleted(deps, existingIds)
      throw error
    })
  await cleanUpDeleted(deps, deletedIds)
  return deletedIds.length
}

/** Ends sessions and work on deleted videos, and starts the removal of their files. */
export async function cleanUpDeleted({ signals }: Pick<DeletionDeps, 'signals'>, videoIds: readonly string[]): Promise<void> {
  if (videoIds.length === 0) return
  void signals.send('session-ended', { videoIds, why: 'video-deleted' })
  await signals.send('work-cancelled', { videoIds })
  void signals.send('work-queued', 'removal')
}

type RemovalDeps = Pick<CatalogueDeps, 'db' | 'write'> & {
  folders: VideoFolders
  signals: Signals
  /** Aborted when the server stops: the video that is being removed is finished, and the next start continues with the others. */
  signal: AbortSignal
  /** Truncates the database's log, so that deleted rows are not readable there. */
  truncateWal(): Promise<void>
  log: Logger
}

/** A failed removal is retried after this, then with a doubled delay each time, up to the maximum. */
const MIN_RETRY_DELAY_MS = 5_000
const MAX_RETRY_DELAY_MS = 3_600_000

type Removals = {
  /** Resolves when none runs any more. */
  stop(): Promise<void>
}

/** Finishes deletions in the background: files first, then rows, then the log of the database. Safe to interrupt at any point. */
export function startRemovals(deps: RemovalDeps): Removals {
  const { signal } = deps
  let running: Promise<void> | undefined
  let again = false
  let areKeysInLog = true // of a run that was killed before it truncated the log
  let retryDelayMs = MIN_RETRY_DELAY_MS
  let retry: NodeJS.Timeout | undefined

  async function removeAll(): Promise<void> {
    while (again && !signal.aborted) {
      again = false
      const isDone = await removeTombstones(deps, signal)
        .then(async ({ isDone, count }) => {
          const isDue = (count > 0 || areKeysInLog) && !signal.aborted
          if (isDue) areKeysInLog = false
          if (isDue) await deps.truncateWal()
          return isDone
        })
        .catch((error) => {
          areKeysInLog = true
          deps.log[logLevelFor(error, 'error')]({ err: error }, 'deletion: videos could not be removed; retrying')
          return false
        })
      clearTimeout(retry)
      if (isDone) retryDelayMs = MIN_RETRY_DELAY_MS
      else retryLater()
    }
  }

  function retryLater(): void {
    if (signal.aborted) return
    retry = setTimeout(run, retryDelayMs).unref()
    retryDelayMs = Math.min(2 * retryDelayMs, MAX_RETRY_DELAY_MS)
  }

  /** One runs at a time; a call during it makes one more run after it. */
  function run(): void {
    again = true
    running ??= removeAll().finally(() => {
      running = undefined
    })
  }

  deps.signals.on('work-queued', (work) => work === 'removal' && run())
  deps.signals.on('keys-destroyed', () => {
    areKeysInLog = true
    run()
  })
  return {
    async stop() {
      clearTimeout(retry)
      await running
    },
  }
}

/** @returns isDone: false when a video could not be removed; count: of those that there were */
async function removeTombstones({ db, write, folders, signals, log }: RemovalDeps, signal: AbortSignal) {
  const videoIds = await listTombstones(db)
  let isDone = true
  for (const videoId of videoIds) {
    if (signal.aborted) break
    try {
      // Another call may be deleting it and not have stopped it yet: an encode would create the folders again.
      await signals.send('work-cancelled', { videoIds: [videoId] })
      for (const folder of Object.values(folders)) await folder.removeAll(videoId)
      await signals.send('video-removal', undefined) // nothing can be added to a video once its row is gone
      await write.makingRoom((tx) => removeTombstone(tx, videoId))
    } catch (error) {
      isDone = false
      const level = logLevelFor(error, isHostFailure(error) ? 'warn' : 'error')
      log[level]({ err: error, videoId }, 'deletion: files of a video could not be removed; retrying')
      if (error instanceof StorageUnavailable) break // those of the next one would not answer either
    }
  }
  return { isDone, count: videoIds.length }
}
