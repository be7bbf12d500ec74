import type { KeyObject } from 'node:crypto'
import type { Logger } from 'pino'
import type { AccountSessions } from '../accounts/account.ts'
import type { PublicCaption } from '../assets/public-captions.ts'
import type { VideoSessions } from '../catalogue/deletion.ts'
import { findVideoDetails } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { createTokenBucket, PROOF_CHECK_RATE, PROOF_RATE, type TokenBucket, takeToken } from '../rate-limits/token-bucket.ts'
import type { Viewings } from '../viewers/viewing.ts'
import type { WatermarkImages } from '../watermark/watermark-image.ts'
import type { Countries } from './countries.ts'
import type { KeyPacing } from './key-pacing.ts'
import type { MediaSecrets } from './media-path.ts'
import type { PlayableVideos } from './playable-video.ts'
import {
  acceptSeq,
  isSignedWith,
  type Nonces,
  newReplayWindow,
  type Proof,
  type ReplayWindow,
  type SignedValues,
} from './proof.ts'
import { END_REASONS, type EndReason, PlaybackRefusal } from './refusal.ts'
import { alertOfRefusal } from './refusal-alert.ts'
import { findRefusingRule, type Rules } from './rules.ts'
import type { ServerKeys } from './server-key.ts'
import {
  endSession,
  endSessionsOfAccount,
  endSessionsOfVideos,
  findSession,
  recordAttempt,
  saveKeyWindows,
  saveLastSeen,
  setPages,
} from './session-store.ts'
import type { Suspicions } from './suspicion.ts'
import type { Tickets } from './ticket.ts'
import { newWatching, type Watching } from './watching.ts'

export type PlaybackDeps = {
  db: Db
  write: Write
  /** The playback clock. */
  nowS: () => number
  /** The same with its fraction. */
  preciseNowS(): number
  /** A monotonic clock, for the rate limits of proofs. */
  monotonicMs(): number
  nonces: Nonces
  serverKeys: ServerKeys
  tickets: Tickets
  videos: PlayableVideos
  keyPacing: KeyPacing
  suspicions: Suspicions
  viewings: Viewings
  sessions: LiveSessions
  mediaSecrets(): MediaSecrets
  captions: Captions
  /** The JPEG of a video's main poster, public or not. */
  openMainPoster(video: { videoId: string; accountId: string }): Promise<Buffer | undefined>
  watermarkImages: Pick<WatermarkImages, 'find'>
  countries: Countries
  /** Whether valid proofs are rate-limited; not when `REELGATE_LIMITS` is off. */
  isRateLimited: boolean
  log: Logger
  /** Called for each session that receives its first key. */
  recordView(session: PlaybackSessionRow): void
}

/** The captions of a video. */
export type Captions = {
  find(videoId: string): Promise<PublicCaption[]>
  /** @returns WebVTT; undefined when the video has no captions with this id */
  open(videoId: string, id: number): Promise<string | undefined>
}

/** Where a request came from. */
export type ViewerRequest = { address: string; userAgent: string }

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
  /** Where the viewer was at the last beat. */
  positionS: number
  watching: Watching
  /** When it last asked for a key that its budget had not released before. */
  newKeyAtS: number
  /** Where its last proof came from. */
  address: string
  /** The address for which its rules were last checked, and the rule that refused it; undefined before the first check. */
  location: { address: string; refusedBy: string | undefined } | undefined
}

export const MAX_IDLE_S = 3600
const MAX_LEFT_S = 600
const MAX_PAGES = 32
/** A session that no request names for this long is dropped from memory: all its earlier proofs are stale by then. */
const FORGET_AFTER_S = 300

/** A viewer who left a video this near to its beginning or end starts again at its beginning. */
const NEAR_AN_END_S = 10

/** Sessions saved in one transaction, which delays other writes by a few milliseconds. */
const SAVE_BATCH_SIZE = 250

/** The sessions that are in use, in memory. */
export type LiveSessions = Map<string, LiveSession>

export type SessionRequest = {
  sessionId: string
  proof: Proof
  signed: Omit<SignedValues, 'session'>
  visit: ViewerRequest
  /** Its address has used up the requests it may make without a valid proof. */
  isFlooding: boolean
}

/**
 * Checks a proof for a session in the protocol's order: nonce, session, tag, page, number, state, location.
 * Up to the tag every failure is the same `not-allowed`, so only the holder of the key learns more.
 * @throws PlaybackRefusal
 */
export async function admitRequest(
  deps: PlaybackDeps,
  { sessionId, proof, signed, visit, isFlooding }: SessionRequest,
): Promise<LiveSession> {
  if (!deps.nonces.isFresh(proof.nonce)) throw new PlaybackRefusal('proof-stale')
  const session = await findLive(deps, sessionId)
  if (session && isFlooding && !takeToken(session.checks, deps.monotonicMs()))
    throw new PlaybackRefusal('slow-down', { retryAfterS: 1 })
  if (!session || !isSignedWith(session.proofKey, proof, { ...signed, session: sessionId }))
    throw new PlaybackRefusal('not-allowed')
  if (deps.isRateLimited && !takeToken(session.pace, deps.monotonicMs())) {
    warnTooManyProofs(deps, session)
    throw new PlaybackRefusal('slow-down', { retryAfterS: 1 })
  }
  if (signed.operation !== 'page') {
    if (session.pages.at(-1) !== proof.pageId) throw new PlaybackRefusal('page-replaced')
    if (!acceptSeq(session.seqs, proof.seq)) throw new PlaybackRefusal('proof-replayed')
  }
  await assertNotEnded(deps, session)
  if (session.row.rules !== null) await assertLocationAllowed(deps, session, session.row.rules, visit)
  if (signed.operation === 'page') await openPage(deps, session, proof)
  session.lastSeenAtS = deps.nowS()
  session.address = visit.address
  deps.suspicions.recordPlace(session.row, visit.address)
  return session
}

/**
 * Checks the rules of the session's OTP when the viewer's address has changed. A refusal does not end the session: from an allowed
 * location it plays again. It is recorded once for each change of address.
 * @throws PlaybackRefusal `place-not-allowed`
 */
async function assertLocationAllowed(
  deps: PlaybackDeps,
  session: LiveSession,
  rulesJson: string,
  visit: ViewerRequest,
): Promise<void> {
  let { location } = session
  if (location?.address !== visit.address) {
    const rules: Rules = JSON.parse(rulesJson)
    const refusedBy = await findRefusingRule(deps.countries, rules, visit.address)
    location = { address: visit.address, refusedBy }
    session.location = location
    const { otpHash, keyId, accountId, videoId } = session.row
    const { address, userAgent } = visit
    const attempt = {
      otpHash,
      accountId,
      keyId,
      address,
      userAgent,
      embeddingHost: '-',
      outcome: 'place-not-allowed',
      rule: refusedBy,
    }
    if (refusedBy !== undefined) {
      await deps.write(async (tx) => {
        await recordAttempt(tx, { ...attempt, atS: deps.nowS() })
        await alertOfRefusal(tx, { ...session.row, sessionId: session.row.id }, refusedBy, deps.nowS())
      })
      deps.log.info({ accountId, videoId, reason: 'place-not-allowed', rule: refusedBy }, 'playback: refused')
    }
  }
  // The location of this request: meanwhile another may have come from elsewhere.
  if (location.refusedBy !== undefined) throw new PlaybackRefusal('place-not-allowed')
}

/** No player sends proofs this fast, so a program uses the key of a viewer's browser. Logged once a minute, without ids that allow playback. */
function warnTooManyProofs({ nowS, log }: PlaybackDeps, session: LiveSession): void {
  if (nowS() - session.warnedAtS < 60) return
  session.warnedAtS = nowS()
  const { accountId, videoId, userId } = session.row
  log.warn({ accountId, videoId, userId }, 'playback: too many proofs from one session, throttled')
}

/**
 * Makes the proof's page the newest of the session, durable before it resolves. A known page keeps its place, so that a replayed call
 * changes nothing.
 * @throws PlaybackRefusal `page-replaced`, `proof-replayed`, or `session-ended`, also after too many pages
 */
export async function openPage(deps: PlaybackDeps, session: LiveSession, proof: Proof): Promise<void> {
  await assertNotEnded(deps, session) // first: a new page clears `leftAtS`, which must not revive a session
  if (session.pages.at(-1) === proof.pageId) {
    if (!acceptSeq(session.seqs, proof.seq)) throw new PlaybackRefusal('proof-replayed')
    return
  }
  if (session.pages.includes(proof.pageId)) throw new PlaybackRefusal('page-replaced')
  if (session.pages.length >= MAX_PAGES) throw new PlaybackRefusal('session-ended', { why: 'time' }) // a reload of the owner's page helps
  const before = { pages: session.pages, seqs: session.seqs }
  const pages = [...session.pages, proof.pageId]
  // Set before the write, so that of two concurrent pages one is the newest; undone if it does not become durable.
  Object.assign(session, { pages, seqs: newReplayWindow() })
  acceptSeq(session.seqs, proof.seq)
  try {
    await deps.write((tx) => setPages(tx, session.row.id, pages))
  } catch (error) {
    Object.assign(session, before)
    throw error
  }
  session.row = { ...session.row, leftAtS: null }
  session.leftAtS = null
}

/** @throws PlaybackRefusal `session-ended` with the reason; the end is stored the first time it is noticed */
async function assertNotEnded(deps: PlaybackDeps, session: LiveSession): Promise<void> {
  const why = findEndReason(session, deps.nowS())
  if (!why) return
  if (session.row.endedAtS === null) await endNow(deps, session, why)
  throw new PlaybackRefusal('session-ended', { why })
}

/** Why a session has ended; undefined while it is live. */
function findEndReason(session: LiveSession, nowS: number): EndReason | undefined {
  const { row, leftAtS } = session
  if (row.endedAtS !== null) return endReasonOf(row)
  if (nowS >= row.endsAtS) return 'time'
  if (nowS - session.lastSeenAtS >= MAX_IDLE_S) return 'idle'
  if (leftAtS !== null && nowS - leftAtS >= MAX_LEFT_S) return 'viewer-left'
  return undefined
}

/** For what was waited for since the request was admitted. @throws PlaybackRefusal `session-ended` when it was ended meanwhile */
export function assertNotEndedMeanwhile({ row }: LiveSession): void {
  if (row.endedAtS !== null) throw new PlaybackRefusal('session-ended', { why: endReasonOf(row) })
}

function endReasonOf({ endReason }: PlaybackSessionRow): EndReason {
  return END_REASONS.find((reason) => reason === endReason) ?? 'stopped'
}

async function endNow(deps: PlaybackDeps, session: LiveSession, why: EndReason): Promise<void> {
  const endedAtS = deps.nowS()
  await deps.write((tx) => endSession(tx, session.row.id, endedAtS, why))
  recordEnd(session, endedAtS, why)
}

/** Applies a committed end to the session in memory. The first reason is kept. */
export function recordEnd(session: LiveSession, endedAtS: number, endReason: EndReason): void {
  if (session.row.endedAtS === null) session.row = { ...session.row, endedAtS, endReason }
}

/** A session by its id, from memory or its row. */
async function findLive(
  deps: Pick<PlaybackDeps, 'db' | 'viewings' | 'sessions' | 'nowS' | 'monotonicMs' | 'serverKeys'>,
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
  deps: Pick<PlaybackDeps, 'db' | 'viewings' | 'sessions' | 'nowS' | 'monotonicMs'>,
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
  { db, viewings }: Pick<PlaybackDeps, 'db' | 'viewings'>,
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
  { sessions, nowS, monotonicMs }: Pick<PlaybackDeps, 'sessions' | 'nowS' | 'monotonicMs'>,
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
    watching: newWatching(row.keyWindows),
    address: '',
    location: undefined,
  }
  const live: LiveSession = { row, proofKey, pages, seqs: newReplayWindow(), pace, checks, ...seen }
  sessions.set(row.id, live)
  return live
}

/** Ends the sessions of videos that are deleted or get a new generation. */
export function sessionsOfVideos(deps: Pick<PlaybackDeps, 'sessions' | 'videos' | 'nowS'>): VideoSessions {
  return {
    end: (tx, videoIds, why) => endSessionsOfVideos(tx, videoIds, deps.nowS(), why),
    endInMemory: (videoIds, why) => forgetVideos(deps, videoIds, why),
  }
}

/** The sessions of an account, for its disabling. */
export function sessionsOfAccounts(deps: Pick<PlaybackDeps, 'sessions' | 'nowS'>): AccountSessions {
  return {
    end: (tx, accountId) => endSessionsOfAccount(tx, accountId, deps.nowS()),
    endInMemory: (accountId) => {
      for (const session of deps.sessions.values())
        if (session.row.accountId === accountId) recordEnd(session, deps.nowS(), 'account-disabled')
    },
  }
}

function forgetVideos(
  deps: Pick<PlaybackDeps, 'sessions' | 'videos' | 'nowS'>,
  videoIds: readonly string[],
  why: EndReason,
): void {
  deps.videos.forget(videoIds)
  for (const session of deps.sessions.values()) {
    if (videoIds.includes(session.row.videoId)) recordEnd(session, deps.nowS(), why)
  }
}

/** Saves when sessions were last seen or left and which keys they have, and drops the inactive ones from memory. */
export async function saveSessions(deps: Pick<PlaybackDeps, 'write' | 'sessions' | 'nowS'>): Promise<void> {
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
