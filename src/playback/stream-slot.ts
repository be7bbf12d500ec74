import type { PlaybackClock } from './clock.ts'
import { PlaybackRefusal } from './refusal.ts'
import type { LiveSession, PlaybackDeps } from './session.ts'
import { extendSlots, freeSlot, type StreamClaim, takeSlot } from './stream-slot-store.ts'

// At most N streams of one viewer at a time: playback-protocol.md, section 7. A slot is a lease that keys and beats renew.

/** Two beats in a row may be lost. */
export const LEASE_S = 18

/**
 * Takes or renews the session's stream slot, durable when it resolves; nothing where its OTP limits no streams.
 * @throws PlaybackRefusal `stream-limit`
 */
export async function holdSlot({ write, nowS }: Pick<PlaybackDeps, 'write' | 'nowS'>, session: LiveSession): Promise<void> {
  const claim = claimOf(session)
  if (!claim) return
  const atS = nowS()
  const held = await write((tx) => takeSlot(tx, claim, atS, atS + LEASE_S))
  if (!held) throw new PlaybackRefusal('stream-limit')
}

/** The viewer has gone: the slot is free at once. */
export async function giveUpSlot({ write }: Pick<PlaybackDeps, 'write'>, session: LiveSession): Promise<void> {
  if (claimOf(session)) await write((tx) => freeSlot(tx, session.row.id))
}

/**
 * After a stop or a crash nobody jumps in: whoever held a slot when the clock was last saved has one whole lease to come back.
 * Before the first answer.
 */
export async function resumeSlots({ write, clock }: Pick<PlaybackDeps, 'write'> & { clock: PlaybackClock }): Promise<void> {
  await write((tx) => extendSlots(tx, clock.savedAtStartS, clock.nowS() + LEASE_S))
}

function claimOf({ row }: LiveSession): StreamClaim | undefined {
  const { id: sessionId, accountId, userId, streamLimit: limit } = row
  return userId === null || limit === null ? undefined : { sessionId, accountId, userId, limit }
}
