/** Waits between attempts: ten of these in three days, as Standard Webhooks 1.0 recommends. */
const WAITS_S = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** However long a receiver asks to be left alone. */
const LONGEST_REST_S = 24 * 3600
/** An endpoint that has failed often is tried at least so often: one attempt finds out whether it is back. */
const USUAL_REST_S = 60

/** Failing for so long and so often, an endpoint is given up; a clock that has jumped does not count as days of failures. */
const DEAD_AFTER_S = 5 * 24 * 3600
const DEAD_AFTER_FAILURES = 10

/** How long a delivery waits for its next attempt; undefined: that was the last. Spread by a tenth, so that a crowd does not come back as one. */
export function retryDelayS(attempts: number, random = Math.random): number | undefined {
  const waitS = WAITS_S[attempts - 1]
  return waitS === undefined ? undefined : Math.round(waitS * (0.9 + 0.2 * random()))
}

/** How long an endpoint is left alone after so many failures one after the other, or as long as it has asked for. */
export function endpointBackOffS(consecutiveFailures: number, askedS = 0): number {
  return Math.min(LONGEST_REST_S, Math.max(askedS, Math.min(USUAL_REST_S, 2 ** consecutiveFailures)))
}

export function isEndpointDead(
  { consecutiveFailures, failingSinceS }: { consecutiveFailures: number; failingSinceS: number | null },
  nowS: number,
) {
  return consecutiveFailures >= DEAD_AFTER_FAILURES && failingSinceS !== null && nowS - failingSinceS >= DEAD_AFTER_S
}
