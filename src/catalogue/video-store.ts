import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import type { VideoRow } from '../db/tables.ts'
import type { VideoStatus } from './status.ts'

/** Its owner's own fields, as its row has them. */
export type OwnColumns = Partial<Pick<VideoRow, 'externalId' | 'metadata'>>

/**
 * Adds a video that waits for its upload, or is `Queued` for an import, and counts it.
 * `folderId` must be a folder of the account; without one the video is in the root.
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
    /** The person who adds it; absent: an API key. */
    addedBy?: string | undefined
  } & OwnColumns,
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
 * `account_id`, as an expression that no index matches, so that rows named by id or position are found by these. PostgreSQL estimates
 * hundreds of ids (before a table's first ANALYZE a single one) as more rows than an account has, and would scan all of the account's.
 */
export const ACCOUNT_ID_UNINDEXED = sql<string>`account_id || ''`

/**
 * `deleted_at_s is null`, as an expression that no index matches: where rows of another table name a few videos, PostgreSQL would start
 * with all videos that are not deleted.
 */
export const NOT_DELETED_UNINDEXED = sql<boolean>`coalesce(video.deleted_at_s, 0) = 0`

/** Of a video in the query: no generation is being made that will replace what it plays. */
export const HAS_NO_LATER_GENERATION = sql<boolean>`not exists (
  select 1 from generation as later
  where later.video_id = video.id and later.number > video.generation and later.kept_until_s is null
)`

export async function findVideo(db: Db, accountId: string, videoId: string): Promise<VideoRow | undefined> {
  return db
    .selectFrom('video')
    .selectAll()
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', '=', videoId)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
}

/** Whether a person has added all of these videos of the account. */
export async function hasAddedAll(db: Db, accountId: string, userId: string, videoIds: readonly string[]): Promise<boolean> {
  const distinct = [...new Set(videoIds)]
  const rows = await db
    .selectFrom('video')
    .select('id')
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', distinct)
    .where('addedBy', '=', userId)
    .where('deletedAtS', 'is', null)
    .execute()
  return distinct.length > 0 && rows.length === distinct.length
}

/** The videos at these positions, newest first; one that was deleted in the meantime is missing. */
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

/** The fields of a video that an owner may change. */
export type VideoChanges = { title?: string; description?: string; public?: 0 | 1; folderId?: string } & OwnColumns

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

/** Puts the account's videos into one of its folders. @returns how many */
export async function setFolder(tx: Db, accountId: string, videoIds: readonly string[], folderId: string): Promise<number> {
  const { numUpdatedRows } = await tx
    .updateTable('video')
    .set({ folderId })
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', videoIds)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/**
 * The videos that belong to the account and are not deleted.
 * @param onlyStatus when given, only videos in this state
 */
export async function listExisting(db: Db, accountId: string, videoIds: readonly string[], onlyStatus?: VideoStatus) {
  const rows = await db
    .selectFrom('video')
    .select('id')
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', videoIds)
    .where('deletedAtS', 'is', null)
    .$if(onlyStatus !== undefined, (videos) => videos.where('status', '=', onlyStatus ?? ''))
    .execute()
  return rows.map((row) => row.id)
}

/** What names a video in lists of other things. */
export type VideoSummary = Pick<VideoRow, 'id' | 'title' | 'durationS'>

/** Those of the videos that exist. */
export async function listSummaries(db: Db, accountId: string, videoIds: readonly string[]): Promise<VideoSummary[]> {
  return db
    .selectFrom('video')
    .select(['id', 'title', 'durationS'])
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', videoIds)
    .where('deletedAtS', 'is', null)
    .execute()
}

/** Marks existing videos of the account as deleted, and subtracts them from its count. */
export function tombstoneVideos(tx: Db, accountId: string, videoIds: readonly string[], nowS: number): Promise<void> {
  return setDeleted(tx, accountId, videoIds, nowS)
}

/** The reverse of `tombstoneVideos`. */
export function restoreVideos(tx: Db, accountId: string, videoIds: readonly string[]): Promise<void> {
  return setDeleted(tx, accountId, videoIds, null)
}

async function setDeleted(tx: Db, accountId: string, videoIds: readonly string[], deletedAtS: number | null): Promise<void> {
  await tx
    .updateTable('video')
    .set({ deletedAtS })
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', videoIds)
    .execute()
  await tx
    .updateTable('account')
    .set((account) => ({ videoCount: account('videoCount', deletedAtS === null ? '+' : '-', videoIds.length) }))
    .where('id', '=', accountId)
    .execute()
}

/** Removes the keys of deleted videos: from here on their files cannot be decrypted. */
export async function destroyKeys(tx: Db, videoIds: readonly string[]): Promise<void> {
  await returnTokenFiles(tx, videoIds)
  await tx.deleteFrom('import').where('videoId', 'in', videoIds).execute() // with its URL, which may be signed
  await tx.deleteFrom('resumableUpload').where('videoId', 'in', videoIds).execute()
  await tx.updateTable('source').set({ wrappedKey: null }).where('videoId', 'in', videoIds).execute()
  await tx.updateTable('file').set({ wrappedKey: null }).where('videoId', 'in', videoIds).execute()
  await tx.updateTable('generation').set({ wrappedContentKey: null }).where('videoId', 'in', videoIds).execute()
}

/** An upload token may be used again for a file that never arrived. */
async function returnTokenFiles(tx: Db, videoIds: readonly string[]): Promise<void> {
  const rows = await tx
    .selectFrom('video')
    .select(['uploadTokenId', ({ fn }) => fn.countAll<number>().as('count')])
    .where('id', 'in', videoIds)
    .where('uploadTokenId', 'is not', null)
    .where('status', '=', 'PRE-Upload')
    .groupBy('uploadTokenId')
    .execute()
  for (const { uploadTokenId, count } of rows) if (uploadTokenId !== null) await returnFilesOfToken(tx, uploadTokenId, count)
}

/** So many files that were counted never arrived. */
export async function returnFilesOfToken(tx: Db, uploadTokenId: string, count: number): Promise<void> {
  await tx
    .updateTable('uploadToken')
    .set((token) => ({ files: token('files', '-', count) }))
    .where('id', '=', uploadTokenId)
    .execute()
}

/** Deleted videos whose files may still exist, without those in the trash. */
export async function listTombstones(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('video')
    .select('id')
    .where('deletedAtS', 'is not', null)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('trashedVideo').select('videoId').whereRef('trashedVideo.videoId', '=', 'video.id'))),
    )
    .execute()
  return rows.map((row) => row.id)
}

const TABLES_WITH_VIDEO_ID = [
  'segment',
  'chunk',
  'rendition',
  'generation',
  'source',
  'replacement',
  'file',
  'chapters',
  'audioSettings',
  'dub',
  'uploadPolicy',
  'viewTotal',
  'viewing',
  'viewingDay',
  'ltiGrade',
] as const

/** Removes the rows of a deleted video, after its files. */
export async function removeTombstone(tx: Db, videoId: string): Promise<void> {
  for (const table of TABLES_WITH_VIDEO_ID) await tx.deleteFrom(table).where('videoId', '=', videoId).execute()
  await tx.deleteFrom('video').where('id', '=', videoId).where('deletedAtS', 'is not', null).execute()
}

/** Sets the original name of the source file. */
export async function setFileName(tx: Db, videoId: string, fileName: string): Promise<void> {
  await tx.updateTable('video').set({ fileName }).where('id', '=', videoId).execute()
}

/** Adds the size of the source to the video's total size. */
export async function addSize(tx: Db, videoId: string, sizeBytes: number): Promise<void> {
  await tx
    .updateTable('video')
    .set((video) => ({ totalSizeBytes: video('totalSizeBytes', '+', sizeBytes) }))
    .where('id', '=', videoId)
    .execute()
}

/** The public fields of a video; undefined when it is deleted. */
export async function findVideoDetails(db: Db, videoId: string) {
  return db
    .selectFrom('video')
    .select(['title', 'public', 'durationS', 'aspectRatio', 'uploadTimeS', 'accountId'])
    .where('id', '=', videoId)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
}

/** The account of a video, deleted or not; undefined when its row is gone. */
export async function findAccountOfVideo(db: Db, videoId: string): Promise<string | undefined> {
  const row = await db.selectFrom('video').select('accountId').where('id', '=', videoId).executeTakeFirst()
  return row?.accountId
}
