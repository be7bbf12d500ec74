import { readFile } from 'node:fs/promises'
import { openFileKey } from '../catalogue/file-key.ts'
import { findPublicPoster } from '../catalogue/poster-store.ts'
import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import type { MasterKey } from '../protect/master-key.ts'
import { openBlob } from '../protect/sealed-blob.ts'
import { type BlobFolder, blobPath } from '../storage/folder.ts'

export type ShownPosterDeps = { db: Db; masterKey: MasterKey; posters: BlobFolder }

/** A poster's JPEG by the token in its address. @throws Failure `not-found` when it is unknown, deleted or kept private */
export async function openPoster({ db, masterKey, posters }: ShownPosterDeps, token: string): Promise<Buffer> {
  const poster = await findPublicPoster(db, token)
  const key = poster && openFileKey(masterKey, poster)
  if (!poster || !key) throw new Failure('not-found', 'There is no such poster.')
  try {
    return openBlob(key, poster.blob, await readFile(blobPath(posters, poster.blob)))
  } catch (error) {
    // Deleted meanwhile; otherwise the disk has lost it.
    if (!(await findPublicPoster(db, token))) throw new Failure('not-found', 'There is no such poster.')
    throw error
  }
}
