import type { PlayState } from './wire.ts'

const PAUSED_EVERY_MS = 60_000

/**
 * Whether a beat is due: every `everyMs` while playing or stalled, unless a key renewed the slot, but every other time even then, since
 * only beats report what is played; each minute otherwise, which keeps the session but not its slot. Times in ms of one monotonic clock.
 * @see playback protocol, section 7
 */
export function isBeatDue(state: PlayState, nowMs: number, last: { beatMs: number; keyMs: number }, everyMs: number): boolean {
  if (state === 'paused' || state === 'ended') return nowMs - last.beatMs >= PAUSED_EVERY_MS
  return nowMs - Math.max(last.beatMs, last.keyMs) >= everyMs || nowMs - last.beatMs >= 2 * everyMs
}
