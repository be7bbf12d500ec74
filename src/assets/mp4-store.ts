import { sql, type Updateable } from 'kysely'
import { filesToMake, OF_EXISTING_VIDEO } from '../catalogue/files-to-make.ts'
import { ACCOUNT_ID_UNINDEXED } from '../catalogue/video-store.ts'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { NewFile, Tables } from '../db/tables.ts'

/** Records a request for an MP4. One that exists or is being made is left as it is; one that could not be made is tried again. */
export async function insertRequestedMp4(tx: Db, file: Pick<NewFile, 'videoId' | 'createdAtS' | 'widthPx' | 'heightPx'>) {
  await tx
    .insertInto('file')
    .values({ ...file, type: 'mp4' })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const mp4 = await tx
    .selectFrom('file')
    .select(['id', 'enabled'])
    .where(({ and }) => and({ videoId: file.videoId, type: 'mp4' }))
    .executeTakeFirstOrThrow()
  if (mp4.enabled === 0)
    await tx.updateTable('file').set({ enabled: 1, attempts: 0, problem: null }).where('id', '=', mp4.id).execute()
  return mp4.id
}

/** Whether an MP4 was requested before, made or not. */
export async function hasMp4(db: Db, videoId: string): Promise<boolean> {
  return hasRow(db.selectFrom('file').where(({ and }) => and({ videoId, type: 'mp4' })))
}

/** An MP4 that was requested, the attempts started so far, and the generation that it is made from. */
export type PendingMp4 = { id: number; videoId: string; attempts: number; generation: number }

export async function listAccountsWithPendingMp4s(db: Db, nowS: number): Promise<string[]> {
  const rows = await pendingMp4s(db, nowS).select('video.accountId').distinct().orderBy('video.accountId').execute()
  return rows.map(({ accountId }) => accountId)
}

/** The account's MP4 that was requested first. */
export async function findPendingMp4(db: Db, accountId: string, nowS: number): Promise<PendingMp4 | undefined> {
  return pendingMp4s(db, nowS)
    .select(['file.id', 'file.videoId', 'file.attempts', 'video.generation'])
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .orderBy('file.id')
    .limit(1)
    .executeTakeFirst()
}

function pendingMp4s(db: Db, nowS: number) {
  return filesToMake(db, 'mp4', nowS)
    .where('file.type', '=', sql.lit('mp4')) // a literal, so that the partial index on MP4s is used
    .where('file.blob', 'is', null)
    .where('file.enabled', '=', 1)
}

/** Counts an attempt before it runs, so that one that crashes this process counts, too. False: it is not as it was found. */
export async function beginMp4Attempt(tx: Db, { id, attempts }: PendingMp4): Promise<boolean> {
  const begun = await tx
    .updateTable('file')
    .set({ attempts: attempts + 1 })
    .where(({ and }) => and({ id, attempts }))
    .where('blob', 'is', null)
    .where('enabled', '=', 1)
    .executeTakeFirst()
  return begun.numUpdatedRows > 0n
}

/** Undoes the count of an attempt that failed for a reason outside the video. */
export async function refundMp4Attempt(tx: Db, { id, attempts }: PendingMp4): Promise<void> {
  await tx.updateTable('file').set({ attempts }).where('id', '=', id).execute()
}

/** Records the result of making an MP4. False: it, or its video, was deleted meanwhile. */
export async function finishMp4(tx: Db, id: number, outcome: Updateable<Tables['file']>): Promise<boolean> {
  const ended = await tx
    .updateTable('file')
    .set(outcome)
    .where('id', '=', id)
    .where('blob', 'is', null)
    .where(OF_EXISTING_VIDEO)
    .executeTakeFirst()
  return ended.numUpdatedRows > 0n
}

/** Has an MP4 made again whose file is lost. @param blob the name of that file */
export async function requeueMp4(tx: Db, blob: string): Promise<void> {
  await tx
    .updateTable('file')
    .set({ blob: null, sizeBytes: 0, wrappedKey: null, iv: null, macs: null, enabled: 1, attempts: 0, problem: null })
    .where(({ and }) => and({ type: 'mp4', blob }))
    .execute()
}
