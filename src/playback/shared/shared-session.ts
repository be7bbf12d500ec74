import type { PlaybackSessionRow } from '../../db/tables.ts'
import { createTokenBucket, PROOF_RATE } from '../../rate-limits/token-bucket.ts'
import type { LiveSession } from '../sessions/live-session.ts'
import { newWatchedCounter, type WatchedCounter } from '../sessions/watched-seconds.ts'

// A session as its row has it, where any server may answer its next request.

/** What requests change of a session's row. */
export type SharedColumns = Pick<
  PlaybackSessionRow,
  | 'id'
  | 'pages'
  | 'lastSeenAtS'
  | 'leftAtS'
  | 'endedAtS'
  | 'endReason'
  | 'viewedAtS'
  | 'keyWindows'
  | 'version'
  | 'seqHighest'
  | 'seqSeen'
  | 'live'
>

/** What the column `live` has: what no statement reads by itself. */
type Live = Pick<LiveSession, 'positionS' | 'isPlaying' | 'newKeyAtS' | 'address'> & {
  renditionId?: number | undefined
  watched: Omit<WatchedCounter, 'windows'>
  /** What is left of its rate limit, by the playback clock. */
  pace: { left: number; atMs: number }
}

/** Makes what is in memory what the row has. @param nowMs the playback clock */
export function adoptRow(session: LiveSession, row: SharedColumns, nowMs: number): void {
  const { pages, seqHighest, seqSeen, lastSeenAtS, leftAtS, keyWindows } = row
  const watched = newWatchedCounter(keyWindows)
  session.row = { ...session.row, ...row, viewedAtS: row.viewedAtS ?? session.row.viewedAtS }
  const columns = { pages: JSON.parse(pages), seqs: { highest: seqHighest, seen: seqSeen }, lastSeenAtS, leftAtS, watched }
  Object.assign(session, columns, { newKeyAtS: 0, isPlaying: false, renditionId: undefined })
  session.pace = createTokenBucket(PROOF_RATE, nowMs)
  if (row.live === null) return
  const { watched: counter, pace, ...live }: Live = JSON.parse(row.live)
  Object.assign(session, live)
  Object.assign(watched, counter)
  Object.assign(session.pace, pace)
}

export function toColumns(session: LiveSession): SharedColumns {
  const { row, pages, seqs, lastSeenAtS, leftAtS, pace, watched } = session
  const { positionS, isPlaying, newKeyAtS, address, renditionId } = session
  const { windows, ...counter } = watched
  const live: Live = {
    ...{ positionS, isPlaying, newKeyAtS, address, renditionId },
    watched: counter,
    pace: { left: pace.left, atMs: pace.atMs },
  }
  const { id, endedAtS, endReason, viewedAtS, version } = row
  return {
    ...{ id, pages: JSON.stringify(pages), lastSeenAtS, leftAtS, endedAtS, endReason, viewedAtS, version },
    ...{ keyWindows: windows, seqHighest: seqs.highest, seqSeen: seqs.seen, live: JSON.stringify(live) },
  }
}
