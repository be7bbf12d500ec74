import { readFile } from 'node:fs/promises'
import { openFileKey } from '../catalogue/file-key.ts'
import { findPoster, listPosters } from '../catalogue/poster-store.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { openBlob } from '../crypto/sealed-blob.ts'
import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import { type BlobFolder, blobPath } from '../storage/folder.ts'

export type PublicPosterDeps = { db: Db; masterKey: MasterKey; posters: BlobFolder }

/** `isPublic`: anybody who has its address gets it. */
export type Poster = { jpeg: Buffer; isPublic: boolean }

/**
 * A poster's JPEG by the token in its address.
 * @param accountId who asks, where they are known: of a video whose `public` is 0 only its own account gets the posters
 * @throws Failure `not-found` when it is unknown, deleted or kept private
 */
export async function openPoster(deps: PublicPosterDeps, token: string, accountId?: string): Promise<Poster> {
  const { db, masterKey, posters } = deps
  const poster = await findShown(db, token, accountId)
  const key = poster && openFileKey(masterKey, poster)
  if (!poster || !key) throw noSuchPoster()
  try {
    const jpeg = openBlob(key, poster.blob, await readFile(blobPath(posters, poster.blob)))
    return { jpeg, isPublic: poster.public === 1 }
  } catch (error) {
    // Deleted meanwhile; otherwise the disk has lost it.
    if (!(await findShown(db, token, accountId))) throw noSuchPoster()
    throw error
  }
}

/** The main poster of a video as its own viewers see it, whether it is public or not. Undefined: it has none. */
export async function openMainPoster(
  deps: PublicPosterDeps,
  video: { videoId: string; accountId: string },
): Promise<Buffer | undefined> {
  const [main] = (await listPosters(deps.db, [video.videoId])).get(video.videoId) ?? []
  if (!main) return undefined
  return (await openPoster(deps, main.token, video.accountId)).jpeg
}

async function findShown(db: Db, token: string, accountId: string | undefined) {
  const poster = await findPoster(db, token)
  return poster?.public === 1 || poster?.accountId === accountId ? poster : undefined
}

function noSuchPoster(): Failure {
  return new Failure('not-found', 'There is no such poster.')
}
