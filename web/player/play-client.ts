import { type FailedResponse, type NextStep, nextStep } from './next-step.ts'
import { parseSignedRequest, type SignedRequest, type Signer } from './proof.ts'
import type { Refusal, Waiting } from './refusals.ts'
import { type Beat, isSessionAnswer, type RedeemBody, type SessionAnswer } from './wire.ts'

const RESPONSE_TIMEOUT_MS = 15_000
/** Shorter than the lease that it renews: the next one waits for it. */
const BEAT_TIMEOUT_MS = 6_000

export type PlayResult<T> = { ok: true; value: T } | { ok: false; refusal: Refusal }
/** Called while a request waits, and with undefined when it waits no more. */
type OnWaiting = (waiting: Waiting | undefined) => void

/** Spends the OTP, or resumes its session when this very browser spent it before. Waits for as long as it takes. */
export function redeem(signer: Signer, root: URL, body: RedeemBody, onWaiting: OnWaiting): Promise<PlayResult<SessionAnswer>> {
  return requestUntilSettled(signer, new URL('play/redeem', root), { operation: 'redeem', body: JSON.stringify(body) }, onWaiting)
}

/** Makes this page the session's newest: after a reload, or when the viewer chose to play here. */
export function openPage(signer: Signer, root: URL, session: string, onWaiting: OnWaiting): Promise<PlayResult<SessionAnswer>> {
  return requestUntilSettled(signer, new URL(`play/${session}/page`, root), { operation: 'page', session, body: '{}' }, onWaiting)
}

/** One beat. Undefined: the server did not answer, or not now; the next beat makes up for it. */
export async function sendBeat(signer: Signer, root: URL, session: string, beat: Beat): Promise<Refusal | undefined> {
  const signed: SignedRequest = { operation: 'beat', session, body: JSON.stringify(beat) }
  for (let proofsRefused = 0; ; proofsRefused++) {
    const refused = await request(signer, new URL(`play/${session}/beat`, root), signed, BEAT_TIMEOUT_MS)
    if ('value' in refused) return undefined
    const next = nextStep(refused, { proofsRefused, failures: 0 })
    if (next.step !== 'sign-again') return next.step === 'stop' && next.refusal.code !== 'network' ? next.refusal : undefined
  }
}

/**
 * The address of a session's poster as an image takes it. A poster that everybody may see has an address of its own; another is
 * fetched with a proof. Undefined: it cannot be had, and the player stays dark till the first frame.
 */
export async function posterUrl(
  signer: Signer,
  root: URL,
  { session, video: { poster } }: SessionAnswer,
): Promise<string | undefined> {
  if (poster === undefined) return undefined
  const url = new URL(poster, root)
  if (!parseSignedRequest(url.href, session)) return url.href
  const blob = await fetchFile(signer, session, url)
  return blob && dataUrl(blob)
}

/** A file of the session. Undefined: it cannot be had now. */
export async function fetchFile(signer: Signer, session: string, url: URL): Promise<Blob | undefined> {
  const signed = parseSignedRequest(url.href, session)
  if (!signed) return undefined
  try {
    // After a long pause the first proof is stale, and its answer has the nonce for the next.
    for (let attempt = 1; attempt <= 2; attempt++) {
      const answer = await fetch(url, { headers: { 'Reelgate-Proof': await signer.sign(signed) }, cache: 'no-store' })
      signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
      if (answer.ok) return await answer.blob()
    }
  } catch {}
  return undefined
}

function dataUrl(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })
}

export type Leave = { send: () => void }

/** A `leave` signed now and sent later: on `pagehide` there is no time left to sign. Its nonce lives about 90 s. */
export async function prepareLeave(signer: Signer, root: URL, session: string): Promise<Leave> {
  const body = '{}'
  const proof = await signer.sign({ operation: 'leave', session, body })
  return {
    send() {
      const request = {
        method: 'POST',
        keepalive: true,
        body,
        headers: { 'Content-Type': 'application/json', 'Reelgate-Proof': proof },
      }
      fetch(new URL(`play/${session}/leave`, root), request).catch(() => {}) // the slot ends by itself after its lease
    },
  }
}

async function requestUntilSettled(
  signer: Signer,
  url: URL,
  signed: SignedRequest,
  onWaiting: OnWaiting,
): Promise<PlayResult<SessionAnswer>> {
  let proofsRefused = 0
  let failures = 0
  while (true) {
    const outcome = await request(signer, url, signed)
    if ('value' in outcome) {
      onWaiting(undefined)
      return isSessionAnswer(outcome.value) ? { ok: true, value: outcome.value } : { ok: false, refusal: { code: 'internal' } }
    }
    const next: NextStep = nextStep(outcome, { proofsRefused, failures })
    if (next.step === 'stop') return { ok: false, refusal: next.refusal }
    if (next.step === 'sign-again') {
      proofsRefused++
      continue
    }
    proofsRefused = 0
    failures = next.waiting.code === 'network' ? failures + 1 : 0
    onWaiting(orOffline(next.waiting))
    await waitFor(next.waitMs, next.waiting)
  }
}

async function request(
  signer: Signer,
  url: URL,
  signed: SignedRequest,
  timeoutMs = RESPONSE_TIMEOUT_MS,
): Promise<FailedResponse | { value: unknown }> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      body: signed.body,
      headers: { 'Content-Type': 'application/json', 'Reelgate-Proof': await signer.sign(signed) },
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
    const text = await answer.text()
    if (answer.ok) return { value: text === '' ? undefined : JSON.parse(text) }
    return { status: answer.status, retryAfter: answer.headers.get('Retry-After'), body: text }
  } catch {
    return { status: 0, retryAfter: null, body: '' } // no connection, cut off, or too slow: asking again is safe, redeem repeats itself
  }
}

/** Tells a broken connection from a server that does not answer. */
export function orOffline(waiting: Waiting): Waiting {
  return waiting.code === 'network' && !navigator.onLine ? { code: 'offline' } : waiting
}

/** Resolves after `waitMs`; earlier when the connection that was missing is back, or when `signal` aborts. */
export function waitFor(waitMs: number, { code }: Waiting, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      removeEventListener('online', done)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, waitMs)
    if (code === 'network') addEventListener('online', done)
    signal?.addEventListener('abort', done)
  })
}
