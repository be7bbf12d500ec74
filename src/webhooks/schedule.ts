/** Delays between attempts: ten attempts in three days, as Standard Webhooks 1.0 recommends. */
const RETRY_DELAYS_S = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** Also when a receiver sends a longer Retry-After. */
const MAX_BACK_OFF_S = 24 * 3600
/** However often an endpoint has failed, it is tried again after this: one attempt finds out whether it is back. */
const MAX_OWN_BACK_OFF_S = 60

/** An endpoint is given up when it has failed for this long and this often: a clock that has jumped is not days of failures. */
const DEAD_AFTER_S = 5 * 24 * 3600
const DEAD_AFTER_FAILURES = 10

/** How long a delivery waits for its next attempt; undefined: that was the last. Spread by a tenth, so that many do not retry at the same moment. */
export function retryDelayS(attempts: number, random = Math.random): number | undefined {
  const delayS = RETRY_DELAYS_S[attempts - 1]
  return delayS === undefined ? undefined : Math.round(delayS * (0.9 + 0.2 * random()))
}

/** How long nothing is sent to an endpoint after consecutive failures: doubled each time, or as long as its Retry-After. */
export function endpointBackOffS(consecutiveFailures: number, requestedS = 0): number {
  return Math.min(MAX_BACK_OFF_S, Math.max(requestedS, Math.min(MAX_OWN_BACK_OFF_S, 2 ** consecutiveFailures)))
}

export function isEndpointDead(
  { consecutiveFailures, failingSinceS }: { consecutiveFailures: number; failingSinceS: number | null },
  nowS: number,
) {
  return consecutiveFailures >= DEAD_AFTER_FAILURES && failingSinceS !== null && nowS - failingSinceS >= DEAD_AFTER_S
}
