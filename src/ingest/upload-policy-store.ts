import { NOT_DELETED_UNINDEXED } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'

export async function insertPolicy(
  tx: Db,
  accountId: string,
  policy: { key: string; videoId: string; expiresAtS: number; replaces?: 0 | 1 },
): Promise<void> {
  await tx
    .insertInto('uploadPolicy')
    .values({ ...policy, accountId })
    .execute()
}

/** A policy whose video is not deleted; `spentAtS` is set once an upload has used it. */
export async function findPolicy(db: Db, key: string) {
  return db
    .selectFrom('uploadPolicy')
    .innerJoin('video', 'video.id', 'uploadPolicy.videoId')
    .innerJoin('account', 'account.id', 'video.accountId')
    .select([
      'uploadPolicy.videoId',
      'uploadPolicy.spentAtS',
      'uploadPolicy.replaces',
      'account.id as accountId',
      'account.disabled',
    ])
    .where('uploadPolicy.key', '=', key)
    .where('video.deletedAtS', 'is', null)
    .executeTakeFirst()
}

/** Some of the videos whose upload is pending and whose policy expired before then, the oldest first. */
export async function listExpiredUploads(db: Db, expiredBeforeS: number, limit: number) {
  return db
    .selectFrom('uploadPolicy')
    .innerJoin('video', 'video.id', 'uploadPolicy.videoId')
    .select(['video.id', 'video.accountId'])
    .where('uploadPolicy.spentAtS', 'is', null)
    .where('uploadPolicy.expiresAtS', '<', expiredBeforeS)
    .where('video.status', '=', 'PRE-Upload')
    .where(NOT_DELETED_UNINDEXED)
    .orderBy('uploadPolicy.expiresAtS')
    .limit(limit)
    .execute()
}

/** Marks the policy as used, and for which file. False: another upload was first. */
export async function spendPolicy(tx: Db, key: string, by: { spentAtS: number; replaces: number }): Promise<boolean> {
  const spent = await tx
    .updateTable('uploadPolicy')
    .set(by)
    .where('key', '=', key)
    .where('spentAtS', 'is', null)
    .executeTakeFirst()
  return spent.numUpdatedRows > 0n
}
