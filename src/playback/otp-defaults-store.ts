import { ACCOUNT_ID_UNINDEXED, NOT_DELETED_UNINDEXED } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'

const selectBoth = prepared<{ accountId: string; videoId: string }>()((db, value) =>
  db
    .selectFrom('account')
    .select((of) => [
      'otpDefaults as ofAccount',
      'otpDefaultsRemovable as areRemovable',
      of
        .selectFrom('video')
        .select('video.otpDefaults')
        .where('video.id', '=', value('videoId'))
        .where(ACCOUNT_ID_UNINDEXED, '=', value('accountId'))
        .where(NOT_DELETED_UNINDEXED)
        .as('ofVideo'),
    ])
    .where('id', '=', value('accountId')),
)

/** The defaults of an account and of one of its videos, as JSON. */
export async function findBothDefaults(db: Db, accountId: string, videoId: string) {
  return (await selectBoth(db, { accountId, videoId })).rows[0]
}

export async function findAccountDefaults(db: Db, accountId: string): Promise<string | null> {
  const row = await db.selectFrom('account').select('otpDefaults').where('id', '=', accountId).executeTakeFirst()
  return row?.otpDefaults ?? null
}

export async function saveAccountDefaults(tx: Db, accountId: string, otpDefaults: string | null): Promise<void> {
  await tx.updateTable('account').set({ otpDefaults }).where('id', '=', accountId).execute()
}

/** @returns how many of the videos the account has */
export async function saveVideosDefaults(
  tx: Db,
  accountId: string,
  videoIds: readonly string[],
  otpDefaults: string | null,
): Promise<number> {
  const { numUpdatedRows } = await tx
    .updateTable('video')
    .set({ otpDefaults })
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('id', 'in', videoIds)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}
