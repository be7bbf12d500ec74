import { MAX_SPEED } from '../keys/key-budget.ts'
import { hasWindow, withWindow } from '../keys/window-set.ts'
import { LEASE_S } from '../lease.ts'

// What one session was given, asked for and reported to have played. Times are on the playback clock, with fractions of seconds.

export type SessionEvidence = {
  usedAtS: number
  /** The key windows that it has: window-set.ts. */
  drawnWindows: Buffer
  drawnAndPlayed: DrawnAndPlayed
  /** The last beat, or where the first key was requested. */
  last: ReportedPosition | undefined
  /** By key window: when it may be requested again. */
  waitsUntilS: Map<number, number>
  /** Where its last request came from that was noted. */
  location: { address: string; notedAtS: number } | undefined
}

/** What the keys of a session allow to be played, and what its beats report as played, in seconds of video. */
export type DrawnAndPlayed = { drawnS: number; playedS: number }

/** Where a session reports to be in the video, and when. */
type ReportedPosition = { atS: number; positionS: number }

const MAX_WAITING_WINDOWS = 256
/** Timers of browsers end a little early. */
const EARLY_S = 0.1
/** A longer silence reports nothing: two lost beats on a bad network are shorter. */
const MAX_SILENCE_S = 60
/** How often the location of a session is noted that stays where it is. */
const LOCATION_EVERY_S = 60

export function newSessionEvidence(): SessionEvidence {
  return {
    usedAtS: 0,
    drawnWindows: Buffer.alloc(0),
    drawnAndPlayed: { drawnS: 0, playedS: 0 },
    last: undefined,
    waitsUntilS: new Map(),
    location: undefined,
  }
}

/** Notes a key that was released. @param mediaS how much its window plays @returns how much of that is new */
export function addKey(session: SessionEvidence, { window, mediaS }: { window: number; mediaS: number }, atS: number): number {
  session.waitsUntilS.delete(window)
  if (hasWindow(session.drawnWindows, window)) return 0
  session.drawnWindows = withWindow(session.drawnWindows, window)
  session.drawnAndPlayed.drawnS += mediaS
  session.last ??= { atS, positionS: 0 }
  return mediaS
}

/** Notes a beat. @returns the seconds of video that were played since the one before */
export function addBeat(session: SessionEvidence, beat: ReportedPosition & { isPlaying: boolean }): number {
  const playedS = session.last ? playedSince(session.last, beat) : 0
  session.last = { atS: beat.atS, positionS: beat.positionS }
  session.drawnAndPlayed.playedS += playedS
  return playedS
}

/** Notes a key request that was refused for `waitMs`. @returns whether it came before an earlier wait was over */
export function addRefusal(
  { waitsUntilS }: SessionEvidence,
  { window, waitMs }: { window: number; waitMs: number },
  atS: number,
): boolean {
  const isEarly = atS < (waitsUntilS.get(window) ?? 0) - EARLY_S
  if (waitsUntilS.size >= MAX_WAITING_WINDOWS) waitsUntilS.clear()
  waitsUntilS.set(window, atS + waitMs / 1000)
  return isEarly
}

/** Notes where a request came from. @returns whether the session has moved, or was not noted for a while */
export function addAddress(session: SessionEvidence, address: string, atS: number): boolean {
  const { location } = session
  if (location?.address === address && atS < location.notedAtS + LOCATION_EVERY_S) return false
  session.location = { address, notedAtS: atS }
  return true
}

/**
 * What two beats report as played between them, in seconds of video. Where the position jumps, the viewer has sought, and played
 * before and after: all of the time between the beats counts, but at most a lease, the gap that two lost beats leave.
 */
function playedSince(last: ReportedPosition, beat: ReportedPosition & { isPlaying: boolean }): number {
  const passedS = beat.atS - last.atS
  if (passedS > MAX_SILENCE_S) return 0
  const movedS = beat.positionS - last.positionS
  if (movedS >= 0 && movedS <= MAX_SPEED * passedS + 1) return Math.min(movedS, MAX_SPEED * passedS)
  return beat.isPlaying ? Math.min(passedS, LEASE_S) : 0
}
