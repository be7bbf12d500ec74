import { Readable } from 'node:stream'
import type { Actor } from '../audit/audit-log.ts'
import { newToken } from '../crypto/secret.ts'
import { findSealedSource } from '../encode/encode-deps.ts'
import { extractPostersAt, type Poster } from '../encode/extract-posters.ts'
import { findGeneration, findPlayedGeneration } from '../encode/generation-store.ts'
import { removeImage, renderPosterSizes, type SealedImage, sealImage } from '../encode/image.ts'
import { MediaFailure } from '../encode/media-failure.ts'
import { Failure } from '../errors.ts'
import { createFairSemaphore, type FairSemaphore } from '../jobs/fair-semaphore.ts'
import { limitBytes } from '../limit-bytes.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type AttachmentDeps, assertVideoExists, storeAttachment, uploadTooLarge } from './attachment.ts'

export type PosterDeps = AttachmentDeps & {
  sandbox: Sandbox
  /** A folder for images while they are processed. */
  tmp: string
  posterRenderer: FairSemaphore
  /** Whether the disk has space for that many more bytes. */
  hasRoom(forBytes: number): Promise<boolean>
}

/**
 * Limits how many posters are rendered concurrently: each uses the processor briefly, and videos are encoded at the same time.
 */
export function createPosterRenderer(): FairSemaphore {
  const fullMessage = 'Too many posters of this account are waiting to be rendered. Try again in a moment.'
  return createFairSemaphore({ slots: 2, slotsPerAccount: 1, queue: { maxLength: 20, fullMessage } })
}

const MAX_POSTER_BYTES = 10 * 2 ** 20

/**
 * Receives the image of a poster, sealed and in constant memory. The caller must add or discard it.
 * @throws Failure `too-large`; `unavailable` when too little disk space would be left
 */
export async function receivePoster({ tmp, hasRoom }: PosterDeps, bytes: AsyncIterable<Buffer>): Promise<SealedImage> {
  if (!(await hasRoom(MAX_POSTER_BYTES)))
    throw new Failure('unavailable', 'The disk of this server has no room for this image. Try again when there is space.')
  return sealImage(tmp, Readable.from(limitBytes(bytes, MAX_POSTER_BYTES, () => uploadTooLarge('A poster', MAX_POSTER_BYTES))))
}

type NewPoster = { accountId: string; by: Actor; videoId: string; image: SealedImage }

export type StoredPoster = { id: number; createdAtS: number; widthPx: number; heightPx: number; sizeBytes: number }

/**
 * Makes an image the video's poster; it replaces the previous one. Durable when it resolves.
 * @throws Failure `invalid` when it is not an image; `not-found` when the account has no such video; `unavailable` when too many
 *   posters of the account are waiting
 */
export async function addPoster(deps: PosterDeps, { accountId, by, videoId, image }: NewPoster): Promise<StoredPoster[]> {
  try {
    return await storePoster(
      deps,
      { accountId, by, videoId },
      await deps.posterRenderer(accountId, () => renderPosterSizes(deps.sandbox, image)),
    )
  } finally {
    await removeImage(image)
  }
}

/**
 * Makes a frame of the video its poster.
 * @throws Failure `not-found` when the account has no such video; `conflict` when it is not examined yet or has no picture; `invalid`
 *   for a time outside it
 */
export async function addPosterAt(
  deps: PosterDeps,
  { timeS, ...request }: Omit<NewPoster, 'image'> & { timeS: number },
): Promise<StoredPoster[]> {
  const { accountId, videoId } = request
  await assertVideoExists(deps, accountId, videoId)
  const played = await findPlayedGeneration(deps.db, videoId)
  const generation = played && (await findGeneration(deps.db, { videoId, generation: played.generation }))
  const source = await findSealedSource(deps, videoId)
  if (!generation || !source)
    throw new Failure('conflict', 'The file of this video was not examined yet. Choose a frame once the video is being encoded.')
  const { plan } = generation
  if (!plan.videoTrack) throw new Failure('conflict', 'This file has audio only. Upload an image as its poster.')
  if (!(timeS >= 0 && timeS < plan.durationS))
    throw new Failure(
      'invalid',
      `time is a number of seconds from 0 to below ${plan.durationS.toFixed(1)}, the length of the video.`,
    )
  const sizes = await deps.posterRenderer(accountId, () => extractPostersAt(deps.sandbox, source, { plan, timeS }).catch(noFrame))
  return storePoster(deps, request, sizes)
}

function noFrame(error: unknown): never {
  throw error instanceof MediaFailure ? new Failure('conflict', error.message, { cause: error }) : error
}

async function storePoster(deps: PosterDeps, { accountId, by, videoId }: Omit<NewPoster, 'image'>, sizes: readonly Poster[]) {
  const files = sizes.map(({ jpeg, ...size }) => ({ ...size, bytes: jpeg, token: newToken() }))
  const stored = await storeAttachment(deps, { accountId, by, slot: { videoId, type: 'poster', language: null }, files })
  return stored.map((file, index) => ({
    ...file,
    widthPx: sizes[index]?.widthPx ?? 0,
    heightPx: sizes[index]?.heightPx ?? 0,
    sizeBytes: sizes[index]?.jpeg.length ?? 0,
  }))
}
