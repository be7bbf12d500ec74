import { sql } from 'kysely'
import type { Db } from '../../db/database.ts'

/**
 * A refused attempt to redeem an OTP of the account, or what its session was refused later; `attemptCount` says how often, for the last
 * attempt stored of an OTP and for each reason of a session.
 */
export type RefusedAttempt = Awaited<ReturnType<typeof listRefusedAttempts>>[number]

/** The newest first, as long as their OTPs are stored. @param below lists only those with a lower id */
export async function listRefusedAttempts(
  db: Db,
  accountId: string,
  { videoId, limit, below }: { videoId?: string | undefined; limit: number; below?: number | undefined },
) {
  return (
    db
      .selectFrom('redeemAttempt as attempt')
      .innerJoin('otp', 'otp.hash', 'attempt.otpHash')
      .leftJoin('video', (join) => join.onRef('video.id', '=', 'otp.videoId').on('video.deletedAtS', 'is', null))
      .select(['attempt.id', 'attempt.atS', 'outcome', 'rule', 'attemptCount', 'address', 'userAgent', 'embeddingHost'])
      .select(['otp.videoId', 'otp.userId', 'title'])
      // As the partial index says it, so that only refused ones are read.
      .where(sql<boolean>`attempt.outcome not in ('opened', 'resumed')`)
      .where('attempt.accountId', '=', accountId)
      .$if(videoId !== undefined, (query) => query.where('otp.videoId', '=', videoId ?? ''))
      .$if(below !== undefined, (query) => query.where('attempt.id', '<', below ?? 0))
      .orderBy('attempt.id', 'desc')
      .limit(limit)
      .execute()
  )
}

/** How often a session was refused for one reason since it was last saved, with when and where that was first. */
export type SessionRefusal = {
  otpHash: Buffer
  outcome: 'stream-limit' | 'key-pace'
  address: string
  atS: number
  count: number
}

/** Adds to what the session of an OTP was refused: a row for each reason, next to the attempt that opened the session. */
export async function addSessionRefusal(tx: Db, { otpHash, outcome, count, ...first }: SessionRefusal): Promise<void> {
  const { numUpdatedRows } = await tx
    .updateTable('redeemAttempt')
    .set((row) => ({ attemptCount: row('attemptCount', '+', count) }))
    .where('otpHash', '=', otpHash)
    .where('outcome', '=', outcome)
    .executeTakeFirst()
  if (numUpdatedRows > 0n) return
  const opening = await tx
    .selectFrom('redeemAttempt')
    .select(['accountId', 'keyId', 'userAgent', 'embeddingHost'])
    .where('otpHash', '=', otpHash)
    .where('outcome', '=', 'opened')
    .executeTakeFirst()
  if (!opening) return // its viewer was erased meanwhile
  await tx
    .insertInto('redeemAttempt')
    .values({ ...opening, ...first, otpHash, outcome, attemptCount: count })
    .execute()
}
