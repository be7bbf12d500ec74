import type { Readable } from 'node:stream'
import type { Actor } from '../audit/audit-log.ts'
import { newToken } from '../crypto/secret.ts'
import { removeImage, renderPosterSizes, type SealedImage, sealImage } from '../encode/image.ts'
import type { Sandbox } from '../encode/sandbox.ts'
import { Failure } from '../errors.ts'
import { createFairSemaphore, type FairSemaphore } from '../jobs/fair-semaphore.ts'
import { limitBytes } from '../storage/limit-bytes.ts'
import { type AttachmentDeps, storeAttachment } from './attachment.ts'

export type PosterDeps = AttachmentDeps & {
  sandbox: Sandbox
  posterRenderer: FairSemaphore
  /** Whether the disk has room for so many bytes more. */
  hasRoom(forBytes: number): Promise<boolean>
}

/** A picture costs the processor for a moment, and videos are encoded beside it. */
export function createPosterRenderer(): FairSemaphore {
  const refusal = 'As many pictures of this account as may wait are waiting to be drawn. Try again in a moment.'
  return createFairSemaphore({ places: 2, placesOfOne: 1, line: { longest: 20, refusal } })
}

const MAX_POSTER_BYTES = 10 * 2 ** 20
const NO_ROOM = new Failure('unavailable', 'The disk of this server has no room for this picture. Try again when there is space.')

/**
 * Takes in the picture of a poster, sealed and in constant memory. Whoever calls adds or discards it.
 * @throws Failure `too-large`; `unavailable` when the disk would be left with too little
 */
export async function receivePoster({ folders, hasRoom }: PosterDeps, bytes: Readable): Promise<SealedImage> {
  if (!(await hasRoom(MAX_POSTER_BYTES))) throw NO_ROOM
  return sealImage(folders.posters.tmp, limitBytes(bytes, MAX_POSTER_BYTES, 'A poster'))
}

export const discardPoster = removeImage

/**
 * Makes a picture the video's poster, in place of the ones before. Durable when it resolves.
 * @returns a file for each size
 * @throws Failure `invalid` when it is no picture; `not-found` when the account has no such video; `unavailable` when too many
 *   of its pictures wait
 */
export async function addPoster(deps: PosterDeps, accountId: string, by: Actor, videoId: string, image: SealedImage) {
  try {
    const sizes = await deps.posterRenderer(accountId, () => renderPosterSizes(deps.sandbox, image))
    const added = sizes.map(({ jpeg, ...size }) => ({ ...size, bytes: jpeg, token: newToken() }))
    const stored = await storeAttachment(deps, accountId, by, { videoId, type: 'poster', language: null }, added)
    return stored.map((file, index) => ({
      ...file,
      widthPx: sizes[index]?.widthPx ?? 0,
      heightPx: sizes[index]?.heightPx ?? 0,
      sizeBytes: sizes[index]?.jpeg.length ?? 0,
    }))
  } finally {
    await discardPoster(image)
  }
}
