import { sql, type Updateable } from 'kysely'
import { ACCOUNT_ID_UNINDEXED, NOT_DELETED_UNINDEXED } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { NewFile, Tables } from '../db/tables.ts'

/** Notes that an MP4 is to be made; one that is there, or is being made, stays, and one that could not be made is tried anew. */
export async function insertRequestedMp4(
  tx: Db,
  file: Pick<NewFile, 'videoId' | 'createdAtS' | 'widthPx' | 'heightPx'>,
): Promise<number> {
  await tx
    .insertInto('file')
    .values({ ...file, type: 'mp4' })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const mp4 = await tx
    .selectFrom('file')
    .select(['id', 'enabled'])
    .where('videoId', '=', file.videoId)
    .where('type', '=', 'mp4')
    .executeTakeFirstOrThrow()
  if (mp4.enabled === 0)
    await tx.updateTable('file').set({ enabled: 1, attempts: 0, problem: null }).where('id', '=', mp4.id).execute()
  return mp4.id
}

/** An MP4 that is to be made, how often that was begun, and the generation that it is made of. */
export type PendingMp4 = { id: number; videoId: string; attempts: number; generation: number }

/** Accounts that have an MP4 to be made. */
export async function listAccountsWithPendingMp4s(db: Db, notNow: readonly number[]): Promise<string[]> {
  const rows = await unmadeMp4s(db, notNow).select('video.accountId').distinct().orderBy('video.accountId').execute()
  return rows.map(({ accountId }) => accountId)
}

/** The account's MP4 that was asked for first. */
export async function findPendingMp4(db: Db, accountId: string, notNow: readonly number[]): Promise<PendingMp4 | undefined> {
  return unmadeMp4s(db, notNow)
    .select(['file.id', 'file.videoId', 'file.attempts', 'video.generation'])
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .orderBy('file.id')
    .limit(1)
    .executeTakeFirst()
}

/** A disabled account's wait. */
function unmadeMp4s(db: Db, notNow: readonly number[]) {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .innerJoin('account', 'account.id', 'video.accountId')
    .where('file.type', '=', sql.lit('mp4')) // written out, for the index of these alone
    .where('file.blob', 'is', null)
    .where('file.enabled', '=', 1)
    .where('file.id', 'not in', [...notNow])
    .where('video.deletedAtS', 'is', null)
    .where('account.disabled', '=', 0)
}

/** Counts a try before it is made, so that one which ends this process counts, too. False: deleted meanwhile. */
export async function beginMp4Attempt(tx: Db, { id, attempts }: PendingMp4): Promise<boolean> {
  const begun = await tx
    .updateTable('file')
    .set({ attempts: attempts + 1 })
    .where('id', '=', id)
    .executeTakeFirst()
  return begun.numUpdatedRows > 0n
}

/** Takes back the count of a try that failed through no fault of its own; as often as one likes. */
export async function uncountMp4Attempt(tx: Db, { id, attempts }: PendingMp4): Promise<void> {
  await tx
    .updateTable('file')
    .set({ attempts })
    .where('id', '=', id)
    .where('attempts', '=', attempts + 1)
    .execute()
}

/** Ends the making of an MP4. False: it, or its video, was deleted meanwhile. */
export async function finishMp4(tx: Db, id: number, outcome: Updateable<Tables['file']>): Promise<boolean> {
  const ended = await tx
    .updateTable('file')
    .set(outcome)
    .where('id', '=', id)
    .where('blob', 'is', null)
    .where(({ exists, selectFrom }) =>
      exists(selectFrom('video').select('video.id').whereRef('video.id', '=', 'file.videoId').where(NOT_DELETED_UNINDEXED)),
    )
    .executeTakeFirst()
  return ended.numUpdatedRows > 0n
}
