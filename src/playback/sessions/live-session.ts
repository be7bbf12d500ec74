import type { KeyObject } from 'node:crypto'
import type { PlaybackSessionRow } from '../../db/tables.ts'
import type { WriteBehind } from '../../db/write-behind.ts'
import type { TokenBucket } from '../../rate-limits/token-bucket.ts'
import { joinWindows } from '../keys/window-set.ts'
import { LEASE_S } from '../lease.ts'
import { END_REASONS, type EndReason, PlaybackRefusal } from '../refusal.ts'
import type { ReplayWindow } from './proof.ts'
import type { WatchedCounter } from './watched-seconds.ts'

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
  /** When its page sent `leave`; null once a page is open again. This and `lastSeenAtS` are newer than the row until they are saved. */
  leftAtS: number | null
  /** Where the viewer was at the last beat, and whether it played. */
  positionS: number
  isPlaying: boolean
  /** The video rendition that its last beat named. */
  renditionId: number | undefined
  watched: WatchedCounter
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
export type LiveSessions = Pick<WriteBehind<LiveSession>, 'peek' | 'values'>

/** Applies a committed end to the session in memory. The first reason is kept. */
export function recordEnd(session: LiveSession, endedAtS: number, endReason: EndReason): void {
  const { row } = session
  if (row.endedAtS === null) session.row = { ...row, endedAtS, endReason, version: row.version + 1 }
}

/** Adds what its row has from another server, or from another request of this one, to the session in memory. */
export function mergeRow(session: LiveSession, row: PlaybackSessionRow): void {
  const before = session.row
  if (row.lastSeenAtS > session.lastSeenAtS) Object.assign(session, { lastSeenAtS: row.lastSeenAtS, leftAtS: row.leftAtS })
  session.watched.windows = joinWindows(session.watched.windows, row.keyWindows ?? Buffer.alloc(0))
  session.row = { ...row, viewedAtS: row.viewedAtS ?? before.viewedAtS }
  // An end that was committed after the row was read is known here already.
  if (before.endedAtS !== null) recordEnd(session, before.endedAtS, endReasonOf(before))
}

/** For what was waited for since the request was admitted. @throws PlaybackRefusal `session-ended` when it was ended meanwhile */
export function assertNotEndedMeanwhile({ row }: LiveSession): void {
  if (row.endedAtS !== null) throw new PlaybackRefusal('session-ended', { why: endReasonOf(row) })
}

export function endReasonOf({ endReason }: Pick<PlaybackSessionRow, 'endReason'>): EndReason {
  return END_REASONS.find((reason) => reason === endReason) ?? 'stopped'
}
