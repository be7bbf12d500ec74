import type { PlaybackClock } from './playback-clock.ts'
import { PlaybackRefusal } from './refusal.ts'
import { type LiveSession, type PlaybackDeps, recordEnd } from './session.ts'
import { endSession } from './session-store.ts'
import { extendSlots, freeSlot, type StreamClaim, takeOldestSlot, takeSlot } from './stream-slot-store.ts'

// At most N streams of one viewer at a time: playback-protocol.md, section 7. A slot is a lease that keys and beats renew.

/** Two beats in a row may be lost. */
export const LEASE_S = 18

/**
 * Takes or renews the session's stream slot, durable when it resolves; nothing where nobody limits its viewer's streams. Where the
 * account stops the oldest stream, that one's session has ended: two players cannot wrest a slot from each other for ever.
 * @throws PlaybackRefusal `stream-limit`
 */
export async function acquireStreamSlot(
  { write, nowS, sessions }: Pick<PlaybackDeps, 'write' | 'nowS' | 'sessions'>,
  session: LiveSession,
): Promise<void> {
  const claim = claimOf(session)
  if (!claim) return
  const atS = nowS()
  const taken = await write(async (tx) => {
    if (await takeSlot(tx, claim, atS, atS + LEASE_S)) return { stopped: undefined }
    const stopped = await takeOldestSlot(tx, claim, atS, atS + LEASE_S)
    if (stopped) await endSession(tx, stopped, atS, 'taken')
    return stopped ? { stopped } : undefined
  })
  if (!taken) throw new PlaybackRefusal('stream-limit') // also to one that has ended meanwhile: its next request hears why
  const stopped = taken.stopped && sessions.get(taken.stopped)
  if (stopped) recordEnd(stopped, atS, 'taken')
}

/** The viewer has gone: the slot is free at once. */
export async function releaseStreamSlot({ write }: Pick<PlaybackDeps, 'write'>, session: LiveSession): Promise<void> {
  if (claimOf(session)) await write((tx) => freeSlot(tx, session.row.id))
}

/**
 * After a stop or a crash nobody jumps in: whoever held a slot when the clock was last saved has one whole lease to come back.
 * Before the first answer.
 */
export async function resumeStreamSlots({ write, clock }: Pick<PlaybackDeps, 'write'> & { clock: PlaybackClock }): Promise<void> {
  await write((tx) => extendSlots(tx, clock.savedAtStartS, clock.nowS() + LEASE_S))
}

function claimOf({ row }: LiveSession): StreamClaim | undefined {
  const { id: sessionId, accountId, userId, streamLimit: limit } = row
  return userId === null || limit === null ? undefined : { sessionId, accountId, userId, limit }
}
