import type { Logger } from 'pino'
import { checkpoint, type Db } from '../db/sqlite.ts'
import { type BlobFolder, removeBlobs } from '../storage/folder.ts'
import type { VideoStatus } from './status.ts'
import type { CatalogueDeps } from './video.ts'
import { forgetKeys, listTombstones, removeTombstone, tombstoneVideos } from './video-store.ts'

/** The folders that hold a video's files, each under the video's id. */
export type VideoFolders = { sources: BlobFolder; segments: BlobFolder; posters: BlobFolder }

export type DeletionDeps = CatalogueDeps & {
  folders: VideoFolders
  log: Logger
  sessions: VideoSessions
  /** Told after the commit; resolves when nothing encodes these videos any more. */
  stopEncoding(videoIds: readonly string[]): Promise<void>
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
 * Their files go afterwards, by `removeTombstones`.
 * @param only in this state: whoever gives up an upload must not delete the film that arrived at the same moment
 * @returns how many there were
 */
export async function deleteVideos(
  deps: DeletionDeps,
  accountId: string,
  videoIds: readonly string[],
  only?: VideoStatus,
): Promise<number> {
  const deletedIds = await deps.write(async (tx) => {
    const ids = await tombstoneVideos(tx, accountId, videoIds, deps.nowS(), only)
    if (ids.length > 0) {
      await forgetKeys(tx, ids)
      await deps.sessions.end(tx, ids, 'video-deleted')
    }
    return ids
  })
  if (deletedIds.length > 0) {
    deps.sessions.ended(deletedIds, 'video-deleted')
    await deps.stopEncoding(deletedIds)
  }
  return deletedIds.length
}

/** Finishes deletions: files first, then rows, then the log of the database. Safe to run again after a crash at any point. */
export async function removeTombstones(deps: Pick<DeletionDeps, 'db' | 'write' | 'folders' | 'log'>): Promise<void> {
  const videoIds = await listTombstones(deps.db)
  for (const videoId of videoIds) {
    try {
      for (const folder of Object.values(deps.folders)) await removeBlobs(folder, videoId)
      await deps.write((tx) => removeTombstone(tx, videoId))
    } catch (error) {
      deps.log.error(
        { err: error, videoId },
        'files of a deleted video could not be removed; the next deletion or start tries again',
      )
    }
  }
  if (videoIds.length > 0) await checkpoint(deps.write)
}
