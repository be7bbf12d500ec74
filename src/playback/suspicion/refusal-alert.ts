import { type Alert, recordAlert } from '../../alerts/alert.ts'
import type { Db } from '../../db/database.ts'

// Alerts of what the server refuses, in the transaction that records the refusal.

type Refused = Pick<Alert, 'accountId' | 'sessionId' | 'userId' | 'videoId'>

/** An owner's rule refused a viewer. Those without a userId are one alert for each video, or a blocked country would raise thousands. */
export async function alertOfRefusal(tx: Db, refused: Refused, rule: string, atS: number): Promise<void> {
  const { accountId, sessionId, userId, videoId } = refused
  const subject = userId === null ? `video ${videoId}` : `user ${userId}`
  await recordAlert(tx, { accountId, cause: 'rule-refused', subject, sessionId, userId, videoId, numbers: { rule } }, atS)
}

/** A second browser tried an OTP. */
export async function alertOfReuse(
  tx: Db,
  {
    otpHash,
    firstAddress,
    secondAddress,
    ...refused
  }: Refused & { otpHash: Buffer; firstAddress: string; secondAddress: string },
  atS: number,
): Promise<void> {
  const subject = refused.userId === null ? `otp ${otpHash.toString('hex').slice(0, 16)}` : `user ${refused.userId}`
  await recordAlert(tx, { ...refused, cause: 'otp-reused', subject, numbers: { firstAddress, secondAddress } }, atS)
}
