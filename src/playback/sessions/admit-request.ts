import { takeToken } from '../../rate-limits/token-bucket.ts'
import { PlaybackRefusal } from '../refusal.ts'
import type { LiveSession } from './live-session.ts'
import { assertLocationAllowed } from './location-rule.ts'
import { openPage } from './open-page.ts'
import { acceptSeq, isSignedWith, type Proof, type SignedValues } from './proof.ts'
import type { SessionDeps, ViewerRequest } from './session-deps.ts'
import { assertNotEnded } from './session-end.ts'
import { findLiveSession } from './session-memory.ts'

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
export async function admitRequest(deps: SessionDeps, request: SessionRequest): Promise<LiveSession> {
  const { proof, signed, visit } = request
  const session = await verifyProof(deps, request)
  takePace(deps, session, deps.monotonicMs())
  if (signed.operation !== 'page') acceptOnce(session, proof)
  await assertNotEnded(deps, session)
  await assertLocationAllowed(deps, session, visit)
  if (signed.operation === 'page') await openPage(deps, session, proof)
  recordVisit(deps, session, visit)
  deps.recordAddress(session.row, visit.address)
  return session
}

/** The session whose key has signed the request. */
export async function verifyProof(
  deps: SessionDeps,
  { sessionId, proof, signed, isFlooding }: SessionRequest,
): Promise<LiveSession> {
  if (!deps.nonces.isFresh(proof.nonce)) throw new PlaybackRefusal('proof-stale')
  const session = await findLiveSession(deps, sessionId)
  if (session && isFlooding && !takeToken(session.checks, deps.monotonicMs()))
    throw new PlaybackRefusal('slow-down', { retryAfterS: 1 })
  if (!session || !isSignedWith(session.proofKey, proof, { ...signed, session: sessionId }))
    throw new PlaybackRefusal('not-allowed')
  return session
}

/** Counts a valid proof. @throws PlaybackRefusal `slow-down` after too many */
export function takePace(deps: Pick<SessionDeps, 'isRateLimited' | 'nowS' | 'log'>, session: LiveSession, nowMs: number): void {
  if (!deps.isRateLimited || takeToken(session.pace, nowMs)) return
  warnTooManyProofs(deps, session)
  throw new PlaybackRefusal('slow-down', { retryAfterS: 1 })
}

/** The newest page of a session uses each number once. */
export function acceptOnce(session: LiveSession, proof: Proof): void {
  if (session.pages.at(-1) !== proof.pageId) throw new PlaybackRefusal('page-replaced')
  if (!acceptSeq(session.seqs, proof.seq)) throw new PlaybackRefusal('proof-replayed')
}

/** Where and when its viewer was last seen. */
export function recordVisit(
  { nowS, suspicions }: Pick<SessionDeps, 'nowS' | 'suspicions'>,
  session: LiveSession,
  { address }: ViewerRequest,
): void {
  session.lastSeenAtS = Math.max(session.lastSeenAtS, nowS())
  session.address = address
  suspicions.recordAddress(session.row, address)
}

/** No player sends proofs this fast, so a program uses the key of a viewer's browser. Logged once a minute, without ids that allow playback. */
function warnTooManyProofs({ nowS, log }: Pick<SessionDeps, 'nowS' | 'log'>, session: LiveSession): void {
  if (nowS() - session.warnedAtS < 60) return
  session.warnedAtS = nowS()
  const { accountId, videoId, userId } = session.row
  log.warn({ accountId, videoId, userId }, 'playback: too many proofs from one session, throttled')
}
