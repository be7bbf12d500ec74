import type { Logger } from 'pino'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { levelOf } from '../errors.ts'
import { type BlobFolder, removeBlobs } from '../storage/folder.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import type { VideoStatus } from './status.ts'
import type { CatalogueDeps } from './video.ts'
import { destroyKeys, listExisting, listTombstones, removeTombstone, tombstoneVideos } from './video-store.ts'

/** The folders that hold a video's files, each under the video's id. */
export type VideoFolders = { sources: BlobFolder; segments: BlobFolder; posters: BlobFolder; files: BlobFolder }

export type DeletionDeps = CatalogueDeps & {
  sessions: VideoSessions
  /** Told after the commit; resolves when nothing fetches or encodes these videos any more. */
  stopWork(videoIds: readonly string[]): Promise<void>
  /** Told then: files wait to be removed. */
  removeFiles(): void
}

/** The playback sessions on videos, which end when what they play is taken away. */
export type VideoSessions = {
  /** Ends them, inside the transaction that takes it away. */
  end(tx: Db, videoIds: readonly string[], why: 'video-deleted' | 'video-replaced'): Promise<void>
  /** Told after that commit: memory forgets keys and tells viewers. */
  ended(videoIds: readonly string[], why: 'video-deleted' | 'video-replaced'): void
}

/**
 * Deletes the account's videos among `videoIds`. Resolves when it is durable: they are never listed or played again.
 * Their files go afterwards, by `startRemovals`.
 * @param only in this state: whoever gives up an upload must not delete the video that arrived at the same moment
 * @returns how many there were
 */
export async function deleteVideos(
  deps: DeletionDeps,
  accountId: string,
  by: Actor,
  videoIds: readonly string[],
  only?: VideoStatus,
): Promise<number> {
  const atS = deps.wallNowS()
  const askedIds = await listExisting(deps.db, accountId, videoIds, only)
  if (askedIds.length === 0) return 0
  const deletedIds = await deps.write
    .makingRoom(async (tx) => {
      const ids = await listExisting(tx, accountId, askedIds, only)
      if (ids.length === 0) return ids // another call was first
      await addVideoEvents(tx, 'video:deleted', ids) // first: a tombstone has no tags
      await tombstoneVideos(tx, accountId, ids, atS)
      await destroyKeys(tx, ids)
      await deps.sessions.end(tx, ids, 'video-deleted')
      await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:deleted', subjects: ids })
      return ids
    })
    .catch(async (error) => {
      // Nobody may watch on if it was kept. If it was not, viewers are turned away for some minutes.
      if (isCommitOutcomeUnknown(error)) await takeAway(deps, askedIds)
      throw error
    })
  await takeAway(deps, deletedIds)
  return deletedIds.length
}

/** What memory and the disk still have of deleted videos. */
async function takeAway({ sessions, stopWork, removeFiles }: DeletionDeps, videoIds: readonly string[]): Promise<void> {
  if (videoIds.length === 0) return
  sessions.ended(videoIds, 'video-deleted')
  await stopWork(videoIds)
  removeFiles()
}

export type RemovalDeps = Pick<CatalogueDeps, 'db' | 'write'> & {
  folders: VideoFolders
  /** Writes down what viewers were sent: nothing can be added to a video once its row is gone. */
  saveUsage(): Promise<void>
  /** Sees to it that what was deleted does not lie on in the database's log. */
  clearLog(): Promise<void>
  log: Logger
}

/** What failed is retried after this, then after twice as long each time, up to an hour. */
const FIRST_RETRY_MS = 5_000
const LAST_RETRY_MS = 3_600_000

/** Finishes deletions in the background: files first, then rows, then the log of the database. Safe to cut off at any point. */
export function startRemovals(deps: RemovalDeps) {
  const stopping = new AbortController()
  let running: Promise<void> | undefined
  let again = false
  let retryMs = FIRST_RETRY_MS
  let retry: NodeJS.Timeout | undefined

  async function removeAll(): Promise<void> {
    while (again && !stopping.signal.aborted) {
      again = false
      const isDone = await removeTombstones(deps, stopping.signal).catch((error) => {
        deps.log[levelOf(error, 'error')]({ err: error }, 'deleted videos could not be removed; retrying')
        return false
      })
      clearTimeout(retry)
      if (isDone) retryMs = FIRST_RETRY_MS
      else retryLater()
    }
  }

  function retryLater(): void {
    if (stopping.signal.aborted) return
    retry = setTimeout(run, retryMs).unref()
    retryMs = Math.min(2 * retryMs, LAST_RETRY_MS)
  }

  /** One run at a time; a call during a run makes one more after it. */
  function run(): void {
    again = true
    running ??= removeAll().finally(() => {
      running = undefined
    })
  }

  return {
    run,
    /** Ends with the video that is being removed; the next start goes on. */
    async stop(): Promise<void> {
      stopping.abort()
      clearTimeout(retry)
      await running
    },
  }
}

/** @returns false when a video could not be removed */
async function removeTombstones(
  { db, write, clearLog, folders, saveUsage, log }: RemovalDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const videoIds = await listTombstones(db)
  let isDone = true
  for (const videoId of videoIds) {
    if (signal.aborted) return isDone
    try {
      for (const folder of Object.values(folders)) await removeBlobs(folder, videoId)
      await saveUsage()
      await write.makingRoom((tx) => removeTombstone(tx, videoId))
    } catch (error) {
      isDone = false
      log[levelOf(error, 'error')]({ err: error, videoId }, 'files of a deleted video could not be removed; retrying')
    }
  }
  if (videoIds.length > 0) await clearLog()
  return isDone
}
