import { hashSecret, isSecret } from '../protect/secret.ts'
import { findRulesOfOtp } from './otp-store.ts'
import type { Rules } from './rules.ts'
import type { PlaybackDeps } from './session.ts'
import { findSession } from './session-store.ts'
import { type Embedding, type Framing, framingOf } from './whitelist.ts'

export type PlayerPageDeps = Pick<PlaybackDeps, 'db' | 'sessions'>
/** What the page's address names; the player plays one of them. */
export type Named = { otp: string | null; session: string | null }

/** Who may frame the player's page. Reads the whitelist of its OTP or session, nothing else of them, and writes nothing. */
export async function framingOfPage(deps: PlayerPageDeps, named: Named, embedding: Embedding): Promise<Framing> {
  const rulesJson = await findRules(deps, named)
  if (rulesJson === null) return 'everyone'
  const { whitelist }: Rules = JSON.parse(rulesJson)
  return whitelist ? framingOf(whitelist, embedding) : 'everyone'
}

async function findRules({ db, sessions }: PlayerPageDeps, { otp, session }: Named): Promise<string | null> {
  const row = session === null ? undefined : (sessions.get(session)?.row ?? (await findSession(db, session)))
  if (row?.rules) return row.rules
  return otp !== null && isSecret(otp) ? findRulesOfOtp(db, hashSecret(otp)) : null
}
