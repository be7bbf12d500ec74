import type { Readable } from 'node:stream'
import type { Sandbox } from '../encode/sandbox.ts'
import { drawPosterSizes, removePicture, type StillPicture, sealPicture } from '../encode/still-picture.ts'
import type { Gates } from '../jobs/gates.ts'
import { newToken } from '../protect/secret.ts'
import { type AdditionDeps, storeAddition } from './addition.ts'
import { atMost } from './at-most.ts'

export type PosterDeps = AdditionDeps & {
  sandbox: Sandbox
  /** A picture costs the processor for a moment, and films are encoded beside it. */
  drawing: Gates
}

const MAX_POSTER_BYTES = 10 * 2 ** 20

/** Takes in the picture of a poster, sealed and in constant memory. Whoever calls adds or discards it. @throws Failure `too-large` */
export async function receivePoster({ folders }: PosterDeps, bytes: Readable): Promise<StillPicture> {
  return sealPicture(folders.posters.tmp, atMost(bytes, MAX_POSTER_BYTES, 'A poster'))
}

export const discardPoster = removePicture

/**
 * Makes a picture the video's poster, in place of the ones before. Durable when it resolves.
 * @returns a file for each size
 * @throws Failure `invalid` when it is no picture; `not-found` when the account has no such video
 */
export async function addPoster(deps: PosterDeps, accountId: string, videoId: string, picture: StillPicture) {
  try {
    const sizes = await deps.drawing('posters', () => drawPosterSizes(deps.sandbox, picture))
    const added = sizes.map(({ jpeg, ...size }) => ({ ...size, bytes: jpeg, token: newToken() }))
    const stored = await storeAddition(deps, accountId, { videoId, type: 'poster', language: null }, added)
    return stored.map((file, index) => ({
      ...file,
      widthPx: sizes[index]?.widthPx ?? 0,
      heightPx: sizes[index]?.heightPx ?? 0,
      sizeBytes: sizes[index]?.jpeg.length ?? 0,
    }))
  } finally {
    await discardPoster(picture)
  }
}
