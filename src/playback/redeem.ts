import { recordAuditEvent } from '../audit/audit-log.ts'
import { hashSecret, isSecret, newToken } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import { listTrackKinds } from '../encode/generation-store.ts'
import { saveViewerName, type ViewerName } from '../viewers/viewer-store.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { type FoundOtp, findOtp, findRulesOfOtp, isOpenOtp, recordReuse, spendOtp } from './otp-store.ts'
import type { PlaybackDeps } from './playback-deps.ts'
import { PlaybackRefusal } from './refusal.ts'
import { resumePage } from './requests.ts'
import { findRefusingRule, type Rules } from './rules/rules.ts'
import { mayRedeemHere } from './rules/whitelist.ts'
import { recordVisit } from './sessions/admit-request.ts'
import type { LiveSession } from './sessions/live-session.ts'
import { acceptSeq, isSignedWith, type Proof, publicKeyThumbprint } from './sessions/proof.ts'
import type { ViewerRequest } from './sessions/session-deps.ts'
import { bringIntoMemory } from './sessions/session-memory.ts'
import { findOpenAttempt, findSessionOfOtp, insertSession, recordAttempt } from './sessions/session-store.ts'
import { alertOfRefusal, alertOfReuse } from './suspicion/refusal-alert.ts'

type RedeemRequest = {
  otp: string
  videoId?: string
  publicKey: Buffer
  /** The server's key that its page named. */
  serverKeyId: string
  ticket: string
  /** The origins around the player's page, as its browser names them. */
  ancestors: readonly string[]
  /** Whether its browser decodes each format of tracks, as far as it says so. */
  support: Partial<Record<TrackFormat, boolean>>
  body: Buffer
}

/** What every track of a kind is in. */
const TRACK_FORMATS = { video: 'h264', audio: 'aac' } as const
type TrackFormat = (typeof TRACK_FORMATS)[keyof typeof TRACK_FORMATS]

/** A session lasts for twice the video, but at least this long. */
const MIN_SESSION_S = 12 * 3600

type Rejected = {
  refusal: PlaybackRefusal
  rule?: string
  /** The video of a known OTP, for the log. */
  video?: { accountId: string; videoId: string }
}
type Outcome = Rejected | { row: PlaybackSessionRow; isNew: boolean }

/** One redeem whose proof is verified. */
type RedeemContext = {
  deps: PlaybackDeps
  request: RedeemRequest
  proof: Proof
  visit: ViewerRequest
  otpHash: Buffer
  keyId: Buffer
  /** The OTP's rule that this viewer breaks, if any. */
  brokenRule: Rejected | undefined
}

/**
 * Spends an OTP and opens its one playback session, bound to the browser's key; or, for the same key while the session lives,
 * returns that session again (a lost response, a double click, a reload). Durable when it resolves.
 * @throws PlaybackRefusal
 * @see playback-protocol.md, section 2
 */
export async function redeem(
  deps: PlaybackDeps,
  request: RedeemRequest,
  proof: Proof,
  visit: ViewerRequest,
): Promise<LiveSession> {
  const epoch = deps.nonces.epoch()
  if (!deps.nonces.isFresh(proof.nonce)) throw new PlaybackRefusal('proof-stale')
  if (!isSecret(request.otp)) throw new PlaybackRefusal('otp-unknown')
  // Read before the transaction, which waits for nothing but its own statements. The rules of an OTP never change.
  const otpHash = hashSecret(request.otp)
  const rulesJson = await findRulesOfOtp(deps.db, otpHash)
  // Before a key is agreed on, which costs more than everything else here: a flood of guesses has no OTP.
  if (rulesJson === undefined) throw new PlaybackRefusal('otp-unknown')
  const proofKey = await deps.serverKeys.agree(request.serverKeyId, request.publicKey)
  const signed = { operation: 'redeem', session: '', argument: '', body: request.body } as const
  if (!proofKey || !isSignedWith(proofKey, proof, signed)) throw new PlaybackRefusal('not-allowed')
  const brokenRule = rulesJson === null ? undefined : await findBrokenRule(deps, JSON.parse(rulesJson), request, visit)
  const context = { deps, request, proof, visit, otpHash, keyId: publicKeyThumbprint(request.publicKey), brokenRule }
  const outcome = await deps.write((tx) => redeemInTransaction(tx, context))
  if ('refusal' in outcome) {
    const { refusal, rule, video } = outcome
    if (video) deps.log.info({ ...video, reason: refusal.code, rule }, 'playback: refused')
    throw refusal
  }
  // Only what is committed enters memory.
  const session = await bringIntoMemory(deps, outcome.row, proofKey)
  session.location = { address: visit.address, refusedBy: undefined }
  if (outcome.isNew) acceptSeq(session.seqs, proof.seq)
  else await resumePage(deps, session, { proof, visit, epoch })
  recordVisit(deps, session, visit)
  return session
}

/**
 * Whether a redeem is worth its cost: its OTP is open, or was spent by the same browser. An OTP cannot be guessed, so a flood of
 * requests has none.
 */
export async function mayRedeem(
  deps: Pick<PlaybackDeps, 'db' | 'nowS'>,
  { otp, publicKey }: Pick<RedeemRequest, 'otp' | 'publicKey'>,
): Promise<boolean> {
  if (!isSecret(otp)) return false
  const hash = hashSecret(otp)
  if (await isOpenOtp(deps.db, hash, deps.nowS())) return true
  const session = await findSessionOfOtp(deps.db, hash)
  return session?.keyId.equals(publicKeyThumbprint(publicKey)) ?? false
}

/** The first of the owner's rules that the embedding page or the viewer's address breaks. */
async function findBrokenRule(
  { tickets, countries }: PlaybackDeps,
  rules: Rules,
  request: RedeemRequest,
  visit: ViewerRequest,
): Promise<Rejected | undefined> {
  const { whitelist } = rules
  if (whitelist && !(await mayRedeemHere(whitelist, tickets.readHost(request.ticket) ?? '-', request.ancestors)))
    return { refusal: new PlaybackRefusal('site-not-allowed'), rule: 'whitelisthref' }
  const rule = await findRefusingRule(countries, rules, visit.address)
  return rule === undefined ? undefined : { refusal: new PlaybackRefusal('place-not-allowed'), rule }
}

/** Spends the OTP and opens or resumes the session, or finds the reason why not. Rejections are recorded as well. */
async function redeemInTransaction(tx: Db, context: RedeemContext): Promise<Outcome> {
  const { deps, request, visit, otpHash, keyId } = context
  const otp = await findOtp(tx, otpHash)
  if (!otp) return reject('otp-unknown')
  const isForVideo = request.videoId === undefined || request.videoId === otp.videoId
  const outcome = isForVideo ? await openOrResumeSession(tx, context, otp) : reject('otp-unknown')
  const result = outcomeName(outcome)
  // A player that waits for its video retries every few seconds: those attempts are not recorded.
  if (result === 'video-not-ready') return outcome
  await recordAttempt(tx, {
    otpHash,
    accountId: otp.accountId,
    atS: deps.nowS(),
    keyId,
    ...visit,
    embeddingHost: deps.tickets.readHost(request.ticket) ?? '-',
    outcome: result,
    rule: 'rule' in outcome ? outcome.rule : null,
  })
  if (result === 'otp-used') await reportReuse(tx, context, otp)
  if ('rule' in outcome && outcome.rule !== undefined)
    await alertOfRefusal(tx, { ...otp, sessionId: null }, outcome.rule, deps.nowS())
  return 'refusal' in outcome ? { ...outcome, video: { accountId: otp.accountId, videoId: otp.videoId } } : outcome
}

/** Once per OTP: a second browser has a link that was meant for the first. */
async function reportReuse(tx: Db, { deps, otpHash, visit }: RedeemContext, otp: FoundOtp): Promise<void> {
  const nowS = deps.nowS()
  if (!(await recordReuse(tx, otpHash, nowS))) return
  const { accountId, videoId, userId } = otp
  const opening = await findOpenAttempt(tx, otpHash)
  const details = { userId, addresses: [opening?.address ?? null, visit.address] }
  await addVideoEvents(tx, 'otp:reused', [videoId], details)
  const session = await findSessionOfOtp(tx, otpHash)
  const alert = { accountId, sessionId: session?.id ?? null, userId, videoId, otpHash }
  await alertOfReuse(tx, { ...alert, firstAddress: opening?.address ?? '-', secondAddress: visit.address }, nowS)
  // Without the viewer's id, which the alert has: the audit log is kept longer than viewer data.
  await recordAuditEvent(tx, { atS: nowS, accountId, by: 'viewer', kind: 'otp:reused', subjects: [videoId] })
}

function outcomeName(outcome: Outcome): string {
  if ('refusal' in outcome) return outcome.refusal.code
  if (outcome.isNew) return 'opened'
  return outcome.row.endedAtS === null ? 'resumed' : 'session-ended'
}

async function openOrResumeSession(tx: Db, context: RedeemContext, otp: FoundOtp): Promise<Outcome> {
  const { deps, request, proof, otpHash, keyId, brokenRule } = context
  const nowS = deps.nowS()
  const lacks = await findLackingFormats(tx, request, otp)
  if (!brokenRule && lacks.length === 0 && (await spendOtp(tx, otpHash, nowS))) {
    const row = await insertSession(tx, {
      id: newToken(),
      otpHash,
      accountId: otp.accountId,
      videoId: otp.videoId,
      generation: otp.generation ?? 0,
      userId: otp.userId,
      streamLimit: otp.streamLimit,
      publicKey: request.publicKey,
      serverKeyId: request.serverKeyId,
      keyId,
      pages: JSON.stringify([proof.pageId]),
      watermarks: otp.watermarks,
      forcedBitrateKbps: otp.forcedBitrateKbps,
      rules: sessionRules(otp.rules, deps.tickets.readHost(request.ticket)),
      startedAtS: nowS,
      endsAtS: nowS + Math.max(MIN_SESSION_S, Math.ceil(2 * (otp.durationS ?? 0))),
      lastSeenAtS: nowS,
      seqHighest: proof.seq,
    })
    await saveName(tx, otp, nowS)
    return { row, isNew: true }
  }
  return resumeSession(tx, context, otp, lacks)
}

/** The formats of the video's tracks that the browser says it cannot decode. */
async function findLackingFormats(tx: Db, { support }: RedeemRequest, otp: FoundOtp): Promise<readonly TrackFormat[]> {
  if (!Object.values(support).includes(false) || otp.generation === null) return []
  const kinds = await listTrackKinds(tx, { videoId: otp.videoId, generation: otp.generation })
  return kinds.map((kind) => TRACK_FORMATS[kind]).filter((format) => support[format] === false)
}

/** The name is stored where the viewer's other rows are, so that it is erased with them. */
async function saveName(tx: Db, { accountId, userId, viewer }: FoundOtp, namedAtS: number): Promise<void> {
  if (userId === null || viewer === null) return
  const { name, email }: ViewerName = JSON.parse(viewer)
  await saveViewerName(tx, { accountId, userId, name, email, namedAtS })
}

/** Where a whitelist expression allowed the ticket's host, the session stores that host: a reloaded page does not name one. */
function sessionRules(rulesJson: string | null, ticketHost: string | undefined): string | null {
  if (rulesJson === null || ticketHost === undefined || ticketHost === '-') return rulesJson
  const { whitelist, ...rules }: Rules = JSON.parse(rulesJson)
  if (!whitelist || 'host' in whitelist) return rulesJson
  return JSON.stringify({ ...rules, whitelist: { ...whitelist, openedOn: ticketHost } } satisfies Rules)
}

async function resumeSession(
  tx: Db,
  { deps, otpHash, keyId, brokenRule }: RedeemContext,
  otp: FoundOtp,
  lacks: readonly TrackFormat[],
): Promise<Outcome> {
  const row = await findSessionOfOtp(tx, otpHash)
  if (row?.keyId.equals(keyId)) return brokenRule ?? { row, isNew: false }
  if (!isIssuerValid(otp, deps.nowS()) || otp.accountDisabled === 1) return reject('otp-unknown')
  if (otp.spentAtS !== null) return reject('otp-used')
  if (otp.expiresAtS <= deps.nowS()) return reject('otp-expired')
  if (otp.status === null || otp.deletedAtS !== null) return reject('video-gone')
  if (brokenRule) return brokenRule
  if (otp.status === 'Encoding error' || otp.status === 'Not a media file') return reject('video-not-ready', { why: 'failed' })
  if (lacks.length > 0) return reject('unsupported-browser', { lacks })
  return reject('video-not-ready', { waitMs: otp.status === 'Processing' ? ENCODING_RETRY_MS : NOT_STARTED_RETRY_MS })
}

/** When to retry a video that is not ready: soon once it is being encoded, as its beginning plays after a few seconds. */
const ENCODING_RETRY_MS = 5_000
const NOT_STARTED_RETRY_MS = 15_000

function reject(...refusal: ConstructorParameters<typeof PlaybackRefusal>): Outcome {
  return { refusal: new PlaybackRefusal(...refusal) }
}

/** Whether the API key, or the person in the console, that issued an OTP still may. */
function isIssuerValid({ keyId, keyRevokedAtS, keyExpiresAtS, userDisabled }: FoundOtp, nowS: number): boolean {
  if (keyId === null) return userDisabled === 0
  return keyRevokedAtS === null && (keyExpiresAtS === null || keyExpiresAtS > nowS)
}
