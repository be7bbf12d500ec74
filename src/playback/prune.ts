import { removeOldOtps } from './otp-store.ts'
import type { PlaybackDeps } from './session.ts'
import { removeOldSessions } from './session-store.ts'
import { removeOldSlots } from './stream-slot-store.ts'
import { removeOldPositions } from './watch-position-store.ts'

const SESSION_KEPT_S = 24 * 3600
const OTP_KEPT_S = 7 * 24 * 3600
const POSITION_KEPT_S = 180 * 24 * 3600
/** So few at once that nobody waits for it. */
const AT_ONCE = 500

/** Removes what no answer needs any more: ended sessions after a day, OTPs a week after their end, viewers' positions after half a year. */
export async function prunePlayback({ write, nowS }: Pick<PlaybackDeps, 'write' | 'nowS'>): Promise<void> {
  await write((tx) => removeOldSlots(tx, nowS() - SESSION_KEPT_S))
  while ((await write((tx) => removeOldSessions(tx, nowS() - SESSION_KEPT_S, AT_ONCE))) > 0);
  while ((await write((tx) => removeOldOtps(tx, nowS() - OTP_KEPT_S, AT_ONCE))) > 0);
  while ((await write((tx) => removeOldPositions(tx, nowS() - POSITION_KEPT_S, AT_ONCE))) > 0);
}
