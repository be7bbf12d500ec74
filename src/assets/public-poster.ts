import { openFileKey } from '../catalogue/file-key.ts'
import { findPosterByToken, isFirst, listEnabledPosters } from '../catalogue/poster-store.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { openBlob } from '../crypto/sealed-blob.ts'
import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import type { DamagedFiles } from './damaged-file.ts'

export type PublicPosterDeps = { db: Db; masterKey: MasterKey; posters: BlobStore; damagedFiles: DamagedFiles }

/** `isPublic`: everyone who has its address may see it. `isFinal`: false while a better one may take its place at the same address. */
type Poster = { jpeg: Buffer; isPublic: boolean; isFinal: boolean }

/**
 * A poster's JPEG by the token in its address.
 * @param accountId the account of the caller's API key, if any: posters of a video whose `public` is 0 are only for its own account
 * @throws Failure `not-found` when it is unknown, deleted or private; DamagedFile
 */
export async function openPoster(deps: PublicPosterDeps, token: string, accountId?: string): Promise<Poster> {
  const { db, masterKey, posters } = deps
  const poster = await findVisible(db, token, accountId)
  const key = poster && openFileKey(masterKey, poster)
  if (!poster || !key) throw posterNotFound()
  try {
    const jpeg = openBlob(key, poster.blob, await posters.read(poster.blob))
    return { jpeg, isPublic: poster.public === 1, isFinal: !isFirst(poster) || poster.storyboardMadeAtS !== null }
  } catch (error) {
    // Not found if it was deleted meanwhile; otherwise the disk has lost the file.
    if (!(await findVisible(db, token, accountId))) throw posterNotFound()
    throw await deps.damagedFiles.report({ kind: 'poster', videoId: poster.videoId, name: poster.blob }, error)
  }
}

/** The main poster of a video for its viewers, whether it is public or not. Undefined: it has none. */
export async function openMainPoster(deps: PublicPosterDeps, video: { videoId: string; accountId: string }) {
  const [main] = (await listEnabledPosters(deps.db, [video.videoId])).get(video.videoId) ?? []
  if (!main) return undefined
  return (await openPoster(deps, main.token, video.accountId)).jpeg
}

async function findVisible(db: Db, token: string, accountId: string | undefined) {
  const poster = await findPosterByToken(db, token)
  return poster?.public === 1 || poster?.accountId === accountId ? poster : undefined
}

function posterNotFound(): Failure {
  return new Failure('not-found', 'There is no such poster.')
}
