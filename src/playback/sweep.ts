import { removeOldOtps } from './otp-store.ts'
import type { PlaybackDeps } from './session.ts'
import { removeOldSessions } from './session-store.ts'

const SESSION_KEPT_S = 24 * 3600
const OTP_KEPT_S = 7 * 24 * 3600

/** Removes what no answer needs any more: ended sessions after a day, OTPs a week after their expiry. */
export async function sweepPlayback({ write, nowS }: Pick<PlaybackDeps, 'write' | 'nowS'>): Promise<void> {
  await write((tx) => removeOldSessions(tx, nowS() - SESSION_KEPT_S))
  await write((tx) => removeOldOtps(tx, nowS() - OTP_KEPT_S))
}
