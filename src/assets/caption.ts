import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Actor } from '../audit/audit-log.ts'
import { timelineStartMs } from '../catalogue/chapters-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { createFairSemaphore, type FairSemaphore } from '../jobs/fair-semaphore.ts'
import { limitBytes } from '../limit-bytes.ts'
import { type AttachmentDeps, storeAttachment, uploadTooLarge } from './attachment.ts'
import type { WebVttRequest, WebVttResult } from './webvtt-worker.ts'

export type CaptionDeps = AttachmentDeps & {
  captionParser: FairSemaphore
}

/** Limits how many captions are parsed concurrently: each takes a thread, and many times the memory of the file. */
export function createCaptionParser(): FairSemaphore {
  const fullMessage = 'Too many captions of this account are waiting to be read. Try again in a moment.'
  return createFairSemaphore({ slots: 1, slotsPerAccount: 1, queue: { maxLength: 20, fullMessage } })
}

export const MAX_CAPTION_BYTES = 5 * 2 ** 20
/** Language, script and region of BCP 47. */
const LANGUAGE = /^[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|\d{3}))?$/

/** @returns the language in the form that is stored: lower case, with `-` @throws Failure `invalid` */
export function parseLanguage(text: string): string {
  const language = text.trim().toLowerCase().replaceAll('_', '-')
  if (LANGUAGE.test(language)) return language
  throw new Failure('invalid', 'language must be a code such as en, de or pt-BR.')
}

/** Receives a file of captions. @throws Failure `too-large` */
export async function receiveCaption(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const tooLong = () => uploadTooLarge('A file of captions', MAX_CAPTION_BYTES)
  return Buffer.concat(await Array.fromAsync(limitBytes(bytes, MAX_CAPTION_BYTES, tooLong)))
}

/** `startS`: where the video begins as it plays that the times are of; default: as it plays here. */
type NewCaption = { accountId: string; by: Actor; videoId: string; language: string; text: Buffer; startS?: number }

/**
 * Adds captions in a language to a video, with the times of the video as it plays; they replace its previous ones in that language. Durable when it resolves.
 * @throws Failure `invalid`, naming the line that is wrong; `not-found` when the account has no such video; `unavailable` when
 *   too many captions of the account are waiting
 */
export async function addCaption(
  deps: CaptionDeps,
  { accountId, by, videoId, language, text, startS }: NewCaption,
): Promise<{ id: number; createdAtS: number; sizeBytes: number }> {
  const video = await findVideo(deps.db, accountId, videoId)
  if (!video) throw videoNotFound()
  const laterMs = timelineStartMs(startS === undefined ? video : { timelineStartS: startS })
  const bytes = await deps.captionParser(accountId, () => parseInWorker(text, language, laterMs))
  const slot = { videoId, type: 'caption', language } as const
  const [stored] = await storeAttachment(deps, { accountId, by, slot, files: [{ bytes }] })
  if (!stored) throw new Error('stored captions have no id')
  return { ...stored, sizeBytes: bytes.length }
}

/** In a thread of its own: the largest files take half a second, and no viewer must wait for that. @throws Failure `invalid` */
export async function parseInWorker(captions: Buffer, language: string, laterMs = 0): Promise<Buffer> {
  const workerData: WebVttRequest = { captions, language, laterMs }
  const worker = new Worker(new URL('./webvtt-worker.ts', import.meta.url), { workerData })
  const [result]: WebVttResult[] = await once(worker, 'message')
  if (!result) throw new Error('the thread that parses captions returned nothing')
  if ('problem' in result) throw new Failure('invalid', result.problem)
  return Buffer.from(result.webVtt)
}
