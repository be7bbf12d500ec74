import { DAY_S } from '../time.ts'
import { removeOldViewerNames } from '../viewers/viewer-store.ts'
import { removeOldViewingDays, removeOldViewings } from '../viewers/viewing-store.ts'
import { removeOldKeyBudgets } from './keys/key-budget-store.ts'
import { removeOldOtps } from './otp-store.ts'
import type { PlaybackDeps } from './playback-deps.ts'
import { removeOldSessions } from './sessions/session-store.ts'
import { removeOldSlots } from './sessions/stream-slot-store.ts'

const KEEP_SESSIONS_S = DAY_S
const KEEP_KEY_BUDGETS_S = DAY_S
const KEEP_OTPS_S = 7 * DAY_S
/** Rows in one transaction, so few that other writes are not delayed. */
const BATCH_SIZE = 500

/**
 * Removes ended sessions and unused key budgets after a day, OTPs a week after they expire, and what viewers watched
 * and are called after `viewerDataDays`.
 */
export async function prunePlayback(
  { write, nowS }: Pick<PlaybackDeps, 'write' | 'nowS'>,
  viewerDataDays: number,
): Promise<void> {
  await write((tx) => removeOldSlots(tx, nowS() - KEEP_SESSIONS_S))
  while ((await write((tx) => removeOldSessions(tx, nowS() - KEEP_SESSIONS_S, BATCH_SIZE))) > 0);
  while ((await write((tx) => removeOldKeyBudgets(tx, nowS() - KEEP_KEY_BUDGETS_S, BATCH_SIZE))) > 0);
  while ((await write((tx) => removeOldOtps(tx, nowS() - KEEP_OTPS_S, BATCH_SIZE))) > 0);
  const firstKeptDay = Math.floor(nowS() / DAY_S) - viewerDataDays
  while ((await write((tx) => removeOldViewings(tx, firstKeptDay * DAY_S, BATCH_SIZE))) > 0);
  while ((await write((tx) => removeOldViewerNames(tx, firstKeptDay * DAY_S, BATCH_SIZE))) > 0);
  while ((await write((tx) => removeOldViewingDays(tx, firstKeptDay, BATCH_SIZE))) > 0);
}
