import type { KeyObject } from 'node:crypto'
import type { PlaybackSessionRow } from '../../db/tables.ts'
import type { TokenBucket } from '../../rate-limits/token-bucket.ts'
import { LEASE_S } from '../lease.ts'
import { END_REASONS, type EndReason, PlaybackRefusal } from '../refusal.ts'
import type { ReplayWindow } from './proof.ts'
import type { Watching } from './watched-seconds.ts'

/** A session in memory: its row, and what need not be stored because a restart makes every older proof stale. */
export type LiveSession = {
  row: PlaybackSessionRow
  proofKey: KeyObject
  /** All pages of this session, newest last. */
  pages: string[]
  seqs: ReplayWindow
  pace: TokenBucket
  /** Limits the checks of proofs while its address floods. */
  checks: TokenBucket
  /** When the log last warned that it sends too many proofs. */
  warnedAtS: number
  lastSeenAtS: number
  /** When a request last named it, with a valid proof or without. */
  usedAtS: number
  /** When its page sent `leave`; null once a page is open again. This and `lastSeenAtS` are newer than the row until `saveSessions`. */
  leftAtS: number | null
  /** Where the viewer was at the last beat, and whether it played. */
  positionS: number
  isPlaying: boolean
  watching: Watching
  /** When it last asked for a key that its budget had not released before. */
  newKeyAtS: number
  /** Where its last proof came from. */
  address: string
  /** The address for which its rules were last checked, and the rule that refused it; undefined before the first check. */
  location: { address: string; refusedBy: string | undefined } | undefined
}

/** A session that makes no request for this long has ended. */
export const MAX_IDLE_S = 3600

/** An open page sends a request at least once a minute, also while it is paused; one of them may be lost or late. */
export const MAX_SILENT_S = 90

/**
 * Whether someone watches: the video was started, and the page with it is open. A page that plays reports every few seconds, and is taken
 * as closed when its stream slot would be free.
 */
export function isWatching({ row, leftAtS, lastSeenAtS, isPlaying }: LiveSession, nowS: number): boolean {
  const hasStarted = row.viewedAtS !== null
  return hasStarted && row.endedAtS === null && leftAtS === null && nowS - lastSeenAtS < (isPlaying ? LEASE_S : MAX_SILENT_S)
}

/** The sessions that are in use, in memory. */
export type LiveSessions = Map<string, LiveSession>

/** Applies a committed end to the session in memory. The first reason is kept. */
export function recordEnd(session: LiveSession, endedAtS: number, endReason: EndReason): void {
  if (session.row.endedAtS === null) session.row = { ...session.row, endedAtS, endReason }
}

/** For what was waited for since the request was admitted. @throws PlaybackRefusal `session-ended` when it was ended meanwhile */
export function assertNotEndedMeanwhile({ row }: LiveSession): void {
  if (row.endedAtS !== null) throw new PlaybackRefusal('session-ended', { why: endReasonOf(row) })
}

export function endReasonOf({ endReason }: PlaybackSessionRow): EndReason {
  return END_REASONS.find((reason) => reason === endReason) ?? 'stopped'
}
