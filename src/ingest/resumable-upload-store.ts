import type { Insertable, Updateable } from 'kysely'
import { NOT_DELETED_UNINDEXED } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { ResumableUploadRow, Tables } from '../db/tables.ts'

export async function insertResumableUpload(tx: Db, row: Insertable<Tables['resumableUpload']>): Promise<void> {
  await tx.insertInto('resumableUpload').values(row).execute()
}

/** Of the account's, one whose video is not deleted, and who added that. */
export async function findResumableUpload(
  db: Db,
  accountId: string,
  id: string,
): Promise<(ResumableUploadRow & { addedBy: string | null }) | undefined> {
  return db
    .selectFrom('resumableUpload')
    .innerJoin('video', 'video.id', 'resumableUpload.videoId')
    .selectAll('resumableUpload')
    .select('video.addedBy')
    .where('resumableUpload.id', '=', id)
    .where('resumableUpload.accountId', '=', accountId)
    .where(NOT_DELETED_UNINDEXED)
    .executeTakeFirst()
}

/** How far an upload has come. */
type Progress = Pick<ResumableUploadRow, 'lengthBytes' | 'receivedBytes' | 'receivedState' | 'expiresAtS'>

/** @param fromBytes what had arrived before. False: another request was first, or the upload is gone */
export async function updateResumableUpload(
  tx: Db,
  id: string,
  fromBytes: number,
  progress: Progress & Updateable<Tables['resumableUpload']>,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('resumableUpload')
    .set(progress)
    .where(({ and }) => and({ id, receivedBytes: fromBytes }))
    .where('finishedAtS', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Everything has arrived. It is kept until then, so that a client that lost the response learns so. False: as `updateResumableUpload`. */
export async function finishResumableUpload(
  tx: Db,
  id: string,
  fromBytes: number,
  finished: { sizeBytes: number; finishedAtS: number; expiresAtS: number },
): Promise<boolean> {
  const { sizeBytes, ...times } = finished
  const { numUpdatedRows } = await tx
    .updateTable('resumableUpload')
    .set({ ...times, lengthBytes: sizeBytes, receivedBytes: sizeBytes, receivedState: null, wrappedKey: null })
    .where(({ and }) => and({ id, receivedBytes: fromBytes }))
    .where('finishedAtS', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Some of those that expired before then, the oldest first. */
export async function listExpiredResumableUploads(db: Db, nowS: number, limit: number) {
  return db
    .selectFrom('resumableUpload')
    .select(['id', 'videoId', 'accountId', 'finishedAtS'])
    .where('expiresAtS', '<=', nowS)
    .orderBy('expiresAtS')
    .limit(limit)
    .execute()
}

/** Those of these that have finished: their videos have their sources. */
export async function removeFinishedResumableUploads(tx: Db, ids: readonly string[]): Promise<void> {
  await tx.deleteFrom('resumableUpload').where('id', 'in', ids).where('finishedAtS', 'is not', null).execute()
}

/** Removes one before it has finished, of a video that stays. Undefined: it has finished. */
export async function removeUnfinishedResumableUpload(
  tx: Db,
  id: string,
): Promise<Pick<ResumableUploadRow, 'uploadTokenId'> | undefined> {
  return tx
    .deleteFrom('resumableUpload')
    .where('id', '=', id)
    .where('finishedAtS', 'is', null)
    .returning('uploadTokenId')
    .executeTakeFirst()
}
