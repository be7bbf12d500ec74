import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { Worker } from 'node:worker_threads'
import type { Actor } from '../audit/audit-log.ts'
import { Failure } from '../errors.ts'
import { createFairSemaphore, type FairSemaphore } from '../jobs/fair-semaphore.ts'
import { limitBytes } from '../storage/limit-bytes.ts'
import { type AttachmentDeps, storeAttachment } from './attachment.ts'
import type { WebVttResult } from './webvtt-worker.ts'

export type CaptionDeps = AttachmentDeps & {
  captionParser: FairSemaphore
}

/** Reading takes a thread, and many times the memory of what is read. */
export function createCaptionParser(): FairSemaphore {
  const refusal = 'As many captions of this account as may wait are waiting to be read. Try again in a moment.'
  return createFairSemaphore({ places: 1, placesOfOne: 1, line: { longest: 20, refusal } })
}

const MAX_CAPTION_BYTES = 5 * 2 ** 20
/** Language, script and region of BCP 47. */
const LANGUAGE = /^[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|\d{3}))?$/

/** @returns the language as it is kept: lower case, with `-` @throws Failure `invalid` */
export function parseLanguage(text: string): string {
  const language = text.trim().toLowerCase().replaceAll('_', '-')
  if (LANGUAGE.test(language)) return language
  throw new Failure('invalid', 'language is a code such as en, de or pt-BR.')
}

/** Takes in a file of captions. @throws Failure `too-large` */
export async function receiveCaption(bytes: Readable): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of limitBytes(bytes, MAX_CAPTION_BYTES, 'A file of captions')) parts.push(part)
  return Buffer.concat(parts)
}

/**
 * Gives a video captions in a language, in place of those it had in it. Durable when it resolves.
 * @throws Failure `invalid`, naming the line that is wrong; `not-found` when the account has no such video; `unavailable` when
 *   too many of its captions wait
 */
export async function addCaption(
  deps: CaptionDeps,
  accountId: string,
  by: Actor,
  videoId: string,
  { language, text }: { language: string; text: Buffer },
) {
  const bytes = await deps.captionParser(accountId, () => parseInWorker(text))
  const [stored] = await storeAttachment(deps, accountId, by, { videoId, type: 'caption', language }, [{ bytes }])
  if (!stored) throw new Error('captions without a number')
  return { ...stored, sizeBytes: bytes.length, language }
}

/** In a thread of its own: the largest files take half a second, and no viewer must wait for that. @throws Failure `invalid` */
export async function parseInWorker(captions: Buffer): Promise<Buffer> {
  const worker = new Worker(new URL('./webvtt-worker.ts', import.meta.url), { workerData: captions })
  const [answer]: WebVttResult[] = await once(worker, 'message')
  if (!answer) throw new Error('the thread that reads captions has not answered')
  if ('wrong' in answer) throw new Failure('invalid', answer.wrong)
  return Buffer.from(answer.webVtt)
}
