import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import type { WorkKind } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'
import { NOT_DELETED_UNINDEXED } from './video-store.ts'

/** Of a file in the query: its video is not deleted. */
export const OF_EXISTING_VIDEO = sql<boolean>`exists (
  select 1 from video where video.id = file.video_id and ${NOT_DELETED_UNINDEXED}
)`

/** Files whose making is work of a kind, as far as none works on their video; those of a disabled account wait. */
export function filesToMake(db: Db, kind: WorkKind, nowS: number) {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .innerJoin('account', 'account.id', 'video.accountId')
    .where('video.id', 'not in', claimedSubjects(db, kind, nowS))
    .where('video.deletedAtS', 'is', null)
    .where('account.disabled', '=', 0)
}
