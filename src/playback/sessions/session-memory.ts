import type { KeyObject } from 'node:crypto'
import type { PlaybackSessionRow } from '../../db/tables.ts'
import { createWriteBehind } from '../../db/write-behind.ts'
import { createTokenBucket, PROOF_CHECK_RATE, PROOF_RATE } from '../../rate-limits/token-bucket.ts'
import type { SignalData, Signals } from '../../signals/signals.ts'
import { endReasonOf, type LiveSession, mergeRow, recordEnd } from './live-session.ts'
import { newReplayWindow } from './proof.ts'
import type { SessionDeps } from './session-deps.ts'
import { findSession, listEndedSessions, type SessionChange, saveSession } from './session-store.ts'
import { newWatchedCounter } from './watched-seconds.ts'

/** A viewer who left a video this near to its beginning or end starts again at its beginning. */
const NEAR_AN_END_S = 10

/** The sessions in memory. One that no request names for five minutes is dropped: all its earlier proofs are stale by then. */
export function createSessionMemory(deps: Pick<SessionDeps, 'write' | 'nowS'>): SessionDeps['sessions'] {
  return createWriteBehind<LiveSession, SessionChange>(deps, {
    toChange({ row, lastSeenAtS, leftAtS, watched }) {
      // Only for a viewer who has a name is it counted what was watched.
      const hasNewWindow = row.userId !== null && !watched.windows.equals(row.keyWindows ?? Buffer.alloc(0))
      if (lastSeenAtS <= row.lastSeenAtS && leftAtS === row.leftAtS && !hasNewWindow) return undefined
      const keyWindows = hasNewWindow ? Buffer.from(watched.windows) : row.keyWindows
      return { id: row.id, version: row.version, lastSeenAtS, leftAtS, keyWindows }
    },
    async write(tx, change) {
      const { numAffectedRows } = await saveSession(tx, change)
      if (numAffectedRows) return undefined
      const row = await findSession(tx, change.id)
      return row && ((session) => mergeRow(session, row))
    },
    onWritten(session, change) {
      session.row = { ...session.row, ...change, version: change.version + 1 }
    },
  })
}

/** A session by its id, from memory or its row. */
export async function findLiveSession(
  deps: Pick<SessionDeps, 'db' | 'videos' | 'viewings' | 'sessions' | 'monotonicMs' | 'serverKeys'>,
  sessionId: string,
): Promise<LiveSession | undefined> {
  const live = deps.sessions.get(sessionId)
  if (live) return live
  const row = await findSession(deps.db, sessionId)
  const proofKey = row && (await deps.serverKeys.agree(row.serverKeyId, row.publicKey))
  return proofKey && bringIntoMemory(deps, row, proofKey)
}

/** Adds a session to memory, from a row that was read or written just now. */
export async function bringIntoMemory(
  deps: Pick<SessionDeps, 'db' | 'videos' | 'viewings' | 'sessions' | 'monotonicMs'>,
  row: PlaybackSessionRow,
  proofKey: KeyObject,
): Promise<LiveSession> {
  const session = await deps.sessions.getOrLoad(row.id, async () =>
    newLiveSession(row, proofKey, await findStartPosition(deps, row), deps.monotonicMs()),
  )
  // It may have been ended since: an end notifies only the sessions in memory.
  const current = await findSession(deps.db, row.id)
  if (current && current.endedAtS !== null) recordEnd(session, current.endedAtS, endReasonOf(current))
  return session
}

/** Where the last second is that the OTP's viewer is known to have watched, in any session; 0 when the OTP names none. */
async function findStartPosition(
  { videos, viewings }: Pick<SessionDeps, 'videos' | 'viewings'>,
  { accountId, userId, videoId, generation }: PlaybackSessionRow,
): Promise<number> {
  if (userId === null) return 0
  const video = await videos.get(videoId, generation)
  if (!video) return 0
  const { durationS } = video.plan
  // Whole seconds are counted: those of two sessions join.
  const positionS = Math.floor((await viewings.findPosition({ accountId, userId, videoId })) - video.timelineStartS)
  return positionS > NEAR_AN_END_S && positionS < durationS - NEAR_AN_END_S ? positionS : 0
}

function newLiveSession(row: PlaybackSessionRow, proofKey: KeyObject, positionS: number, nowMs: number): LiveSession {
  return {
    row,
    proofKey,
    pages: JSON.parse(row.pages),
    seqs: newReplayWindow(),
    pace: createTokenBucket(PROOF_RATE, nowMs),
    checks: createTokenBucket(PROOF_CHECK_RATE, nowMs),
    warnedAtS: 0,
    lastSeenAtS: row.lastSeenAtS,
    leftAtS: row.leftAtS,
    newKeyAtS: 0,
    positionS,
    isPlaying: false,
    renditionId: undefined,
    watched: newWatchedCounter(row.keyWindows),
    address: '',
    location: undefined,
  }
}

/** Ends sessions in memory, and forgets what is needed to play their videos, once their end is committed. */
export function followEnds(
  signals: Pick<Signals, 'on'>,
  { db, sessions, videos, nowS }: Pick<SessionDeps, 'db' | 'sessions' | 'videos' | 'nowS'>,
): void {
  signals.on('session-ended', async (ended) => {
    if ('sinceS' in ended) return endAsStored(ended.sinceS)
    if ('videoIds' in ended) videos.forget(ended.videoIds)
    for (const session of sessionsAmong(sessions, ended)) recordEnd(session, nowS(), ended.why)
  })

  async function endAsStored(sinceS: number): Promise<void> {
    if (sessions.size === 0) return
    for (const { id, ...row } of await listEndedSessions(db, sinceS)) {
      const session = sessions.get(id)
      if (!session || session.row.endedAtS !== null) continue
      videos.forget([session.row.videoId]) // its content key may be destroyed
      recordEnd(session, row.endedAtS, endReasonOf(row))
    }
  }
}

type NamedEnd = Exclude<SignalData['session-ended'], { sinceS: number }>

function sessionsAmong(sessions: SessionDeps['sessions'], ended: NamedEnd): LiveSession[] {
  if ('sessionIds' in ended) return ended.sessionIds.flatMap((id) => sessions.get(id) ?? [])
  return [...sessions.values()].filter(({ row }) =>
    'accountId' in ended
      ? row.accountId === ended.accountId
      : ended.videoIds.includes(row.videoId) && row.generation === (ended.generation ?? row.generation),
  )
}
