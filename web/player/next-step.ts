import type { EndReason } from '../../src/playback/refusal.ts'
import { formatNames, isEndReason, REFUSAL_CODES, type Refusal, type RefusalCode, type Waiting } from './refusals.ts'

/** A response that is not a success. `status` 0: there was none. `body`: its text, JSON or not. */
export type FailedResponse = { status: number; retryAfter: string | null; body: string }
/** The attempts of one request: proofs refused as stale or replayed, and failures in a row. */
export type Attempts = { proofsRefused: number; failures: number }

export type NextStep =
  | { step: 'sign-again' }
  | { step: 'wait'; waitMs: number; waiting: Waiting }
  | { step: 'stop'; refusal: Refusal }

const NOT_READY_RETRY_MS = 15_000
const MAX_NEW_PROOFS = 2
const MAX_SERVER_ERRORS = 4

/** What the player does about a response that is not a success. @see playback protocol, section 9 */
export function nextStep({ status, retryAfter, body }: FailedResponse, tried: Attempts): NextStep {
  const response = readBody(body)
  if (response.code === 'proof-stale' || response.code === 'proof-replayed') {
    return tried.proofsRefused < MAX_NEW_PROOFS ? { step: 'sign-again' } : stop('network')
  }
  if (response.code === 'video-not-ready') {
    if (response.why === 'failed') return stop('video-failed')
    const waitMs = positive(response.waitMs) ?? NOT_READY_RETRY_MS
    return { step: 'wait', waitMs, waiting: { code: 'video-not-ready', progress: readShare(response.progress) } }
  }
  const wantedWaitMs = positive(response.waitMs) ?? retryAfterMs(retryAfter)
  if (status === 429) {
    const waiting: Waiting =
      response.code === 'key-pace' ? { code: 'key-pace', maxRate: positive(response.maxRate) } : { code: 'slow-down' }
    return { step: 'wait', waitMs: wantedWaitMs ?? 1000, waiting }
  }
  if (status === 503 && wantedWaitMs !== undefined)
    return { step: 'wait', waitMs: wantedWaitMs, waiting: { code: response.code === 'unavailable' ? 'unavailable' : 'busy' } }
  // What a proxy answers while the server behind it restarts: wait, however long.
  if (status === 0 || status === 502 || status === 503 || status === 504) return waitForServer(tried)
  if (status >= 500) return tried.failures < MAX_SERVER_ERRORS ? waitForServer(tried) : stop('internal')
  return { step: 'stop', refusal: readRefusal(response) }
}

/** A cache or web server in front answers for segments without words: then 403 is a path whose time is over, no sooner than the session's. */
export function nextSegmentStep(refused: FailedResponse, tried: Attempts): NextStep {
  if (refused.status === 403 && readBody(refused.body).code !== 'video-gone') return stop('session-ended', 'time')
  if (refused.status === 404 || refused.status === 410) return stop('video-gone')
  return nextStep(refused, tried)
}

/** Captions or an audio track that were removed since the playlist named them are no reason to stop the video. */
export function isFileGone({ body }: FailedResponse): boolean {
  return readBody(body).code === 'file-gone'
}

function readRefusal(response: Record<string, unknown>): Refusal {
  const code = REFUSAL_CODES.find((known) => known === response.code) ?? 'internal'
  if (code === 'stream-limit') return { code, waitMs: positive(response.waitMs) }
  if (code === 'unsupported-browser') return { code, lacks: formatNames(response.lacks) }
  if (code !== 'session-ended') return { code }
  return { code, why: isEndReason(response.why) ? response.why : undefined }
}

function stop(code: RefusalCode, why?: EndReason): NextStep {
  return { step: 'stop', refusal: { code, why } }
}

function waitForServer({ failures }: Attempts): NextStep {
  return { step: 'wait', waitMs: Math.min(8000, 1000 * 2 ** failures), waiting: { code: 'network' } }
}

function readBody(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {} // a proxy's page of HTML says nothing we could use; its status does
  }
}

/** Only the form with seconds; our server sends no dates. */
function retryAfterMs(header: string | null): number | undefined {
  return header !== null && /^\d{1,6}$/.test(header) ? Math.max(250, Number(header) * 1000) : undefined
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined
}

function readShare(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : undefined
}
