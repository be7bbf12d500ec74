import { hashSecret, isSecret } from '../crypto/secret.ts'
import { findPageOptions } from './otp-store.ts'
import type { PlaybackDeps } from './playback-deps.ts'
import type { Rules } from './rules.ts'
import { findSession } from './session-store.ts'
import { type Embedding, type Framing, findFraming } from './whitelist.ts'

export type PlayerPageDeps = Pick<PlaybackDeps, 'db' | 'sessions'>
/** The OTP or session in the page's address. */
export type PageTarget = { otp: string | null; session: string | null }

/** What the page's response says to the browser. */
export type PageOptions = {
  framing: Framing
  /** Whether the video may leave the page for a small window: only where no watermark was asked for. */
  mayFloat: boolean
  /** False when the address names an OTP or a session that does not exist. */
  isKnown: boolean
}

/** Reads only the whitelist and the watermarks of the page's OTP or session, and writes nothing. */
export async function findPageOptionsOf(deps: PlayerPageDeps, target: PageTarget, embedding: Embedding): Promise<PageOptions> {
  const found = await findRows(deps, target)
  const rulesJson = found.find(({ rules }) => rules !== null)?.rules
  const { whitelist }: Rules = rulesJson ? JSON.parse(rulesJson) : {}
  return {
    framing: whitelist ? await findFraming(whitelist, embedding) : 'everyone',
    mayFloat: !found.some(hasWatermarks),
    isKnown: found.length > 0 || (target.otp === null && target.session === null),
  }
}

type PageRow = { rules: string | null; watermarks: string }

/** The session's before the OTP's. */
async function findRows({ db, sessions }: PlayerPageDeps, { otp, session }: PageTarget): Promise<PageRow[]> {
  const ofSession = session === null ? undefined : (sessions.get(session)?.row ?? (await findSession(db, session)))
  const ofOtp = otp !== null && isSecret(otp) ? await findPageOptions(db, hashSecret(otp)) : undefined
  return [ofSession, ofOtp].filter((row) => row !== undefined)
}

/** Whether watermarks were asked for, also those whose image could not be fetched. */
export function hasWatermarks({ watermarks }: { watermarks: string }): boolean {
  return watermarks !== '[]'
}
