import type { Insertable } from 'kysely'
import type { Db } from '../../db/database.ts'
import { prepared } from '../../db/prepared.ts'
import type { NewRedeemAttempt, PlaybackSessionRow, Tables } from '../../db/tables.ts'
import type { EndReason } from '../refusal.ts'
import { freeSlot, freeSlots, freeSlotsOfVideos } from './stream-slot-store.ts'

type NewSession = Omit<Insertable<Tables['playbackSession']>, 'leftAtS' | 'endedAtS' | 'endReason' | 'viewedAtS' | 'keyWindows'>

export async function insertSession(tx: Db, session: NewSession): Promise<PlaybackSessionRow> {
  return tx.insertInto('playbackSession').values(session).returningAll().executeTakeFirstOrThrow()
}

export async function findSession(db: Db, sessionId: string): Promise<PlaybackSessionRow | undefined> {
  return db.selectFrom('playbackSession').selectAll().where('id', '=', sessionId).executeTakeFirst()
}

export async function findSessionOfOtp(db: Db, otpHash: Buffer): Promise<PlaybackSessionRow | undefined> {
  return db.selectFrom('playbackSession').selectAll().where('otpHash', '=', otpHash).executeTakeFirst()
}

/** A new page also clears that the viewer had left. @returns the row's version; undefined: it does not exist any more */
export async function setPages(tx: Db, sessionId: string, pages: readonly string[]): Promise<number | undefined> {
  const updated = await tx
    .updateTable('playbackSession')
    .set((row) => ({ pages: JSON.stringify(pages), leftAtS: null, version: row('version', '+', 1) }))
    .where('id', '=', sessionId)
    .returning('version')
    .executeTakeFirst()
  return updated?.version
}

/** When a session was last seen or left and which keys it was given, with the version of its row that this started from. */
export type SessionChange = Pick<PlaybackSessionRow, 'id' | 'version' | 'lastSeenAtS' | 'leftAtS' | 'keyWindows'>

/** Changes no row that has another version. */
export const saveSession = prepared<SessionChange>()((db, value) =>
  db
    .updateTable('playbackSession')
    .set((row) => ({
      lastSeenAtS: value('lastSeenAtS'),
      leftAtS: value('leftAtS'),
      keyWindows: value('keyWindows'),
      version: row('version', '+', 1),
    }))
    .where('id', '=', value('id'))
    .where('version', '=', value('version')),
)

/** Marks that a session's view was counted. Changes no row when it was counted before. */
export const markViewed = prepared<{ id: string; viewedAtS: number }>()((db, value) =>
  db
    .updateTable('playbackSession')
    .set({ viewedAtS: value('viewedAtS') })
    .where('id', '=', value('id'))
    .where('viewedAtS', 'is', null),
)

/** Ends the sessions that the caller selects and that have not ended. */
const endSessions = (tx: Db, endedAtS: number, endReason: string) =>
  tx
    .updateTable('playbackSession')
    .set((row) => ({ endedAtS, endReason, version: row('version', '+', 1) }))
    .where('endedAtS', 'is', null)

/** Ends a session, once, and frees its stream slot. */
export async function endSession(tx: Db, sessionId: string, endedAtS: number, endReason: string): Promise<void> {
  await freeSlot(tx, sessionId)
  await endSessions(tx, endedAtS, endReason).where('id', '=', sessionId).execute()
}

/** Ends the sessions on videos, or on one of their generations, and frees their stream slots. */
export async function endSessionsOfVideos(
  tx: Db,
  videoIds: readonly string[],
  endedAtS: number,
  endReason: string,
  generation?: number,
): Promise<void> {
  await freeSlotsOfVideos(tx, videoIds, generation)
  await endSessions(tx, endedAtS, endReason)
    .where('videoId', 'in', videoIds)
    .$if(generation !== undefined, (sessions) => sessions.where('generation', '=', generation ?? 0))
    .execute()
}

/** Ends the sessions of an account and frees their stream slots. */
export async function endSessionsOfAccount(tx: Db, accountId: string, endedAtS: number): Promise<void> {
  await tx.deleteFrom('streamSlot').where('accountId', '=', accountId).execute()
  await endSessions(tx, endedAtS, 'account-disabled' satisfies EndReason)
    .where('accountId', '=', accountId)
    .execute()
}

/** Those that have ended since then. */
export async function listEndedSessions(db: Db, sinceS: number) {
  return db
    .selectFrom('playbackSession')
    .select(['id', 'endedAtS', 'endReason'])
    .where('endedAtS', '>=', sinceS)
    .$narrowType<{ endedAtS: number }>()
    .execute()
}

/** Which sessions of an account: those that match each of these fields. */
export type SessionFilter = { sessionId?: string; userId?: string; videoId?: string; otpHash?: Buffer }

/** A session that has not ended, with where its OTP was redeemed. */
export type LiveSessionRow = Pick<PlaybackSessionRow, 'id' | 'userId' | 'videoId' | 'startedAtS' | 'lastSeenAtS'> & {
  address: string | null
  userAgent: string | null
}

/** Sessions as they are stored that were given a key, have not ended or left, and were seen since then, the newest first. */
export async function listWatchingSessions(
  db: Db,
  accountId: string,
  filter: SessionFilter,
  { seenSinceS, limit }: { seenSinceS: number; limit: number },
): Promise<LiveSessionRow[]> {
  return selectLiveSessions(db)
    .where('session.accountId', '=', accountId)
    .where('session.endedAtS', 'is', null)
    .where('session.viewedAtS', 'is not', null)
    .where('session.leftAtS', 'is', null)
    .where('session.lastSeenAtS', '>=', seenSinceS)
    .$if(filter.userId !== undefined, (query) => query.where('session.userId', '=', filter.userId ?? ''))
    .$if(filter.videoId !== undefined, (query) => query.where('session.videoId', '=', filter.videoId ?? ''))
    .orderBy('session.startedAtS', 'desc')
    .limit(limit)
    .execute()
}

/** The sessions with these ids that have not ended. */
export async function findLiveSessions(db: Db, ids: readonly string[]): Promise<LiveSessionRow[]> {
  if (ids.length === 0) return []
  return selectLiveSessions(db).where('session.id', 'in', ids).where('session.endedAtS', 'is', null).execute()
}

const selectLiveSessions = (db: Db) =>
  db
    .selectFrom('playbackSession as session')
    .leftJoin('redeemAttempt as opening', (join) =>
      join.onRef('opening.otpHash', '=', 'session.otpHash').on('opening.outcome', '=', 'opened'),
    )
    .select(['session.id', 'session.userId', 'session.videoId', 'session.startedAtS', 'session.lastSeenAtS'])
    .select(['opening.address', 'opening.userAgent'])

/** Ends the matching sessions and frees their stream slots. @returns their ids */
export async function endMatchingSessions(
  tx: Db,
  {
    accountId,
    filter,
    endedAtS,
    endReason,
  }: { accountId: string; filter: SessionFilter; endedAtS: number; endReason: EndReason },
): Promise<string[]> {
  const { sessionId, userId, videoId, otpHash } = filter
  let update = endSessions(tx, endedAtS, endReason).where('accountId', '=', accountId)
  if (sessionId !== undefined) update = update.where('id', '=', sessionId)
  if (userId !== undefined) update = update.where('userId', '=', userId)
  if (videoId !== undefined) update = update.where('videoId', '=', videoId)
  if (otpHash !== undefined) update = update.where('otpHash', '=', otpHash)
  const ended = await update.returning('id').execute()
  const ids = ended.map(({ id }) => id)
  for (let first = 0; first < ids.length; first += FREE_BATCH_SIZE) await freeSlots(tx, ids.slice(first, first + FREE_BATCH_SIZE))
  return ids
}

/** A statement may have only so many values. */
const FREE_BATCH_SIZE = 500

/** Removes some of the sessions that ended or expired before a time, the oldest first. @returns how many */
export async function removeOldSessions(tx: Db, beforeS: number, limit: number): Promise<number> {
  let removed = 0n
  for (const column of ['endedAtS', 'endsAtS'] as const) {
    const { numDeletedRows } = await tx
      .deleteFrom('playbackSession')
      .where('id', 'in', (of) =>
        of.selectFrom('playbackSession').select('id').where(column, '<', beforeS).orderBy(column).limit(limit),
      )
      .executeTakeFirst()
    removed += numDeletedRows
  }
  return Number(removed)
}

/** The attempt that opened the OTP's session, if it was recorded. */
export async function findOpenAttempt(db: Db, otpHash: Buffer) {
  return db
    .selectFrom('redeemAttempt')
    .select('address')
    .where('otpHash', '=', otpHash)
    .where('outcome', '=', 'opened')
    .executeTakeFirst()
}

const MAX_ATTEMPT_ROWS = 20
const MAX_USER_AGENT_CHARS = 300

/**
 * Records an attempt to redeem: the first twenty of each OTP and the one that opened its session as rows, others as a number on the
 * last of them.
 */
export async function recordAttempt(tx: Db, attempt: NewRedeemAttempt): Promise<void> {
  const recorded = await tx
    .selectFrom('redeemAttempt')
    .select('id')
    .where('otpHash', '=', attempt.otpHash)
    .orderBy('id', 'desc')
    .limit(MAX_ATTEMPT_ROWS)
    .execute()
  const [last] = recorded
  if (!last || recorded.length < MAX_ATTEMPT_ROWS || attempt.outcome === 'opened') {
    await tx
      .insertInto('redeemAttempt')
      .values({ ...attempt, userAgent: attempt.userAgent.slice(0, MAX_USER_AGENT_CHARS) })
      .execute()
    return
  }
  await tx
    .updateTable('redeemAttempt')
    .set((row) => ({ attemptCount: row('attemptCount', '+', 1) }))
    .where('id', '=', last.id)
    .execute()
}
