import { hashSecret, isSecret } from '../crypto/secret.ts'
import { findRulesOfOtp } from './otp-store.ts'
import type { Rules } from './rules.ts'
import type { PlaybackDeps } from './session.ts'
import { findSession } from './session-store.ts'
import { type Embedding, type Framing, findFraming } from './whitelist.ts'

export type PlayerPageDeps = Pick<PlaybackDeps, 'db' | 'sessions'>
/** The OTP or session in the page's address. */
export type PageTarget = { otp: string | null; session: string | null }

/**
 * Which sites may frame the player's page. Reads only the whitelist of its OTP or session, and writes nothing.
 * @returns `isKnown` false when there is no such OTP or session
 */
export async function framingOfPage(
  deps: PlayerPageDeps,
  target: PageTarget,
  embedding: Embedding,
): Promise<{ framing: Framing; isKnown: boolean }> {
  const rulesJson = await findRules(deps, target)
  if (!rulesJson) return { framing: 'everyone', isKnown: rulesJson === null }
  const { whitelist }: Rules = JSON.parse(rulesJson)
  return { framing: whitelist ? await findFraming(whitelist, embedding) : 'everyone', isKnown: true }
}

/** @returns JSON; null without rules; undefined for an unknown OTP or session */
async function findRules({ db, sessions }: PlayerPageDeps, { otp, session }: PageTarget): Promise<string | null | undefined> {
  const row = session === null ? undefined : (sessions.get(session)?.row ?? (await findSession(db, session)))
  if (row?.rules) return row.rules
  if (otp !== null) return isSecret(otp) ? findRulesOfOtp(db, hashSecret(otp)) : undefined
  return session === null || row ? null : undefined
}
