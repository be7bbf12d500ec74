import { type NextStep, nextStep, type Refused } from './next-step.ts'
import { type Asked, askedBy, type Signer } from './proof.ts'
import type { Refusal, Waiting } from './refusals.ts'
import { type Beat, isSessionAnswer, type RedeemBody, type SessionAnswer } from './wire.ts'

const ANSWER_WITHIN_MS = 15_000

export type Answer<T> = { ok: true; value: T } | { ok: false; refusal: Refusal }
/** Told while a request waits; undefined once it goes on. */
export type TellWaiting = (waiting: Waiting | undefined) => void

/** Spends the OTP, or resumes its session when this very browser spent it before. Waits for as long as it takes. */
export function redeem(signer: Signer, root: URL, body: RedeemBody, tell: TellWaiting): Promise<Answer<SessionAnswer>> {
  return askUntilAnswered(signer, new URL('play/redeem', root), { operation: 'redeem', body: JSON.stringify(body) }, tell)
}

/** Makes this page the session's newest: after a reload, or when the viewer chose to play here. */
export function openPage(signer: Signer, root: URL, session: string, tell: TellWaiting): Promise<Answer<SessionAnswer>> {
  return askUntilAnswered(signer, new URL(`play/${session}/page`, root), { operation: 'page', session, body: '{}' }, tell)
}

/** One beat. Undefined: the server did not answer, or not now; the next beat makes up for it. */
export async function sendBeat(signer: Signer, root: URL, session: string, beat: Beat): Promise<Refusal | undefined> {
  const asked: Asked = { operation: 'beat', session, body: JSON.stringify(beat) }
  for (let proofsRefused = 0; ; proofsRefused++) {
    const refused = await ask(signer, new URL(`play/${session}/beat`, root), asked)
    if ('value' in refused) return undefined
    const next = nextStep(refused, { proofsRefused, failures: 0 })
    if (next.step !== 'sign-anew') return next.step === 'stop' && next.refusal.code !== 'network' ? next.refusal : undefined
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
  const asked = askedBy(url.href, session)
  if (!asked) return url.href
  try {
    const answer = await fetch(url, { headers: { 'Reelgate-Proof': await signer.sign(asked) }, cache: 'no-store' })
    signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
    return answer.ok ? await dataUrl(await answer.blob()) : undefined
  } catch {
    return undefined
  }
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

async function askUntilAnswered(signer: Signer, url: URL, asked: Asked, tell: TellWaiting): Promise<Answer<SessionAnswer>> {
  let proofsRefused = 0
  let failures = 0
  while (true) {
    const outcome = await ask(signer, url, asked)
    if ('value' in outcome) {
      tell(undefined)
      return isSessionAnswer(outcome.value) ? { ok: true, value: outcome.value } : { ok: false, refusal: { code: 'internal' } }
    }
    const next: NextStep = nextStep(outcome, { proofsRefused, failures })
    if (next.step === 'stop') return { ok: false, refusal: next.refusal }
    if (next.step === 'sign-anew') {
      proofsRefused++
      continue
    }
    proofsRefused = 0
    failures = next.waiting.code === 'network' ? failures + 1 : 0
    tell(offlineOr(next.waiting))
    await waitFor(next.waitMs, next.waiting)
  }
}

async function ask(signer: Signer, url: URL, asked: Asked): Promise<Refused | { value: unknown }> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      body: asked.body,
      headers: { 'Content-Type': 'application/json', 'Reelgate-Proof': await signer.sign(asked) },
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
    const text = await answer.text()
    if (answer.ok) return { value: text === '' ? undefined : JSON.parse(text) }
    return { status: answer.status, retryAfter: answer.headers.get('Retry-After'), body: text }
  } catch {
    return { status: 0, retryAfter: null, body: '' } // no connection, cut off, or too slow: asking again is safe, redeem repeats itself
  }
}

/** What the viewer reads while nobody answers: whether it is the line or the server. */
export function offlineOr(waiting: Waiting): Waiting {
  return waiting.code === 'network' && !navigator.onLine ? { code: 'offline' } : waiting
}

/** Resolves after `waitMs`, or at once when the connection is back and that is what was missing, or when `signal` ends it. */
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
