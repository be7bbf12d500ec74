import { sql, type Updateable } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'
import { filesToMake, OF_EXISTING_VIDEO } from './files-to-make.ts'
import { ACCOUNT_ID_UNINDEXED } from './video-store.ts'

/** Captions that are to be made of speech, and the attempts started so far. */
export type Untranscribed = { id: number; videoId: string; language: string; attempts: number }

const isRequested = sql<boolean>`file.type = 'caption' and file.blob is null and file.automatic = 1`
/** Literals, so that the partial index on captions without a blob is used. */
const isUntranscribed = sql<boolean>`file.type = 'caption' and file.blob is null and file.problem is null and file.automatic = 1`

/** Records a request. One that waits or runs is left as it is; one that failed is tried again. @returns the id of the file */
export async function insertTranscription(
  tx: Db,
  caption: { videoId: string; language: string; createdAtS: number },
): Promise<number> {
  const { videoId, language } = caption
  const known = await tx
    .selectFrom('file')
    .select('id')
    .where(({ and }) => and({ videoId, language }))
    .where(isRequested)
    .executeTakeFirst()
  if (known) {
    const again = { attempts: 0, problem: null, progress: 0 }
    await tx.updateTable('file').set(again).where('id', '=', known.id).where('problem', 'is not', null).execute()
    return known.id
  }
  const { id } = await tx
    .insertInto('file')
    .values({ ...caption, type: 'caption', enabled: 0, automatic: 1 })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/** Whether viewers get captions in a language that people have written or looked at. */
export async function hasReviewedCaptions(db: Db, videoId: string, language: string): Promise<boolean> {
  const isReviewed = { type: 'caption', enabled: 1, automatic: 0 } as const
  return hasRow(db.selectFrom('file').where(({ and }) => and({ videoId, language, ...isReviewed })))
}

export async function listAccountsToTranscribe(db: Db, nowS: number): Promise<string[]> {
  const rows = await untranscribed(db, nowS).select('video.accountId').distinct().orderBy('video.accountId').execute()
  return rows.map(({ accountId }) => accountId)
}

/** The account's captions that have waited longest. */
export async function findUntranscribed(db: Db, accountId: string, nowS: number): Promise<Untranscribed | undefined> {
  return untranscribed(db, nowS)
    .select(['file.id', 'file.videoId', 'file.language', 'file.attempts'])
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .orderBy('file.id')
    .limit(1)
    .$narrowType<{ language: string }>()
    .executeTakeFirst()
}

/** Of videos that have been examined. */
function untranscribed(db: Db, nowS: number) {
  return filesToMake(db, 'transcription', nowS).where(isUntranscribed).where('video.generation', '>', 0)
}

/** Counts an attempt before it runs, so that one that crashes this process counts, too. False: it is not as it was found. */
export async function beginTranscription(tx: Db, { id, attempts }: Untranscribed): Promise<boolean> {
  return updateUntranscribed(tx, id, { attempts: attempts + 1, progress: 0 })
}

/** Undoes the count of an attempt that failed for a reason outside the video. */
export async function refundTranscription(tx: Db, { id, attempts }: Untranscribed): Promise<void> {
  await updateUntranscribed(tx, id, { attempts })
}

/** Records how far a transcription is, why there is none, or where it is stored. False: it, or its video, was deleted meanwhile. */
export async function updateUntranscribed(tx: Db, id: number, change: Updateable<Tables['file']>): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('file')
    .set(change)
    .where('id', '=', id)
    .where(isUntranscribed)
    .where(OF_EXISTING_VIDEO)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Hides from viewers what a program made in a language before. */
export async function disableAutomatic(tx: Db, videoId: string, language: string): Promise<void> {
  await tx
    .updateTable('file')
    .set({ enabled: 0 })
    .where(({ and }) => and({ videoId, language, type: 'caption', enabled: 1, automatic: 1 }))
    .execute()
}
