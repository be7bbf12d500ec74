import { PlaybackRefusal } from '../refusal.ts'
import { findRefusingRule, type Rules } from '../rules/rules.ts'
import { alertOfRefusal } from '../suspicion/refusal-alert.ts'
import type { LiveSession } from './live-session.ts'
import type { SessionDeps, ViewerRequest } from './session-deps.ts'
import { recordAttempt } from './session-store.ts'

type LocationDeps = Pick<SessionDeps, 'write' | 'nowS' | 'countries' | 'log'>

/**
 * Checks the rules of the session's OTP when the viewer's address has changed. A refusal does not end the session: from an allowed
 * location it plays again. It is recorded once for each change of address.
 * @throws PlaybackRefusal `place-not-allowed`
 */
export async function assertLocationAllowed(deps: LocationDeps, session: LiveSession, visit: ViewerRequest): Promise<void> {
  if (await isLocationRefused(deps, session, visit)) throw new PlaybackRefusal('place-not-allowed')
}

export async function isLocationRefused(deps: LocationDeps, session: LiveSession, visit: ViewerRequest): Promise<boolean> {
  const { rules } = session.row
  if (rules === null) return false
  const isKnown = session.location?.address === visit.address
  const refusedBy = isKnown ? session.location?.refusedBy : await checkLocation(deps, session, JSON.parse(rules), visit)
  return refusedBy !== undefined
}

/** @returns the rule that refuses this request's address: meanwhile another request may have come from elsewhere */
async function checkLocation(
  deps: LocationDeps,
  session: LiveSession,
  rules: Rules,
  { address, userAgent }: ViewerRequest,
): Promise<string | undefined> {
  const refusedBy = await findRefusingRule(deps.countries, rules, address)
  session.location = { address, refusedBy }
  if (refusedBy === undefined) return undefined
  const { otpHash, keyId, accountId, videoId } = session.row
  const outcome = 'place-not-allowed'
  const attempt = { otpHash, accountId, keyId, address, userAgent, embeddingHost: '-', outcome, rule: refusedBy }
  await deps.write(async (tx) => {
    await recordAttempt(tx, { ...attempt, atS: deps.nowS() })
    await alertOfRefusal(tx, { ...session.row, sessionId: session.row.id }, refusedBy, deps.nowS())
  })
  deps.log.info({ accountId, videoId, reason: outcome, rule: refusedBy }, 'playback: refused')
  return refusedBy
}
