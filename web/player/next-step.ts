import { ENDED_WHYS, type EndedWhy, REFUSAL_CODES, type Refusal, type RefusalCode, type Waiting } from './refusals.ts'

/** An answer that is not a success. `status` 0: no answer came. `body`: its text, JSON or not. */
export type Refused = { status: number; retryAfter: string | null; body: string }
/** What this one request has been through: proofs refused as stale or replayed, answers that failed in a row. */
export type Tried = { proofsRefused: number; failures: number }

export type NextStep =
  | { step: 'sign-anew' }
  | { step: 'wait'; waitMs: number; waiting: Waiting }
  | { step: 'stop'; refusal: Refusal }

const NOT_READY_AGAIN_MS = 15_000
const MOST_NEW_PROOFS = 2
const MOST_SERVER_FAULTS = 4

/** What the player does about an answer that is not a success. @see playback protocol, section 9 */
export function nextStep({ status, retryAfter, body }: Refused, tried: Tried): NextStep {
  const said = readBody(body)
  if (said.code === 'proof-stale' || said.code === 'proof-replayed') {
    return tried.proofsRefused < MOST_NEW_PROOFS ? { step: 'sign-anew' } : stop('network')
  }
  if (said.code === 'video-not-ready') {
    if (said.why === 'failed') return stop('video-failed')
    const waitMs = positive(said.waitMs) ?? NOT_READY_AGAIN_MS
    return { step: 'wait', waitMs, waiting: { code: 'video-not-ready', progress: shareOf(said.progress) } }
  }
  const askedWaitMs = positive(said.waitMs) ?? retryAfterMs(retryAfter)
  if (status === 429) {
    const waiting: Waiting =
      said.code === 'key-pace' ? { code: 'key-pace', maxRate: positive(said.maxRate) } : { code: 'slow-down' }
    return { step: 'wait', waitMs: askedWaitMs ?? 1000, waiting }
  }
  if (status === 503 && askedWaitMs !== undefined)
    return { step: 'wait', waitMs: askedWaitMs, waiting: { code: said.code === 'unavailable' ? 'unavailable' : 'busy' } }
  // A proxy says these while the server behind it starts again: waiting is right, however long.
  if (status === 0 || status === 502 || status === 503 || status === 504) return waitForAnswer(tried)
  if (status >= 500) return tried.failures < MOST_SERVER_FAULTS ? waitForAnswer(tried) : stop('internal')
  return { step: 'stop', refusal: readRefusal(said) }
}

/** A cache or web server in front answers for segments without words: then 403 is a path whose time is over, no sooner than the session's. */
export function nextSegmentStep(refused: Refused, tried: Tried): NextStep {
  if (refused.status === 403 && readBody(refused.body).code !== 'video-gone') return stop('session-ended', 'time')
  if (refused.status === 404 || refused.status === 410) return stop('video-gone')
  return nextStep(refused, tried)
}

/** Captions that were deleted since the playlist named them are no reason to stop the video. */
export function isFileGone({ body }: Refused): boolean {
  return readBody(body).code === 'file-gone'
}

function readRefusal(said: Record<string, unknown>): Refusal {
  const code = REFUSAL_CODES.find((known) => known === said.code) ?? 'internal'
  if (code !== 'session-ended') return { code }
  return { code, why: ENDED_WHYS.find((known) => known === said.why) }
}

function stop(code: RefusalCode, why?: EndedWhy): NextStep {
  return { step: 'stop', refusal: { code, why } }
}

function waitForAnswer({ failures }: Tried): NextStep {
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

function shareOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= 1 ? value : undefined
}
