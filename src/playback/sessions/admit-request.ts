import { takeToken } from '../../rate-limits/token-bucket.ts'
import type { SessionDeps } from './session-deps.ts'
import type { ViewerRequest } from './session-deps.ts'
import { type EndReason, PlaybackRefusal } from '../refusal.ts'
import { findRefusingRule, type Rules } from '../rules/rules.ts'
import { alertOfRefusal } from '../suspicion/refusal-alert.ts'
import { endReasonOf, type LiveSession, MAX_IDLE_S, recordEnd } from './live-session.ts'
import { acceptSeq, isSignedWith, newReplayWindow, type Proof, type SignedValues } from './proof.ts'
import { findLiveSession } from './session-memory.ts'
import { endSession, recordAttempt, setPages } from './session-store.ts'

const MAX_LEFT_S = 600
const MAX_PAGES = 32

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
  deps: SessionDeps,
  { sessionId, proof, signed, visit, isFlooding }: SessionRequest,
): Promise<LiveSession> {
  if (!deps.nonces.isFresh(proof.nonce)) throw new PlaybackRefusal('proof-stale')
  const session = await findLiveSession(deps, sessionId)
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
  deps: SessionDeps,
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
function warnTooManyProofs({ nowS, log }: SessionDeps, session: LiveSession): void {
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
export async function openPage(deps: SessionDeps, session: LiveSession, proof: Proof): Promise<void> {
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
async function assertNotEnded(deps: SessionDeps, session: LiveSession): Promise<void> {
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

async function endNow(deps: SessionDeps, session: LiveSession, why: EndReason): Promise<void> {
  const endedAtS = deps.nowS()
  await deps.write((tx) => endSession(tx, session.row.id, endedAtS, why))
  recordEnd(session, endedAtS, why)
}
