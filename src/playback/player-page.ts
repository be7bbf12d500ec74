import { hashSecret, isSecret } from '../crypto/secret.ts'
import { findPageOptions } from './otp-store.ts'
import type { PlaybackDeps } from './playback-deps.ts'
import type { Rules } from './rules/rules.ts'
import { type Embedding, type Framing, findFraming } from './rules/whitelist.ts'
import type { ViewerRequest } from './sessions/session-deps.ts'
import { findSession, recordAttempt } from './sessions/session-store.ts'
import { alertOfRefusal } from './suspicion/refusal-alert.ts'
import { refererHost } from './ticket.ts'

export type PlayerPageDeps = Pick<PlaybackDeps, 'db' | 'write' | 'nowS' | 'sessions' | 'log'>
/** The OTP or session in the page's address. */
type PageTarget = { otp: string | null; session: string | null }

/** What the page's response says to the browser. */
type PageOptions = {
  framing: Framing
  /** Whether the video may leave the page for a small window: only where no watermark was asked for. */
  mayFloat: boolean
  /** False when the address names an OTP or a session that does not exist. */
  isKnown: boolean
}

/** Reads only the whitelist and the watermarks of the page's OTP or session. Writes nothing, unless the whitelist refuses the viewer. */
export async function findPageOptionsOf(
  deps: PlayerPageDeps,
  target: PageTarget,
  embedding: Embedding,
  visit: ViewerRequest,
): Promise<PageOptions> {
  const found = await findRows(deps, target)
  const ruled = found.find(({ rules }) => rules !== null)
  const { whitelist }: Rules = ruled?.rules ? JSON.parse(ruled.rules) : {}
  const framing = whitelist ? await findFraming(whitelist, embedding) : 'everyone'
  if (ruled && framing === 'refused') await recordRefusal(deps, ruled, embedding, visit)
  return {
    framing,
    mayFloat: !found.some(hasWatermarks),
    isKnown: found.length > 0 || (target.otp === null && target.session === null),
  }
}

type PageRow = {
  otpHash: Buffer
  accountId: string
  videoId: string
  userId: string | null
  rules: string | null
  watermarks: string
}

/** The session's before the OTP's. */
async function findRows({ db, sessions }: PlayerPageDeps, { otp, session }: PageTarget): Promise<PageRow[]> {
  const ofSession = session === null ? undefined : (sessions.get(session)?.row ?? (await findSession(db, session)))
  const ofOtp = otp !== null && isSecret(otp) ? await findPageOptions(db, hashSecret(otp)) : undefined
  return [ofSession, ofOtp].filter((row) => row !== undefined)
}

/** As a redeem records it, which the viewer of a page that is not sent never gets to. The page says why also where this cannot be written. */
async function recordRefusal(
  { write, nowS, log }: PlayerPageDeps,
  { otpHash, accountId, videoId, userId }: PageRow,
  { referer }: Embedding,
  visit: ViewerRequest,
): Promise<void> {
  const atS = nowS()
  const refusal = { outcome: 'site-not-allowed', rule: 'whitelisthref' }
  const attempt = { otpHash, accountId, atS, keyId: NO_KEY, ...visit, embeddingHost: refererHost(referer), ...refusal }
  try {
    await write(async (tx) => {
      await recordAttempt(tx, attempt)
      await alertOfRefusal(tx, { accountId, sessionId: null, userId, videoId }, refusal.rule, atS)
    })
  } catch (error) {
    log.warn({ err: error, accountId, videoId }, 'playback: recording a refusal failed')
  }
  log.info({ accountId, videoId, reason: refusal.outcome, rule: refusal.rule }, 'playback: refused')
}

/** The browser has shown none yet. */
const NO_KEY = Buffer.alloc(0)

/** Whether watermarks were asked for, also those whose image could not be fetched. */
export function hasWatermarks({ watermarks }: { watermarks: string }): boolean {
  return watermarks !== '[]'
}
