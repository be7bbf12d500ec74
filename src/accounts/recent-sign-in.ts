import { Failure } from '../errors.ts'
import type { Caller } from './permission.ts'

/** How old a sign-in may be to create access that outlives it. */
const RECENT_S = 600

/**
 * What creates access that outlives a sign-in, such as a passkey, a link or an API key, asks for a recent one: a stolen cookie alone must
 * not become more than itself. API keys and the command line never sign in.
 * @throws Failure `sign-in-again`
 */
export function requireRecentSignIn(caller: Caller | { signedInAtS: number } | 'command-line', nowS: number): void {
  if (typeof caller === 'string' || !('signedInAtS' in caller) || caller.signedInAtS + RECENT_S > nowS) return
  throw new Failure(
    'sign-in-again',
    `This needs a sign-in of the last ${RECENT_S / 60} minutes. Sign in again, or open a new sign-in link, and repeat it.`,
  )
}
