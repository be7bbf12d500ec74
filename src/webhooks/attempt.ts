import type { WebhookRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { guardedFetch } from '../outbound/fetch.ts'
import type { OutboundPolicy } from '../outbound/policy.ts'
import type { ClaimedDelivery } from './delivery-store.ts'
import { signedHeaders } from './signature.ts'
import { getSigningSecrets, type WebhookDeps } from './webhook.ts'

/** `wallNowS`: receivers compare the timestamp with their own clock. */
export type AttemptDeps = Pick<WebhookDeps, 'masterKey' | 'nowS'> & { outbound: OutboundPolicy; wallNowS: () => number }

/** The result of one attempt. `status` is absent where there was no response. */
export type AttemptResult = { status?: number; problem?: string; retryAfterS?: number }

const IDLE_TIMEOUT_MS = 15_000
/** From the DNS look-up to the response status. */
const ATTEMPT_TIMEOUT_MS = 20_000

/**
 * Sends a delivery once. All attempts share its id and body; each has its own timestamp and signatures (Standard Webhooks 1.0).
 * @throws `signal.reason` when it is aborted
 */
export async function attemptDelivery(
  deps: AttemptDeps,
  webhook: WebhookRow,
  { webhookId, sequence, body }: ClaimedDelivery,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const message = { id: messageId(webhookId, sequence), timestampS: deps.wallNowS(), body }
  const headers = { 'Content-Type': 'application/json', ...signedHeaders(getSigningSecrets(deps, webhook), message) }
  const request = {
    accountId: webhook.accountId,
    url: webhook.url,
    method: 'POST',
    headers,
    body,
    followRedirects: false,
    signal,
  } as const
  try {
    // Only the status matters: nothing of the response body is read, however long it is.
    const bounds = { maxBytes: Number.POSITIVE_INFINITY, idleMs: IDLE_TIMEOUT_MS, totalMs: ATTEMPT_TIMEOUT_MS }
    return await guardedFetch(deps.outbound, { ...request, ...bounds }, async (response) =>
      evaluateResponse(response.status, response.headers['retry-after'], deps.wallNowS()),
    )
  } catch (error) {
    if (error instanceof Failure) return { problem: error.message }
    throw error
  }
}

/** The same in every attempt and every replay, so that a receiver recognizes what it already has. */
export function messageId(webhookId: string, sequence: number): string {
  return `msg_${webhookId}_${sequence}`
}

function evaluateResponse(status: number, retryAfter: string | undefined, nowS: number): AttemptResult {
  if (status >= 200 && status < 300) return { status }
  const problem =
    status >= 300 && status < 400
      ? `The endpoint returned ${status}: redirects are not followed.`
      : `The endpoint returned ${status}.`
  const mayDelay = status === 429 || status === 503
  return { status, problem, retryAfterS: mayDelay ? readRetryAfter(retryAfter, nowS) : undefined }
}

/** RFC 9110, section 10.2.3: seconds, or a date. */
function readRetryAfter(text: string | undefined, nowS: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text)) return Number(text)
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? undefined : Math.max(0, Math.ceil(atMs / 1000) - nowS)
}
