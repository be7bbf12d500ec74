import type { KeyObject } from 'node:crypto'
import type { AccountSessions } from '../../accounts/account.ts'
import type { VideoSessions } from '../../catalogue/deletion.ts'
import { findVideoDetails } from '../../catalogue/video-store.ts'
import type { PlaybackSessionRow } from '../../db/tables.ts'
import { createTokenBucket, PROOF_CHECK_RATE, PROOF_RATE } from '../../rate-limits/token-bucket.ts'
import type { EndReason } from '../refusal.ts'
import { endReasonOf, type LiveSession, recordEnd } from './live-session.ts'
import { newReplayWindow } from './proof.ts'
import type { SessionDeps } from './session-deps.ts'
import { endSessionsOfAccount, endSessionsOfVideos, findSession, saveKeyWindows, saveLastSeen } from './session-store.ts'
import { newWatching } from './watched-seconds.ts'

/** A session that no request names for this long is dropped from memory: all its earlier proofs are stale by then. */
const FORGET_AFTER_S = 300

/** A viewer who left a video this near to its beginning or end starts again at its beginning. */
const NEAR_AN_END_S = 10

/** Sessions saved in one transaction, which delays other writes by a few milliseconds. */
const SAVE_BATCH_SIZE = 250

/** A session by its id, from memory or its row. */
export async function findLiveSession(
  deps: Pick<SessionDeps, 'db' | 'viewings' | 'sessions' | 'nowS' | 'monotonicMs' | 'serverKeys'>,
  sessionId: string,
): Promise<LiveSession | undefined> {
  const live = deps.sessions.get(sessionId)
  if (live) {
    live.usedAtS = deps.nowS() // at once, or it could be dropped while this request is checked, and the proof would work again
    return live
  }
  const row = await findSession(deps.db, sessionId)
  const proofKey = row && deps.serverKeys.agree(row.serverKeyId, row.publicKey)
  return proofKey && bringIntoMemory(deps, row, proofKey)
}

/** Adds a session to memory, from a row that was read or written just now. */
export async function bringIntoMemory(
  deps: Pick<SessionDeps, 'db' | 'viewings' | 'sessions' | 'nowS' | 'monotonicMs'>,
  row: PlaybackSessionRow,
  proofKey: KeyObject,
): Promise<LiveSession> {
  const session = keepLive(deps, row, proofKey, await findStartPosition(deps, row))
  // It may have been ended since: an end notifies only the sessions in memory.
  const current = await findSession(deps.db, row.id)
  if (current && current.endedAtS !== null) recordEnd(session, current.endedAtS, endReasonOf(current))
  return session
}

/** Where the last second is that the OTP's viewer is known to have watched, in any session; 0 when the OTP names none. */
async function findStartPosition(
  { db, viewings }: Pick<SessionDeps, 'db' | 'viewings'>,
  { accountId, userId, videoId }: PlaybackSessionRow,
): Promise<number> {
  if (userId === null) return 0
  // Whole seconds are counted: those of two sessions join.
  const positionS = Math.floor(await viewings.findPosition({ accountId, userId, videoId }))
  const { durationS = 0 } = (await findVideoDetails(db, videoId)) ?? {}
  return positionS > NEAR_AN_END_S && positionS < durationS - NEAR_AN_END_S ? positionS : 0
}

/** The session in memory, added unless another request has done so. */
function keepLive(
  { sessions, nowS, monotonicMs }: Pick<SessionDeps, 'sessions' | 'nowS' | 'monotonicMs'>,
  row: PlaybackSessionRow,
  proofKey: KeyObject,
  positionS: number,
): LiveSession {
  const already = sessions.get(row.id)
  if (already) return already
  const pages: string[] = JSON.parse(row.pages)
  const { lastSeenAtS, leftAtS } = row
  const pace = createTokenBucket(PROOF_RATE, monotonicMs())
  const checks = createTokenBucket(PROOF_CHECK_RATE, monotonicMs())
  const seen = {
    warnedAtS: 0,
    usedAtS: nowS(),
    lastSeenAtS,
    leftAtS,
    newKeyAtS: 0,
    positionS,
    isPlaying: false,
    watching: newWatching(row.keyWindows),
    address: '',
    location: undefined,
  }
  const live: LiveSession = { row, proofKey, pages, seqs: newReplayWindow(), pace, checks, ...seen }
  sessions.set(row.id, live)
  return live
}

/** Ends the sessions of videos that are deleted or get a new generation. */
export function sessionsOfVideos(deps: Pick<SessionDeps, 'sessions' | 'videos' | 'nowS'>): VideoSessions {
  return {
    end: (tx, videoIds, why) => endSessionsOfVideos(tx, videoIds, deps.nowS(), why),
    endInMemory: (videoIds, why) => forgetVideos(deps, videoIds, why),
  }
}

/** The sessions of an account, for its disabling. */
export function sessionsOfAccounts(deps: Pick<SessionDeps, 'sessions' | 'nowS'>): AccountSessions {
  return {
    end: (tx, accountId) => endSessionsOfAccount(tx, accountId, deps.nowS()),
    endInMemory: (accountId) => {
      for (const session of deps.sessions.values())
        if (session.row.accountId === accountId) recordEnd(session, deps.nowS(), 'account-disabled')
    },
  }
}

function forgetVideos(
  deps: Pick<SessionDeps, 'sessions' | 'videos' | 'nowS'>,
  videoIds: readonly string[],
  why: EndReason,
): void {
  deps.videos.forget(videoIds)
  for (const session of deps.sessions.values()) {
    if (videoIds.includes(session.row.videoId)) recordEnd(session, deps.nowS(), why)
  }
}

/** Saves when sessions were last seen or left and which keys they have, and drops the inactive ones from memory. */
export async function saveSessions(deps: Pick<SessionDeps, 'write' | 'sessions' | 'nowS'>): Promise<void> {
  const changed = [...deps.sessions.values()].filter(
    (session) =>
      session.lastSeenAtS > session.row.lastSeenAtS || session.leftAtS !== session.row.leftAtS || hasNewWindow(session),
  )
  for (let first = 0; first < changed.length; first += SAVE_BATCH_SIZE) {
    const changes = changed
      .slice(first, first + SAVE_BATCH_SIZE)
      .map((session) => ({ session, seen: { id: session.row.id, lastSeenAtS: session.lastSeenAtS, leftAtS: session.leftAtS } }))
    const given = changes.flatMap(({ session }) =>
      hasNewWindow(session) ? [{ session, keyWindows: Buffer.from(session.watching.windows) }] : [],
    )
    await deps.write(async (tx) => {
      for (const { seen } of changes) await saveLastSeen(tx, seen)
      for (const { session, keyWindows } of given) await saveKeyWindows(tx, { id: session.row.id, keyWindows })
    })
    for (const { session, seen } of changes) session.row = { ...session.row, ...seen }
    for (const { session, keyWindows } of given) {
      session.row = { ...session.row, keyWindows }
      session.watching.hasNewWindow = !session.watching.windows.equals(keyWindows)
    }
  }
  const forgottenBeforeS = deps.nowS() - FORGET_AFTER_S
  for (const [id, session] of deps.sessions) if (session.usedAtS < forgottenBeforeS) deps.sessions.delete(id)
}

/** Only for a viewer who has a name is it counted what was watched. */
function hasNewWindow({ row, watching }: LiveSession): boolean {
  return row.userId !== null && watching.hasNewWindow
}
