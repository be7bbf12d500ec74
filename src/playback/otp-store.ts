import { ACCOUNT_ID_UNINDEXED } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import type { NewOtp } from '../db/tables.ts'
import { DAY_S } from '../time.ts'

type OtpToIssue = Omit<Required<NewOtp>, 'spentAtS' | 'reusedAtS'>

const insertForVideo = prepared<OtpToIssue>()((db, value) =>
  db
    .insertInto('otp')
    .columns([
      'hash',
      'accountId',
      'apiKeyId',
      'videoId',
      'userId',
      'streamLimit',
      'watermarks',
      'forcedBitrateKbps',
      'licenseRules',
      'rules',
      'viewer',
      'issuedAtS',
      'expiresAtS',
    ])
    .expression((from) =>
      from
        .selectFrom('video')
        .select([
          value('hash').as('hash'),
          'video.accountId',
          value('apiKeyId').as('apiKeyId'),
          'video.id as videoId',
          value('userId').as('userId'),
          value('streamLimit').as('streamLimit'),
          value('watermarks').as('watermarks'),
          value('forcedBitrateKbps').as('forcedBitrateKbps'),
          value('licenseRules').as('licenseRules'),
          value('rules').as('rules'),
          value('viewer').as('viewer'),
          value('issuedAtS').as('issuedAtS'),
          value('expiresAtS').as('expiresAtS'),
        ])
        .where('video.id', '=', value('videoId'))
        .where(ACCOUNT_ID_UNINDEXED, '=', value('accountId'))
        .where('video.deletedAtS', 'is', null),
    ),
)

/** Inserts an OTP for a video of the account, in one statement. False: the account has no such video. */
export async function insertOtp(tx: Db, otp: OtpToIssue): Promise<boolean> {
  const { numAffectedRows } = await insertForVideo(tx, otp)
  return Number(numAffectedRows) > 0
}

/** An OTP with its video, its account, and the key or the person that issued it, as redeeming needs them. */
const selectOtp = (db: Db, hash: Buffer) =>
  db
    .selectFrom('otp')
    .leftJoin('apiKey', 'apiKey.id', 'otp.apiKeyId')
    .leftJoin('consoleUser', 'consoleUser.id', 'otp.apiKeyId')
    .innerJoin('account', 'account.id', 'otp.accountId')
    .leftJoin('video', 'video.id', 'otp.videoId')
    .select([
      'otp.accountId',
      'otp.videoId',
      'otp.userId',
      ({ fn, ref, val }) =>
        fn.coalesce('otp.streamLimit', fn<number | null>('nullif', [ref('account.streamLimit'), val(0)])).as('streamLimit'),
      'otp.watermarks',
      'otp.forcedBitrateKbps',
      'otp.rules',
      'otp.viewer',
      'otp.expiresAtS',
      'otp.spentAtS',
      'apiKey.id as keyId',
      'apiKey.revokedAtS as keyRevokedAtS',
      'apiKey.expiresAtS as keyExpiresAtS',
      'consoleUser.disabled as userDisabled',
      'account.disabled as accountDisabled',
      'video.status',
      'video.generation',
      'video.deletedAtS',
      'video.durationS',
    ])
    .where('otp.hash', '=', hash)

/** An OTP with what decides whether it may be spent. */
export type FoundOtp = NonNullable<Awaited<ReturnType<typeof findOtp>>>

export async function findOtp(db: Db, hash: Buffer) {
  return selectOtp(db, hash).executeTakeFirst()
}

/** Whether there is such an OTP, not spent and not expired. */
export async function isOpenOtp(db: Db, hash: Buffer, nowS: number): Promise<boolean> {
  const row = await db
    .selectFrom('otp')
    .select('hash')
    .where('hash', '=', hash)
    .where('spentAtS', 'is', null)
    .where('expiresAtS', '>', nowS)
    .executeTakeFirst()
  return row !== undefined
}

/** The rules of an OTP, as JSON. Null: it has none. Undefined: there is no such OTP. */
export async function findRulesOfOtp(db: Db, hash: Buffer): Promise<string | null | undefined> {
  const row = await db.selectFrom('otp').select('rules').where('hash', '=', hash).executeTakeFirst()
  return row?.rules
}

/** What the player's page reads of its OTP. */
export function findPageOptions(db: Db, hash: Buffer) {
  return db
    .selectFrom('otp')
    .select(['hash as otpHash', 'accountId', 'videoId', 'userId', 'rules', 'watermarks'])
    .where('hash', '=', hash)
    .executeTakeFirst()
}

/**
 * Spends the OTP, if it is open and not expired, its video is ready and not deleted, and its account and the key or person that issued it are valid. One conditional
 * statement, so exactly one of any number of concurrent calls succeeds. False: not spendable; `findOtp` has the reason.
 */
export async function spendOtp(tx: Db, hash: Buffer, nowS: number): Promise<boolean> {
  const spent = await tx
    .updateTable('otp')
    .set({ spentAtS: nowS })
    .where('hash', '=', hash)
    .where('spentAtS', 'is', null)
    .where('expiresAtS', '>', nowS)
    .where((where) =>
      where.exists(
        where
          .selectFrom('video')
          .select('video.id')
          .whereRef('video.id', '=', 'otp.videoId')
          .where('video.status', '=', 'ready')
          .where('video.deletedAtS', 'is', null),
      ),
    )
    .where((where) =>
      where.exists(
        where
          .selectFrom('account')
          .select('account.id')
          .whereRef('account.id', '=', 'otp.accountId')
          .where('account.disabled', '=', 0),
      ),
    )
    .where((where) =>
      where.or([
        where.exists(
          where
            .selectFrom('apiKey')
            .select('apiKey.id')
            .whereRef('apiKey.id', '=', 'otp.apiKeyId')
            .where('apiKey.revokedAtS', 'is', null)
            .where(({ eb, or }) => or([eb('apiKey.expiresAtS', 'is', null), eb('apiKey.expiresAtS', '>', nowS)])),
        ),
        where.exists(
          where
            .selectFrom('consoleUser')
            .select('consoleUser.id')
            .whereRef('consoleUser.id', '=', 'otp.apiKeyId')
            .where('consoleUser.disabled', '=', 0),
        ),
      ]),
    )
    .executeTakeFirst()
  return spent.numUpdatedRows > 0n
}

/** Records that another browser tried to redeem a spent OTP. False when that was recorded before. */
export async function recordReuse(tx: Db, hash: Buffer, nowS: number): Promise<boolean> {
  const updated = await tx
    .updateTable('otp')
    .set({ reusedAtS: nowS })
    .where('hash', '=', hash)
    .where('reusedAtS', 'is', null)
    .executeTakeFirst()
  return updated.numUpdatedRows > 0n
}

/**
 * Removes some of the OTPs without a session that expired before a time, or were spent a day before it. The records of their redeems are
 * removed, too.
 * @returns how many
 */
export async function removeOldOtps(tx: Db, beforeS: number, limit: number): Promise<number> {
  const hashes: Buffer[] = []
  for (const [column, before] of [
    ['expiresAtS', beforeS],
    ['spentAtS', beforeS - DAY_S],
  ] as const) {
    const rows = await tx
      .selectFrom('otp')
      .select('hash')
      .where(column, '<', before)
      .where('hash', 'not in', (of) => of.selectFrom('playbackSession').select('otpHash').whereRef('otpHash', '=', 'otp.hash'))
      .orderBy(column)
      .limit(limit)
      .execute()
    hashes.push(...rows.map(({ hash }) => hash))
  }
  if (hashes.length === 0) return 0
  await tx.deleteFrom('redeemAttempt').where('otpHash', 'in', hashes).execute()
  await tx.deleteFrom('otp').where('hash', 'in', hashes).execute()
  return hashes.length
}

/** Lets an OTP expire now, unless it was spent. */
export async function expireOtp(tx: Db, accountId: string, hash: Buffer, nowS: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('otp')
    .set({ expiresAtS: nowS })
    .where('hash', '=', hash)
    .where('accountId', '=', accountId)
    .where('spentAtS', 'is', null)
    .where('expiresAtS', '>', nowS)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}
