import { drawnPostersOf, insertDrawnPosters, type NewPoster } from '../catalogue/poster-store.ts'
import { sealBlob } from '../protect/sealed-blob.ts'
import { newToken } from '../protect/secret.ts'
import { putBlob, removeBlobs } from '../storage/folder.ts'
import { makePosters } from './draw-posters.ts'
import type { EncodeDeps } from './film-work.ts'
import type { OpenFilm } from './publication.ts'
import type { SealedSource } from './sandbox.ts'

/** Gives a film its two drawn posters if it has none; a film without a picture, or one that shows nothing, goes without. */
export async function addPosters(deps: EncodeDeps, film: OpenFilm, source: SealedSource, signal: AbortSignal): Promise<void> {
  if (!film.plan.picture || (await drawnPostersOf(deps.db, film)).length > 0) return
  const made = await makePosters(deps.sandbox, source, film.plan, signal).catch((error) => {
    signal.throwIfAborted()
    deps.log.warn({ err: error, videoId: film.videoId }, 'a film got no poster')
    return []
  })
  const posters: NewPoster[] = []
  for (const { widthPx, heightPx, jpeg } of made) {
    const token = newToken()
    const blob = `${film.videoId}/${token}.sealed`
    await putBlob(deps.folders.posters, blob, sealBlob(film.contentKey, blob, jpeg))
    posters.push({ videoId: film.videoId, widthPx, heightPx, token, blob, sizeBytes: jpeg.length, createdAtS: deps.wallNowS() })
  }
  // Looked at again where it counts: another run may have been faster, or the film begun anew under another key.
  const isWanted = await deps.write((tx) => insertDrawnPosters(tx, film, posters))
  if (!isWanted) for (const { blob } of posters) await removeBlobs(deps.folders.posters, blob)
}
