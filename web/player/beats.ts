import type { PlayState } from './wire.ts'

const PAUSED_EVERY_MS = 60_000
/** Seeks and changes of speed in a burst are reported once a second. */
const CHANGES_EVERY_MS = 1000

/** When beats were sent and a key was released, in ms of one monotonic clock. */
type LastReports = { beatMs: number; keyMs: number; changeMs: number }

/**
 * Whether a beat is due: every `everyMs` while playing or stalled, unless a key renewed the slot, but every other time even then, since
 * only beats report what is played; each minute otherwise, which keeps the session but not its slot.
 * @param hasChanged whether it plays at another place or speed than the last beat reported
 * @see playback protocol, section 7
 */
export function isBeatDue(
  { state, hasChanged }: { state: PlayState; hasChanged: boolean },
  nowMs: number,
  last: LastReports,
  everyMs: number,
): boolean {
  if (state === 'paused' || state === 'ended') return nowMs - last.beatMs >= PAUSED_EVERY_MS
  if (state === 'playing' && hasChanged && nowMs - last.changeMs >= CHANGES_EVERY_MS) return true
  return nowMs - Math.max(last.beatMs, last.keyMs) >= everyMs || nowMs - last.beatMs >= 2 * everyMs
}
