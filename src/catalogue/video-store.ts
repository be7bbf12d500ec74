import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import type { VideoRow } from '../db/tables.ts'
import type { VideoStatus } from './status.ts'

/**
 * Adds a video that waits for its upload, or is `Queued` for what will be fetched, and counts it.
 * Without a folder, which must be the account's, it lies in the root.
 */
export async function insertVideo(
  tx: Db,
  accountId: string,
  video: {
    id: string
    title: string
    uploadTimeS: number
    fileName?: string
    status?: 'PRE-Upload' | 'Queued'
    folderId?: string
  },
): Promise<void> {
  await tx
    .insertInto('video')
    .values({ fileName: '', status: 'PRE-Upload', ...video, accountId, description: '' })
    .execute()
  await tx
    .updateTable('account')
    .set((account) => ({ videoCount: account('videoCount', '+', 1) }))
    .where('id', '=', accountId)
    .execute()
}

/**
 * `account_id`, by which no index is chosen: what is named by id or position is found by that. PostgreSQL takes hundreds of ids for more
 * than an account has, and before a table's first ANALYZE a single one, and would walk all that the account has.
 */
export const ACCOUNT_ID_UNINDEXED = sql<string>`account_id || ''`

/**
 * `deleted_at_s is null`, by which no index is chosen: where rows of another table name a few videos, PostgreSQL would begin with all that
 * are present.
 */
export const NOT_DELETED_UNINDEXED = sql<boolean>`coalesce(video.deleted_at_s, 0) = 0`

export async function findVideo(db: Db, accountId: string, videoId: string): Promise<VideoRow | undefined> {
  return db
    .selectFrom('video')
    .selectAll()
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', '=', videoId)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
}

/** The videos at these positions, newest first; one that was deleted meanwhile is missing. */
export async function findVideosByPosition(db: Db, accountId: string, positions: readonly number[]): Promise<VideoRow[]> {
  if (positions.length === 0) return []
  const rows = await db
    .selectFrom('video')
    .selectAll()
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('position', 'in', positions)
    .orderBy('position', 'desc')
    .execute()
  return rows.filter(({ deletedAtS }) => deletedAtS === null)
}

/** Positions of those of the videos that are the account's. */
export async function listPositions(db: Db, accountId: string, videoIds: readonly string[]): Promise<number[]> {
  const rows = await db
    .selectFrom('video')
    .select('position')
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', videoIds)
    .where('deletedAtS', 'is', null)
    .execute()
  return rows.map((row) => row.position)
}

/** What an owner may change of a video. */
export type VideoChanges = { title?: string; description?: string; public?: 0 | 1; folderId?: string }

/** False: the account has no such video. */
export async function updateVideo(tx: Db, accountId: string, videoId: string, changes: VideoChanges): Promise<boolean> {
  const updated = await tx
    .updateTable('video')
    .set(changes)
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', '=', videoId)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  return updated.numUpdatedRows > 0n
}

/**
 * Those of the videos that are the account's and not deleted.
 * @param only in this state, when given
 */
export async function listExisting(
  db: Db,
  accountId: string,
  videoIds: readonly string[],
  only?: VideoStatus,
): Promise<string[]> {
  const rows = await db
    .selectFrom('video')
    .select('id')
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', videoIds)
    .where('deletedAtS', 'is', null)
    .$if(only !== undefined, (videos) => videos.where('status', '=', only ?? ''))
    .execute()
  return rows.map((row) => row.id)
}

/** Marks videos deleted that are the account's and present, and uncounts them. */
export async function tombstoneVideos(tx: Db, accountId: string, videoIds: readonly string[], nowS: number): Promise<void> {
  await tx
    .updateTable('video')
    .set({ deletedAtS: nowS })
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', videoIds)
    .execute()
  await tx
    .updateTable('account')
    .set((account) => ({ videoCount: account('videoCount', '-', videoIds.length) }))
    .where('id', '=', accountId)
    .execute()
}

/** Forgets the keys of deleted videos: from here on nothing opens their files. */
export async function destroyKeys(tx: Db, videoIds: readonly string[]): Promise<void> {
  await tx.deleteFrom('import').where('videoId', 'in', videoIds).execute() // with the address, which may be signed
  await tx.updateTable('source').set({ wrappedKey: null }).where('videoId', 'in', videoIds).execute()
  await tx.updateTable('file').set({ wrappedKey: null }).where('videoId', 'in', videoIds).execute()
  await tx.updateTable('generation').set({ wrappedContentKey: null }).where('videoId', 'in', videoIds).execute()
}

/** Videos that are deleted and whose files may still lie there. */
export async function listTombstones(db: Db): Promise<string[]> {
  const rows = await db.selectFrom('video').select('id').where('deletedAtS', 'is not', null).execute()
  return rows.map((row) => row.id)
}

const TABLES_OF_A_VIDEO = [
  'segment',
  'chunk',
  'rendition',
  'generation',
  'source',
  'file',
  'uploadPolicy',
  'viewTotal',
  'watchPosition',
] as const

/** Removes the rows of a deleted video, once its files are gone. */
export async function removeTombstone(tx: Db, videoId: string): Promise<void> {
  for (const table of TABLES_OF_A_VIDEO) await tx.deleteFrom(table).where('videoId', '=', videoId).execute()
  await tx.deleteFrom('video').where('id', '=', videoId).where('deletedAtS', 'is not', null).execute()
}

/** Notes the name that the source came under. */
export async function setFileName(tx: Db, videoId: string, fileName: string): Promise<void> {
  await tx.updateTable('video').set({ fileName }).where('id', '=', videoId).execute()
}

/** Counts the source among the space that the video takes, beside what its other files do. */
export async function addSize(tx: Db, videoId: string, sizeBytes: number): Promise<void> {
  await tx
    .updateTable('video')
    .set((video) => ({ totalSizeBytes: video('totalSizeBytes', '+', sizeBytes) }))
    .where('id', '=', videoId)
    .execute()
}

/** What a viewer is told of a video; undefined when it is deleted. */
export async function findPublicVideo(db: Db, videoId: string) {
  return db
    .selectFrom('video')
    .select(['title', 'public', 'durationS', 'aspectRatio'])
    .where('id', '=', videoId)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
}
