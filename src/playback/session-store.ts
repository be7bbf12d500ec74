import type { Insertable } from 'kysely'
import type { Db } from '../db/sqlite.ts'
import type { NewRedeemAttempt, PlaybackSessionRow, Tables } from '../db/tables.ts'

type NewSession = Omit<Insertable<Tables['playbackSession']>, 'leftAtS' | 'endedAtS' | 'endReason'>

export async function insertSession(tx: Db, session: NewSession): Promise<PlaybackSessionRow> {
  return tx.insertInto('playbackSession').values(session).returningAll().executeTakeFirstOrThrow()
}

export async function findSession(db: Db, sessionId: string): Promise<PlaybackSessionRow | undefined> {
  return db.selectFrom('playbackSession').selectAll().where('id', '=', sessionId).executeTakeFirst()
}

export async function findSessionOfOtp(db: Db, otpHash: Buffer): Promise<PlaybackSessionRow | undefined> {
  return db.selectFrom('playbackSession').selectAll().where('otpHash', '=', otpHash).executeTakeFirst()
}

/** A new page also takes back that the viewer had left. */
export async function setPages(tx: Db, sessionId: string, pages: readonly string[]): Promise<void> {
  await tx
    .updateTable('playbackSession')
    .set({ pages: JSON.stringify(pages), leftAtS: null })
    .where('id', '=', sessionId)
    .execute()
}

export async function saveLastSeen(tx: Db, sessionId: string, lastSeenAtS: number, leftAtS: number | null): Promise<void> {
  await tx.updateTable('playbackSession').set({ lastSeenAtS, leftAtS }).where('id', '=', sessionId).execute()
}

/** Ends a session, once. */
export async function endSession(tx: Db, sessionId: string, endedAtS: number, endReason: string): Promise<void> {
  await tx
    .updateTable('playbackSession')
    .set({ endedAtS, endReason })
    .where('id', '=', sessionId)
    .where('endedAtS', 'is', null)
    .execute()
}

export async function endSessionsOfVideos(
  tx: Db,
  videoIds: readonly string[],
  endedAtS: number,
  endReason: string,
): Promise<void> {
  await tx
    .updateTable('playbackSession')
    .set({ endedAtS, endReason })
    .where('videoId', 'in', videoIds)
    .where('endedAtS', 'is', null)
    .execute()
}

/** Sessions that ended, or ran out, before then. */
export async function removeOldSessions(tx: Db, beforeS: number): Promise<void> {
  await tx
    .deleteFrom('playbackSession')
    .where((where) => where.or([where('endedAtS', '<', beforeS), where('endsAtS', '<', beforeS)]))
    .execute()
}

const ATTEMPTS_KEPT = 20

/** Records an attempt to redeem, the first twenty of each OTP. */
export async function recordAttempt(tx: Db, attempt: NewRedeemAttempt): Promise<void> {
  const { count } = await tx
    .selectFrom('redeemAttempt')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('otpHash', '=', attempt.otpHash)
    .executeTakeFirstOrThrow()
  if (Number(count) < ATTEMPTS_KEPT) await tx.insertInto('redeemAttempt').values(attempt).execute()
}
