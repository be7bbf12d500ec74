import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { LtiGradeRow } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'

export type GradeKey = Pick<LtiGradeRow, 'accountId' | 'userId' | 'videoId' | 'platformId' | 'lineItem'>

/** Notes that a learner has launched a video that is graded. What was watched before counts; a score that was sent is never lowered. */
export async function saveGrade(
  tx: Db,
  grade: Omit<LtiGradeRow, 'sentTenths' | 'sentAtMs' | 'attempts' | 'problem'>,
): Promise<void> {
  const { wrappedSubject, completedAtTenths, launchedAtS } = grade
  await tx
    .insertInto('ltiGrade')
    .values(grade)
    .onConflict((conflict) =>
      conflict
        .columns(['accountId', 'userId', 'videoId', 'platformId', 'lineItem'])
        .doUpdateSet({ wrappedSubject, completedAtTenths, launchedAtS }),
    )
    .execute()
}

/** Raises what a viewer has watched of a video, in all courses that grade it. */
export async function raiseTenths(
  tx: Db,
  { accountId, userId, videoId }: Pick<GradeKey, 'accountId' | 'userId' | 'videoId'>,
  { tenths, nowS }: { tenths: number; nowS: number },
): Promise<void> {
  await tx
    .updateTable('ltiGrade')
    .set({ tenths, dueAtS: ({ fn }) => fn.coalesce('dueAtS', sql<number>`${nowS}`) })
    .where((row) => row.and({ accountId, userId, videoId }))
    .where('tenths', '<', tenths)
    .execute()
}

/** The share that a viewer has watched of a video as it is now, in whole seconds; undefined: nothing is stored. */
export async function findWatched(
  db: Db,
  { accountId, userId, videoId }: Pick<GradeKey, 'accountId' | 'userId' | 'videoId'>,
): Promise<{ watchedS: number; durationS: number } | undefined> {
  return db
    .selectFrom('viewing')
    .innerJoin('video', 'video.id', 'viewing.videoId')
    .select(['viewing.watchedS', 'video.durationS'])
    .where('viewing.accountId', '=', accountId)
    .where('viewing.userId', '=', userId)
    .where('viewing.videoId', '=', videoId)
    .executeTakeFirst()
}

/** The score that has been due longest, of a platform that is confirmed. */
export async function findDueScore(db: Db, nowS: number): Promise<LtiGradeRow | undefined> {
  return db
    .selectFrom('ltiGrade')
    .innerJoin('ltiPlatform', 'ltiPlatform.id', 'ltiGrade.platformId')
    .selectAll('ltiGrade')
    .where('dueAtS', '<=', nowS)
    .where('confirmedAtS', 'is not', null)
    .where('ltiGrade.id', 'not in', claimedSubjects(db, 'score', nowS))
    .orderBy('dueAtS')
    .orderBy('ltiGrade.id')
    .limit(1)
    .executeTakeFirst()
}

export async function findGrade(db: Db, id: string): Promise<LtiGradeRow | undefined> {
  return db.selectFrom('ltiGrade').selectAll().where('id', '=', id).executeTakeFirst()
}

export async function updateGrade(
  tx: Db,
  id: string,
  change: Partial<Pick<LtiGradeRow, 'dueAtS' | 'attempts' | 'problem' | 'sentTenths' | 'sentAtMs'>>,
): Promise<void> {
  await tx.updateTable('ltiGrade').set(change).where('id', '=', id).execute()
}

/** Removes some of the grades that were launched last before then. @returns how many */
export function removeOldGrades(tx: Db, beforeS: number, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'ltiGrade', key: ['id'], age: 'launchedAtS' }, beforeS, limit)
}
