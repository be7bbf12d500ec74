import { sql } from 'kysely'
import type { Db } from '../db/database.ts'

/** A refused attempt to redeem an OTP of the account; `attemptCount` says how often, for the last row stored of an OTP. */
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
