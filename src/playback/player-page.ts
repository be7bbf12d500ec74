import { hashSecret, isSecret } from '../crypto/secret.ts'
import { findRulesOfOtp } from './otp-store.ts'
import type { Rules } from './rules.ts'
import type { PlaybackDeps } from './session.ts'
import { findSession } from './session-store.ts'
import { type Embedding, type Framing, framingOf } from './whitelist.ts'

export type PlayerPageDeps = Pick<PlaybackDeps, 'db' | 'sessions'>
/** What the page's address names; the player plays one of them. */
export type PageTarget = { otp: string | null; session: string | null }

/**
 * Who may frame the player's page. Reads the whitelist of its OTP or session, nothing else of them, and writes nothing.
 * @returns `isKnown` false: what its address names is not known
 */
export async function framingOfPage(
  deps: PlayerPageDeps,
  named: PageTarget,
  embedding: Embedding,
): Promise<{ framing: Framing; isKnown: boolean }> {
  const rulesJson = await findRules(deps, named)
  if (!rulesJson) return { framing: 'everyone', isKnown: rulesJson === null }
  const { whitelist }: Rules = JSON.parse(rulesJson)
  return { framing: whitelist ? await framingOf(whitelist, embedding) : 'everyone', isKnown: true }
}

/** As JSON. Null: there are none. Undefined: the OTP or the session that is named is not known. */
async function findRules({ db, sessions }: PlayerPageDeps, { otp, session }: PageTarget): Promise<string | null | undefined> {
  const row = session === null ? undefined : (sessions.get(session)?.row ?? (await findSession(db, session)))
  if (row?.rules) return row.rules
  if (otp !== null) return isSecret(otp) ? findRulesOfOtp(db, hashSecret(otp)) : undefined
  return session === null || row ? null : undefined
}
