import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { LtiGradeRow } from '../db/tables.ts'
import { wholeSeconds } from '../viewers/intervals.ts'
import { findWatched, type GradeKey, raiseTenths, saveGrade } from './grade-store.ts'

// What learners have watched, as a score from 0 to 1. It is sent once for each tenth, and never lowered.

export const MAX_TENTHS = 10

export function gradeSubjectPurpose(grade: Pick<GradeKey, 'platformId' | 'userId'>): string {
  return `reelgate lti-grade-subject 1 ${grade.platformId} ${grade.userId}`
}

/** Whole tenths of a video's whole seconds. */
function tenthsOf(watchedS: number, lengthS: number): number {
  return lengthS > 0 ? Math.min(MAX_TENTHS, Math.floor((MAX_TENTHS * watchedS) / lengthS)) : 0
}

/** From now on what the learner watches is sent as a score; what was watched before is, too. In the transaction of the launch. */
export async function beginGrade(
  tx: Db,
  masterKey: MasterKey,
  grade: GradeKey & { subject: string; completedAtTenths: number },
  nowS: number,
): Promise<void> {
  const { subject, ...row } = grade
  const watched = await findWatched(tx, row)
  const tenths = watched ? tenthsOf(watched.watchedS, wholeSeconds(watched.durationS)) : 0
  const wrappedSubject = wrap(masterKey, gradeSubjectPurpose(row), Buffer.from(subject, 'utf8'))
  const dueAtS = tenths > 0 ? nowS : null
  await saveGrade(tx, { ...row, id: newId(), wrappedSubject, tenths, launchedAtS: nowS, dueAtS })
}

/** Called in the transaction that stores what a viewer has watched of a video. */
export async function recordWatched(
  tx: Db,
  viewing: Pick<GradeKey, 'accountId' | 'userId' | 'videoId'>,
  { watchedS, lengthS, nowS }: { watchedS: number; lengthS: number; nowS: number },
): Promise<void> {
  const tenths = tenthsOf(watchedS, lengthS)
  if (tenths > 0) await raiseTenths(tx, viewing, { tenths, nowS })
}

/** The platform's id of the learner. */
export function openSubject(masterKey: MasterKey, grade: LtiGradeRow): string {
  return unwrap(masterKey, gradeSubjectPurpose(grade), grade.wrappedSubject).toString('utf8')
}

/** A score as platforms take it: Assignment and Grade Services 2.0, section 3.4. */
export function toScore(
  { tenths, completedAtTenths }: Pick<LtiGradeRow, 'tenths' | 'completedAtTenths'>,
  { subject, timestampMs }: { subject: string; timestampMs: number },
) {
  return {
    userId: subject,
    scoreGiven: tenths / MAX_TENTHS,
    scoreMaximum: 1,
    activityProgress: tenths >= completedAtTenths ? 'Completed' : 'InProgress',
    gradingProgress: 'FullyGraded',
    timestamp: new Date(timestampMs).toISOString(),
  }
}

/** The address of a column with `/scores` before its query, if it has one. */
export function scoresUrl(lineItem: string): string {
  const url = new URL(lineItem)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/scores`
  return url.href
}
