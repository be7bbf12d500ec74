import type { PlayableVideo } from './media/playable-video.ts'
import { windowCount } from './media/playlist.ts'
import type { PlaybackDeps } from './playback-deps.ts'
import { PlaybackRefusal } from './refusal.ts'
import {
  answerKey,
  type BeatQuality,
  countPlayed,
  findSessionVideo,
  type MeasuredBeat,
  noteBeat,
  recordBeat,
  recordLeave,
  recordPlayed,
  recordQuality,
  releaseKey,
  takeKey,
} from './serve.ts'
import { acceptOnce, admitRequest, recordVisit, type SessionRequest, takePace, verifyProof } from './sessions/admit-request.ts'
import type { LiveSession } from './sessions/live-session.ts'
import { isLocationRefused } from './sessions/location-rule.ts'
import { addPage, openPage } from './sessions/open-page.ts'
import type { Proof } from './sessions/proof.ts'
import type { ViewerRequest } from './sessions/session-deps.ts'
import { findEndReason } from './sessions/session-end.ts'
import { slotKeptUntilS } from './sessions/stream-slot.ts'
import type { Turn, Turns } from './shared/turns.ts'

// The requests of a session: of a server that is alone from memory (admit-request.ts, then serve.ts), of one of several as turns on rows.

/** Admits a request that changes nothing else than its session. @throws PlaybackRefusal */
export function admit(deps: PlaybackDeps, request: SessionRequest): Promise<LiveSession> {
  return deps.sharing.run(
    () => admitRequest(deps, request),
    async (turns) => {
      const verified = await verifyForTurn(deps, request)
      await takeTurn(deps, turns, verified, undefined, () => undefined)
      return verified.session
    },
  )
}

/** @throws PlaybackRefusal `stream-limit`, `key-pace` */
export function requestKey(deps: PlaybackDeps, request: SessionRequest, window: number): Promise<Buffer> {
  return deps.sharing.run(
    async () => releaseKey(deps, await admitRequest(deps, request), window),
    async (turns) => {
      const verified = await verifyForTurn(deps, request)
      const { session } = verified
      const video = await findSessionVideo(deps, session)
      const taken = await takeTurn(deps, turns, verified, video, ({ budgets, preciseNowS, takeSlot }) => {
        if (!video || !budgets) throw new PlaybackRefusal('video-gone')
        if (window >= windowCount(video)) throw new PlaybackRefusal('bad-request')
        if (!budgets.hasReleased(window)) session.newKeyAtS = Math.floor(preciseNowS)
        takeSlot()
        return { ...takeKey(session, budgets, window), video }
      })
      return answerKey(deps, session, { video: taken.video, window, taken })
    },
  )
}

/** What the page measured is kept also of a beat that is refused: it may be the last. @throws PlaybackRefusal `stream-limit` */
export function requestBeat(deps: PlaybackDeps, request: SessionRequest, readBeat: () => MeasuredBeat): Promise<void> {
  const { userAgent } = request.visit
  return deps.sharing.run(
    async () => {
      const session = await admitRequest(deps, request)
      const { quality, ...beat } = readBeat()
      if (quality) await recordQuality(deps, session, quality, userAgent)
      await recordBeat(deps, session, beat)
    },
    async (turns) => {
      const verified = await verifyForTurn(deps, request)
      const { session } = verified
      const video = await findSessionVideo(deps, session)
      let admitted: BeatQuality | undefined
      try {
        const parts = await takeTurn(deps, turns, verified, video, ({ budgets, preciseNowS, takeSlot }) => {
          const { quality, ...beat } = readBeat()
          admitted = quality
          noteBeat(session, beat)
          if (session.isPlaying) takeSlot()
          if (session.isPlaying && !budgets) throw new PlaybackRefusal('video-gone')
          if (session.isPlaying) budgets?.recordPlaying()
          return countPlayed(session, video, beat, preciseNowS)
        })
        await recordPlayed(deps, session, video, parts)
      } finally {
        if (admitted) await recordQuality(deps, session, admitted, userAgent)
      }
    },
  )
}

export function requestLeave(deps: PlaybackDeps, request: SessionRequest): Promise<void> {
  return deps.sharing.run(
    async () => recordLeave(deps, await admitRequest(deps, request)),
    async (turns) => {
      const verified = await verifyForTurn(deps, request)
      const { session } = verified
      await takeTurn(deps, turns, verified, undefined, ({ preciseNowS, releaseSlot }) => {
        session.leftAtS = Math.floor(preciseNowS)
        const keptUntilS = slotKeptUntilS(session)
        releaseSlot(keptUntilS > preciseNowS ? keptUntilS : undefined)
      })
    },
  )
}

/** The page of a repeated redeem becomes the newest. `epoch`: that of the nonce that was checked. */
export function resumePage(
  deps: PlaybackDeps,
  session: LiveSession,
  request: { proof: Proof; visit: ViewerRequest; epoch: string },
): Promise<void> {
  return deps.sharing.run(
    () => openPage(deps, session, request.proof),
    (turns) => takeTurn(deps, turns, { ...request, session, isPage: true, isRefusedHere: false }, undefined, () => undefined),
  )
}

/** A request whose proof is true and fresh, and was perhaps used before. */
type Verified = {
  session: LiveSession
  proof: Proof
  visit: ViewerRequest
  epoch: string
  isPage: boolean
  /** A rule of its OTP refuses its address. */
  isRefusedHere: boolean
}

async function verifyForTurn(deps: PlaybackDeps, request: SessionRequest): Promise<Verified> {
  const { proof, signed, visit } = request
  const epoch = deps.nonces.epoch()
  const session = await verifyProof(deps, request)
  const isRefusedHere = await isLocationRefused(deps, session, visit)
  return { session, proof, visit, epoch, isPage: signed.operation === 'page', isRefusedHere }
}

/** Admits a request and decides on the rest of it, in the order of `admitRequest`. */
async function takeTurn<Result>(
  deps: PlaybackDeps,
  turns: Turns,
  verified: Verified,
  video: PlayableVideo | undefined,
  decide: (turn: Turn) => Result,
): Promise<Result> {
  const { session, epoch, visit } = verified
  const { address } = visit
  try {
    return await turns.take({
      ...{ session, epoch, address, video },
      decide(turn) {
        admitInTurn(deps, turn, verified)
        return decide(turn)
      },
    })
  } catch (error) {
    if (error instanceof PlaybackRefusal && error.code === 'stream-limit') deps.sessionRefusals.count(session, error.code)
    throw error
  }
}

function admitInTurn(deps: PlaybackDeps, turn: Turn, { proof, visit, isPage, isRefusedHere }: Verified): void {
  const { session, preciseNowS } = turn
  takePace(deps, session, 1000 * preciseNowS)
  if (!isPage) acceptOnce(session, proof)
  const why = findEndReason(session, Math.floor(preciseNowS))
  if (why) {
    if (session.row.endedAtS === null) turn.end(why)
    throw new PlaybackRefusal('session-ended', { why })
  }
  if (isRefusedHere) throw new PlaybackRefusal('place-not-allowed')
  if (isPage && addPage(session, proof)) {
    session.leftAtS = null
    turn.mustSurvive()
  }
  recordVisit(deps, session, visit)
  deps.recordAddress(session.row, visit.address)
}
