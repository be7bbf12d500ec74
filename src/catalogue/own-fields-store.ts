import type { Db } from '../db/database.ts'
import { ACCOUNT_ID_UNINDEXED } from './video-store.ts'

/** The account's videos that have one of these ids. */
export async function listExternalIds(db: Db, accountId: string, externalIds: readonly string[]) {
  return db
    .selectFrom('video')
    .select(['id', 'position', 'externalId'])
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('externalId', 'in', externalIds)
    .where('deletedAtS', 'is', null)
    .execute()
}

/** The ids that deleted videos had, and would have again. */
export async function listDeletedExternalIds(db: Db, videoIds: readonly string[]): Promise<(string | null)[]> {
  const rows = await db
    .selectFrom('video')
    .select('externalId')
    .where('id', 'in', videoIds)
    .where('externalId', 'is not', null)
    .execute()
  return rows.map(({ externalId }) => externalId)
}
