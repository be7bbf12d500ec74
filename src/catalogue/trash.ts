import { recordAuditEvent } from '../audit/audit-log.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { cleanUpDeleted, type DeletionDeps, deleteVideos, type VideoDeletion } from './deletion.ts'
import { assertExternalIdsFree } from './own-fields.ts'
import { listDeletedExternalIds } from './own-fields-store.ts'
import { insertTags } from './tag-store.ts'
import {
  insertTrashed,
  leaveDeletedFolders,
  listEndedTrash,
  listTagsByVideo,
  listTrashRows,
  listWithSource,
  removeTrashed,
} from './trash-store.ts'
import { destroyKeys, listExisting, listPositions, restoreVideos, tombstoneVideos } from './video-store.ts'

// A video in the trash is a deleted video whose keys and files still exist: nothing lists, plays or encodes it.

/** How long a video can be restored. */
export const TRASH_S = 7 * 24 * 3600

type Videos = Pick<VideoDeletion, 'accountId' | 'by' | 'videoIds'>

/**
 * Moves the account's videos among `videoIds` to the trash, for `TRASH_S`. Durable when it resolves: they are in no list any more, and
 * their playback sessions have ended. A video that has no file yet is deleted, since there is nothing to restore.
 * @returns how many were moved or deleted
 */
export async function moveToTrash(deps: DeletionDeps, { accountId, by, videoIds }: Videos): Promise<number> {
  const existingIds = await listExisting(deps.db, accountId, videoIds)
  if (existingIds.length === 0) return 0
  const withSource = await listWithSource(deps.db, existingIds)
  const trashedIds = await trashVideos(deps, { accountId, by, videoIds: existingIds.filter((id) => withSource.has(id)) })
  const fileless = existingIds.filter((id) => !withSource.has(id))
  return trashedIds.length + (await deleteVideos(deps, { accountId, by, videoIds: fileless }))
}

async function trashVideos(deps: DeletionDeps, { accountId, by, videoIds }: Videos): Promise<string[]> {
  if (videoIds.length === 0) return []
  const atS = deps.wallNowS()
  const trashedIds = await deps
    .write(async (tx) => {
      const ids = await listExisting(tx, accountId, videoIds)
      if (ids.length === 0) return ids // another call deleted them first
      await addVideoEvents(tx, 'video:deleted', ids) // first: a tombstone has no tags
      const tags = await listTagsByVideo(tx, ids)
      const times = { trashedAtS: atS, endsAtS: atS + TRASH_S }
      await insertTrashed(
        tx,
        ids.map((videoId) => ({ videoId, accountId, ...times, tags: JSON.stringify(tags.get(videoId) ?? []) })),
      )
      await tombstoneVideos(tx, accountId, ids, atS)
      await deps.endVideoSessions(tx, ids, 'video-deleted')
      await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:trashed', subjects: ids })
      return ids
    })
    .catch(async (error) => {
      if (isCommitOutcomeUnknown(error)) await cleanUpDeleted(deps, videoIds)
      throw error
    })
  await cleanUpDeleted(deps, trashedIds)
  return trashedIds
}

/**
 * Restores the account's videos among `videoIds` from the trash, with their tags, in their folders or, where these are gone, in the root.
 * Sessions that ended remain ended; encoding continues.
 * @returns how many
 * @throws Failure `conflict` where another video has got the `externalId` of one of them meanwhile: none is restored then
 */
export async function restoreFromTrash(deps: DeletionDeps, { accountId, by, videoIds }: Videos): Promise<number> {
  if (videoIds.length === 0) return 0
  const atS = deps.wallNowS()
  const restored = await deps.write(async (tx) => {
    const rows = await removeTrashed(tx, accountId, videoIds)
    const ids = rows.map((row) => row.videoId)
    if (ids.length === 0) return ids
    await assertExternalIdsFree(tx, accountId, await listDeletedExternalIds(tx, ids))
    await leaveDeletedFolders(tx, ids)
    await restoreVideos(tx, accountId, ids)
    for (const { videoId, tags } of rows) await insertTags(tx, accountId, await listPositions(tx, accountId, [videoId]), tags)
    const playableIds = await listExisting(tx, accountId, ids, 'ready')
    if (playableIds.length > 0) await addVideoEvents(tx, 'video:ready', playableIds)
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:restored', subjects: ids })
    return ids
  })
  for (const work of ['encode', 'mp4', 'captions', 'transcription', 'storyboard', 'dub'] as const)
    void deps.signals.send('work-queued', work)
  return restored.length
}

/**
 * Deletes videos that are in the account's trash for good. Durable when it resolves: their keys are destroyed. Their files are removed
 * afterwards.
 * @returns how many
 */
export async function deleteFromTrash(deps: DeletionDeps, { accountId, by, videoIds }: Videos): Promise<number> {
  if (videoIds.length === 0) return 0
  const atS = deps.wallNowS()
  const deletedIds = await deps.write.makingRoom(async (tx) => {
    const ids = (await removeTrashed(tx, accountId, videoIds)).map((row) => row.videoId)
    if (ids.length === 0) return ids
    await destroyKeys(tx, ids)
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:deleted', subjects: ids })
    return ids
  })
  if (deletedIds.length > 0) void deps.signals.send('work-queued', 'removal')
  return deletedIds.length
}

const BATCH_SIZE = 500

/** Deletes what has been in the trash for `TRASH_S`. */
export async function deleteEndedTrash(deps: DeletionDeps): Promise<void> {
  for (;;) {
    const ended = await listEndedTrash(deps.db, deps.wallNowS(), BATCH_SIZE)
    for (const [accountId, videos] of Map.groupBy(ended, (row) => row.accountId))
      await deleteFromTrash(deps, { accountId, by: 'server', videoIds: videos.map(({ videoId }) => videoId) })
    if (ended.length < BATCH_SIZE) return
  }
}

/** A page of the account's trash, the newest first. */
export async function listTrash({ db }: Pick<DeletionDeps, 'db'>, accountId: string, page: { page: number; limit: number }) {
  return listTrashRows(db, accountId, { limit: page.limit, offset: (page.page - 1) * page.limit })
}
