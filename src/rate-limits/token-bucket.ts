/** A rate per second, and the size of a burst. */
type Rate = { perS: number; burst: number }

/** True proofs of a session. */
export const PROOF_RATE: Rate = { perS: 20, burst: 60 }
/** Proofs of a session that are checked where its address floods: enough for a player, too few to keep a processor busy. */
export const PROOF_CHECK_RATE: Rate = { perS: 5, burst: 20 }

/** Requests left to a playback session: valid proofs count against their session, so a school behind one address is not limited. */
export type TokenBucket = { rate: Rate; left: number; atMs: number }

/** `nowMs` is monotonic. */
export function createTokenBucket(rate: Rate, nowMs: number): TokenBucket {
  return { rate, left: rate.burst, atMs: nowMs }
}

/** Counts a proof. False: too many. The clocks of two servers differ a little: no time counts twice. */
export function takeToken(pace: TokenBucket, nowMs: number): boolean {
  const { perS, burst } = pace.rate
  const atMs = Math.max(pace.atMs, nowMs)
  pace.left = Math.min(burst, pace.left + ((atMs - pace.atMs) / 1000) * perS)
  pace.atMs = atMs
  if (pace.left < 1) return false
  pace.left -= 1
  return true
}
