import { LEASE_S } from '../lease.ts'
import type { PlaybackClock } from '../playback-clock.ts'
import { PlaybackRefusal } from '../refusal.ts'
import type { LiveSession } from './live-session.ts'
import type { SessionDeps } from './session-deps.ts'
import { endSession } from './session-store.ts'
import {
  endSlotAt,
  extendSlots,
  findFirstSlotEnd,
  freeSlot,
  type StreamClaim,
  takeOldestSlot,
  takeSlot,
} from './stream-slot-store.ts'

// At most N streams of one viewer at a time: playback-protocol.md, section 7. A slot is a lease that keys and beats renew.

/**
 * Takes or renews the session's stream slot, durable when it resolves; does nothing when its viewer's streams are not limited. When the
 * account stops the oldest stream, that stream's session ends, so that two players cannot keep taking a slot from each other.
 * @throws PlaybackRefusal `stream-limit`, with the time until a slot is free if nothing renews it
 */
export async function acquireStreamSlot(
  { write, signals, nowS, sessionRefusals }: Pick<SessionDeps, 'write' | 'signals' | 'nowS' | 'sessionRefusals'>,
  session: LiveSession,
): Promise<void> {
  const claim = streamClaim(session)
  if (!claim) return
  const atS = nowS()
  const taken = await write(async (tx): Promise<{ stopped?: string; freeAtS?: number }> => {
    if (await takeSlot(tx, claim, atS, atS + LEASE_S)) return {}
    const stopped = await takeOldestSlot(tx, claim, atS, atS + LEASE_S)
    if (stopped === undefined) return { freeAtS: (await findFirstSlotEnd(tx, claim)) ?? atS }
    await endSession(tx, stopped, atS, 'taken')
    return { stopped }
  })
  // Also for a session that has ended meanwhile: its next request gets the reason.
  if (taken.freeAtS !== undefined) {
    sessionRefusals.count(session, 'stream-limit')
    throw new PlaybackRefusal('stream-limit', { waitMs: 1000 * Math.max(0, taken.freeAtS - atS) })
  }
  if (taken.stopped) void signals.send('session-ended', { sessionIds: [taken.stopped], why: 'taken' })
}

/**
 * The viewer has left: the slot is free, but not before a whole lease after the session's last new key, so that a program which requests
 * keys and leaves frees nothing early.
 */
export async function releaseStreamSlot(
  { write, nowS }: Pick<SessionDeps, 'write' | 'nowS'>,
  session: LiveSession,
): Promise<void> {
  if (!streamClaim(session)) return
  await write(async (tx) => {
    // Read here: requests that came before this transaction may have been answered since.
    const keptUntilS = slotKeptUntilS(session)
    if (keptUntilS > nowS()) await endSlotAt(tx, session.row.id, keptUntilS)
    else await freeSlot(tx, session.row.id)
  })
}

/**
 * Prevents other sessions from taking slots during a restart: a session that had a slot when the clock was last saved gets a whole lease
 * to continue. Call before the first request is answered.
 */
export async function restoreStreamSlots({
  write,
  clock,
}: Pick<SessionDeps, 'write'> & { clock: Pick<PlaybackClock, 'nowS' | 'savedAtStartS'> }): Promise<void> {
  await write((tx) => extendSlots(tx, clock.savedAtStartS, clock.nowS() + LEASE_S))
}

/** A whole lease after its last new key. */
export function slotKeptUntilS({ newKeyAtS }: LiveSession): number {
  return newKeyAtS + LEASE_S
}

export function streamClaim({ row }: LiveSession): StreamClaim | undefined {
  const { id: sessionId, accountId, userId, streamLimit: limit } = row
  return userId === null || limit === null ? undefined : { sessionId, accountId, userId, limit }
}
