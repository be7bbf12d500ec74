import type { WebhookRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { guardedFetch } from '../outbound/fetch.ts'
import type { OutboundPolicy } from '../outbound/policy.ts'
import type { ClaimedDelivery } from './delivery-store.ts'
import { signedHeaders } from './signature.ts'
import { getSigningSecrets, type WebhookDeps } from './webhook.ts'

/** `wallNowS`: receivers compare the timestamp with their own clock. */
export type AttemptDeps = Pick<WebhookDeps, 'masterKey' | 'nowS'> & { outbound: OutboundPolicy; wallNowS: () => number }

/** What became of one attempt. `status` is absent where nobody answered. */
export type Attempt = { status?: number; problem?: string; retryAfterS?: number }

const SILENCE_MS = 15_000
/** From the look-up of the name to the status; the longest that a delivery is on its way. */
export const ATTEMPT_TIMEOUT_MS = 20_000

/**
 * Sends a delivery once. Its id and body are those of every attempt, timestamp and signatures its own (Standard Webhooks 1.0).
 * @throws `signal.reason` when the signal ends it
 */
export async function attemptDelivery(
  deps: AttemptDeps,
  hook: WebhookRow,
  { webhookId, sequence, body }: ClaimedDelivery,
  signal: AbortSignal,
): Promise<Attempt> {
  const message = { id: messageId(webhookId, sequence), timestampS: deps.wallNowS(), body }
  const headers = { 'Content-Type': 'application/json', ...signedHeaders(getSigningSecrets(deps, hook), message) }
  const sent = {
    accountId: hook.accountId,
    url: hook.url,
    method: 'POST',
    headers,
    body,
    followRedirects: false,
    signal,
  } as const
  try {
    // The status says it all: nothing of the answer's body is read, however long it is.
    const bounds = { maxBytes: Number.POSITIVE_INFINITY, idleMs: SILENCE_MS, totalMs: ATTEMPT_TIMEOUT_MS }
    return await guardedFetch(deps.outbound, { ...sent, ...bounds }, async ({ status, headers: answered }) =>
      judge(status, answered['retry-after'], deps.wallNowS()),
    )
  } catch (error) {
    if (error instanceof Failure) return { problem: error.message }
    throw error
  }
}

/** The same in every attempt and every replay, by which a receiver knows what it has already. */
export function messageId(webhookId: string, sequence: number): string {
  return `msg_${webhookId}_${sequence}`
}

function judge(status: number, retryAfter: string | undefined, nowS: number): Attempt {
  if (status >= 200 && status < 300) return { status }
  const problem = status >= 300 && status < 400 ? `It answered ${status}: redirects are not followed.` : `It answered ${status}.`
  const mayAskForTime = status === 429 || status === 503
  return { status, problem, retryAfterS: mayAskForTime ? readRetryAfter(retryAfter, nowS) : undefined }
}

/** RFC 9110, section 10.2.3: seconds, or a date. */
function readRetryAfter(text: string | undefined, nowS: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text)) return Number(text)
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? undefined : Math.max(0, Math.ceil(atMs / 1000) - nowS)
}
