import { recordAuditEvent } from '../audit/audit-log.ts'
import { listPosters } from '../catalogue/poster-store.ts'
import { findPublicVideo } from '../catalogue/video-store.ts'
import { hashSecret, isSecret, newToken } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import type { ImageWatermark, TextWatermark, Watermark } from '../watermark/watermark.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { findOtp, findRulesOfOtp, isOpenOtp, recordReuse, spendOtp } from './otp-store.ts'
import { acceptSeq, importPublicKey, isSignedBy, keyIdFor, type Proof } from './proof.ts'
import { PlaybackRefusal } from './refusal.ts'
import { findRefusingRule, type Rules } from './rules.ts'
import { keepLive, type LiveSession, openPage, type PlaybackDeps, positionOf, type ViewerRequest } from './session.ts'
import { findOpenAttempt, findSessionOfOtp, insertSession, recordAttempt } from './session-store.ts'
import { maySpendHere } from './whitelist.ts'

export type RedeemRequest = {
  otp: string
  videoId?: string
  publicKey: Buffer
  ticket: string
  /** The origins around the player's page, as its browser names them. */
  ancestors: readonly string[]
  body: Buffer
}

const LONGEST_SESSION_S = 12 * 3600

type Refused = {
  refusal: PlaybackRefusal
  rule?: string
  /** Of an OTP that is known, for the log. */
  of?: { accountId: string; videoId: string }
}
type Outcome = Refused | { row: PlaybackSessionRow; isNew: boolean }

/**
 * Spends an OTP and opens its one playback session, bound to the browser's key; or, for the same key while the session lives,
 * gives that session again (a lost answer, a double click, a reload). Durable when it resolves.
 * @throws PlaybackRefusal
 * @see playback-protocol.md, section 2
 */
export async function redeem(
  deps: PlaybackDeps,
  request: RedeemRequest,
  proof: Proof,
  visit: ViewerRequest,
): Promise<LiveSession> {
  if (!deps.nonces.isFresh(proof.nonce)) throw new PlaybackRefusal('proof-stale')
  const publicKey = importPublicKey(request.publicKey)
  const signed = { operation: 'redeem', session: '', argument: '', body: request.body } as const
  if (!publicKey || !(await isSignedBy(publicKey, proof, signed))) throw new PlaybackRefusal('not-allowed')
  if (!isSecret(request.otp)) throw new PlaybackRefusal('otp-unknown')

  // Before the transaction, which waits for nothing but its own statements; an OTP's rules never change.
  const hash = hashSecret(request.otp)
  const rulesJson = await findRulesOfOtp(deps.db, hash)
  const refused = !rulesJson ? undefined : await refusedByRules(deps, JSON.parse(rulesJson), request, visit)
  const outcome = await deps.write((tx) => spendOrResume(deps, tx, hash, refused, request, proof, visit))
  if ('refusal' in outcome) {
    const { refusal, rule, of } = outcome
    if (of) deps.log.info({ ...of, reason: refusal.code, rule }, 'playback: refused')
    throw refusal
  }
  // Only what is committed enters memory.
  const session = keepLive(deps, outcome.row, await positionOf(deps.db, outcome.row))
  if (!session) throw new PlaybackRefusal('not-allowed')
  if (outcome.isNew) acceptSeq(session.seqs, proof.seq)
  else await openPage(deps, session, proof)
  session.lastSeenAtS = deps.nowS()
  session.address = visit.address
  session.place = { address: visit.address, refusedBy: undefined }
  return session
}

/**
 * Whether a redeem is worth its cost: its OTP is open, or was spent by this very browser. Nobody can guess one, so a flood has none.
 * Changes nothing.
 */
export async function mayRedeem(
  deps: Pick<PlaybackDeps, 'db' | 'nowS'>,
  { otp, publicKey }: Pick<RedeemRequest, 'otp' | 'publicKey'>,
): Promise<boolean> {
  if (!isSecret(otp)) return false
  const hash = hashSecret(otp)
  if (await isOpenOtp(deps.db, hash, deps.nowS())) return true
  const session = await findSessionOfOtp(deps.db, hash)
  return session?.keyId.equals(keyIdFor(publicKey)) ?? false
}

/** What the owner's rules say to the page and the place that the viewer asks from. */
async function refusedByRules(
  { tickets, countries }: PlaybackDeps,
  rules: Rules,
  request: RedeemRequest,
  visit: ViewerRequest,
): Promise<Refused | undefined> {
  const { whitelist } = rules
  if (whitelist && !(await maySpendHere(whitelist, tickets.hostOf(request.ticket) ?? '-', request.ancestors)))
    return { refusal: new PlaybackRefusal('site-not-allowed'), rule: 'whitelisthref' }
  const rule = await findRefusingRule(countries, rules, visit.address)
  return rule === undefined ? undefined : { refusal: new PlaybackRefusal('place-not-allowed'), rule }
}

/** One transaction: the conditional update that spends, then the session; or the reason why not. A refusal is recorded, too. */
async function spendOrResume(
  deps: PlaybackDeps,
  tx: Db,
  hash: Buffer,
  refusedByRules: Refused | undefined,
  request: RedeemRequest,
  proof: Proof,
  visit: ViewerRequest,
): Promise<Outcome> {
  const keyId = keyIdFor(request.publicKey)
  const otp = await findOtp(tx, hash)
  const isOurs = otp !== undefined && (request.videoId === undefined || request.videoId === otp.videoId)
  const outcome = isOurs ? await settle(deps, tx, { hash, keyId, otp, refusedByRules }, request, proof) : refused('otp-unknown')
  const result = nameOf(outcome)
  // A player that waits for its video asks every few seconds: that is no event.
  if (otp && result !== 'video-not-ready') {
    const embeddingHost = deps.tickets.hostOf(request.ticket) ?? '-'
    await recordAttempt(tx, {
      otpHash: hash,
      atS: deps.nowS(),
      keyId,
      ...visit,
      embeddingHost,
      outcome: result,
      rule: 'rule' in outcome ? outcome.rule : null,
    })
    if (result === 'otp-used') await tellReuse(tx, hash, otp, visit.address, deps.nowS())
    if ('refusal' in outcome) return { ...outcome, of: { accountId: otp.accountId, videoId: otp.videoId } }
  }
  return outcome
}

/** Once per OTP: somebody has a link that was meant for another browser. */
async function tellReuse(tx: Db, hash: Buffer, otp: FoundOtp, address: string, nowS: number): Promise<void> {
  if (!(await recordReuse(tx, hash, nowS))) return
  const { accountId, videoId, userId } = otp
  const opening = await findOpenAttempt(tx, hash)
  const details = { userId, addresses: [opening?.address ?? null, address] }
  await addVideoEvents(tx, 'otp:reused', [videoId], details)
  await recordAuditEvent(tx, { atS: nowS, accountId, by: 'viewer', kind: 'otp:reused', subjects: [videoId], details })
}

function nameOf(outcome: Outcome): string {
  if ('refusal' in outcome) return outcome.refusal.code
  if (outcome.isNew) return 'opened'
  return outcome.row.endedAtS === null ? 'resumed' : 'session-ended'
}

type FoundOtp = NonNullable<Awaited<ReturnType<typeof findOtp>>>
/** An OTP, the key of the browser that sent it, and whether its rules let that browser in. */
type Sent = { hash: Buffer; otp: FoundOtp; keyId: Buffer; refusedByRules: Refused | undefined }

async function settle(deps: PlaybackDeps, tx: Db, sent: Sent, request: RedeemRequest, proof: Proof): Promise<Outcome> {
  const nowS = deps.nowS()
  const { hash, keyId, otp, refusedByRules } = sent
  if (!refusedByRules && (await spendOtp(tx, hash, nowS))) {
    const row = await insertSession(tx, {
      id: newToken(),
      otpHash: hash,
      accountId: otp.accountId,
      videoId: otp.videoId,
      generation: otp.generation ?? 0,
      userId: otp.userId,
      streamLimit: otp.streamLimit,
      publicKey: request.publicKey,
      keyId,
      pages: JSON.stringify([proof.pageId]),
      watermarks: otp.watermarks,
      forcedBitrateKbps: otp.forcedBitrateKbps,
      rules: rulesOfSession(otp.rules, deps.tickets.hostOf(request.ticket)),
      startedAtS: nowS,
      endsAtS: nowS + Math.max(LONGEST_SESSION_S, Math.ceil(2 * (otp.durationS ?? 0))),
      lastSeenAtS: nowS,
    })
    return { row, isNew: true }
  }
  return resume(deps, tx, sent)
}

/** An expression let in the host of the ticket: the session keeps it, for a page that is loaded anew names none. */
function rulesOfSession(rulesJson: string | null, ticketHost: string | undefined): string | null {
  if (rulesJson === null || ticketHost === undefined || ticketHost === '-') return rulesJson
  const { whitelist, ...rules }: Rules = JSON.parse(rulesJson)
  if (!whitelist || 'host' in whitelist) return rulesJson
  return JSON.stringify({ ...rules, whitelist: { ...whitelist, openedOn: ticketHost } } satisfies Rules)
}

async function resume(deps: PlaybackDeps, tx: Db, { hash, keyId, otp, refusedByRules }: Sent): Promise<Outcome> {
  const row = await findSessionOfOtp(tx, hash)
  if (row?.keyId.equals(keyId)) return refusedByRules ?? { row, isNew: false }
  const hasKeyExpired = otp.keyExpiresAtS !== null && otp.keyExpiresAtS <= deps.nowS()
  if (otp.keyRevokedAtS !== null || hasKeyExpired || otp.accountDisabled === 1) return refused('otp-unknown')
  if (otp.spentAtS !== null) return refused('otp-used')
  if (otp.expiresAtS <= deps.nowS()) return refused('otp-expired')
  if (otp.status === null || otp.deletedAtS !== null) return refused('video-gone')
  if (refusedByRules) return refusedByRules
  if (otp.status === 'Encoding error' || otp.status === 'Not a media file') return refused('video-not-ready', { why: 'failed' })
  return refused('video-not-ready', { waitMs: otp.status === 'Processing' ? SOON_MS : LATER_MS })
}

/** When to ask again for a video that is not ready: often once it is being encoded, which takes seconds till its beginning plays. */
const SOON_MS = 5_000
const LATER_MS = 15_000

function refused(...refusal: ConstructorParameters<typeof PlaybackRefusal>): Outcome {
  return { refusal: new PlaybackRefusal(...refusal) }
}

/** What a viewer is shown of a video, in addition to its picture. Of a video whose `public` is 0 the poster is a file of the session. */
export type VideoView = {
  title: string
  durationS: number
  aspectRatio: number
  poster: { token: string; isPublic: boolean } | undefined
  watermarks: ShownWatermark[]
}
/** An image mark comes with its picture, and without the address it is from. */
export type ShownWatermark = TextWatermark | (Omit<ImageWatermark, 'url'> & { png: Buffer })

/** @throws PlaybackRefusal `video-gone` */
export async function viewVideo(deps: PlaybackDeps, { row }: LiveSession): Promise<VideoView> {
  const playable = await deps.videos.get(row.videoId, row.generation)
  const video = await findPublicVideo(deps.db, row.videoId)
  if (!playable || !video) throw new PlaybackRefusal('video-gone')
  const [poster] = (await listPosters(deps.db, [row.videoId])).get(row.videoId) ?? []
  return {
    title: video.title,
    durationS: playable.plan.durationS,
    aspectRatio: playable.plan.videoTrack?.aspectRatio ?? 16 / 9,
    poster: poster && { token: poster.token, isPublic: video.public === 1 },
    watermarks: await shownWatermarks(deps, row, JSON.parse(row.watermarks)),
  }
}

/** A mark whose picture cannot be had is left out: a dead image host must not stop an owner's videos. */
async function shownWatermarks(
  deps: PlaybackDeps,
  row: PlaybackSessionRow,
  marks: readonly Watermark[],
): Promise<ShownWatermark[]> {
  const shown = await Promise.all(
    marks.map(async (mark): Promise<ShownWatermark[]> => {
      if (mark.type !== 'image') return [mark]
      const { url, ...rest } = mark
      const png = await deps.watermarkImages.find(row.accountId, url)
      if (png) return [{ ...rest, png }]
      deps.log.warn(
        { accountId: row.accountId, videoId: row.videoId },
        'a video plays without an image mark: its picture is not here',
      )
      return []
    }),
  )
  return shown.flat()
}
