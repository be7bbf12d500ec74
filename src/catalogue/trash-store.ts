import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { ROOT_FOLDER_ID } from './folder.ts'

export type TrashedVideo = { videoId: string; accountId: string; trashedAtS: number; endsAtS: number; tags: string }

export async function insertTrashed(tx: Db, rows: readonly TrashedVideo[]): Promise<void> {
  await tx
    .insertInto('trashedVideo')
    .values([...rows])
    .execute()
}

/** The videos among `videoIds` that have a file: of others there is nothing to restore. */
export async function listWithSource(db: Db, videoIds: readonly string[]): Promise<Set<string>> {
  const rows = await db.selectFrom('video').select('id').where('id', 'in', videoIds).where('hasSource', '=', 1).execute()
  return new Set(rows.map((row) => row.id))
}

/** Takes the account's videos among `videoIds` out of the trash. Without a restoration they are tombstones from then on. */
export async function removeTrashed(
  tx: Db,
  accountId: string,
  videoIds: readonly string[],
): Promise<{ videoId: string; tags: string[] }[]> {
  const rows = await tx
    .deleteFrom('trashedVideo')
    .where('accountId', '=', accountId)
    .where('videoId', 'in', videoIds)
    .returning(['videoId', 'tags'])
    .execute()
  return rows.map(({ videoId, tags }) => ({ videoId, tags: JSON.parse(tags) }))
}

/** The videos in the trash of accounts whose time there has ended, the oldest first. */
export async function listEndedTrash(db: Db, nowS: number, limit: number) {
  return db
    .selectFrom('trashedVideo')
    .select(['videoId', 'accountId'])
    .where('endsAtS', '<=', nowS)
    .orderBy('endsAtS')
    .limit(limit)
    .execute()
}

/** A page of what is in the account's trash, the newest first, and how much there is. */
export async function listTrashRows(db: Db, accountId: string, { limit, offset }: { limit: number; offset: number }) {
  const rows = await db
    .selectFrom('trashedVideo')
    .innerJoin('video', 'video.id', 'trashedVideo.videoId')
    .select(['videoId', 'title', 'durationS', 'totalSizeBytes', 'trashedAtS', 'endsAtS'])
    .where('trashedVideo.accountId', '=', accountId)
    .orderBy('trashedAtS', 'desc')
    .orderBy('trashedVideo.videoId')
    .limit(limit)
    .offset(offset)
    .execute()
  const total = await db
    .selectFrom('trashedVideo')
    .innerJoin('video', 'video.id', 'trashedVideo.videoId')
    .select(({ fn }) => [fn.countAll<number>().as('count'), fn.sum<number | null>('totalSizeBytes').as('sizeBytes')])
    .where('trashedVideo.accountId', '=', accountId)
    .executeTakeFirstOrThrow()
  return { rows, count: Number(total.count), sizeBytes: Number(total.sizeBytes ?? 0) }
}

/** Puts the videos whose folder was deleted meanwhile into the root. */
export async function leaveDeletedFolders(tx: Db, videoIds: readonly string[]): Promise<void> {
  await tx
    .updateTable('video')
    .set({ folderId: ROOT_FOLDER_ID })
    .where('id', 'in', videoIds)
    .where(
      sql<boolean>`not exists (select 1 from folder where folder.account_id = video.account_id and folder.id = video.folder_id)`,
    )
    .execute()
}

/** The tags of the videos, by their ids, in the order in which they were added. */
export async function listTagsByVideo(db: Db, videoIds: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await db
    .selectFrom('video')
    .innerJoin('videoTag', 'videoTag.position', 'video.position')
    .select(['video.id', 'name'])
    .where('video.id', 'in', videoIds)
    .orderBy('ordinal')
    .execute()
  return new Map([...Map.groupBy(rows, (row) => row.id)].map(([id, tags]) => [id, tags.map((tag) => tag.name)]))
}
