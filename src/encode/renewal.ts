import { drawnPostersOf } from '../catalogue/poster-store.ts'
import type { Db } from '../db/database.ts'
import { newContentKey, wrapContentKey } from '../protect/content-key.ts'
import { removeBlobs } from '../storage/folder.ts'
import { planChunks } from './chunk-plan.ts'
import { addChunks } from './chunk-queue.ts'
import { type FilmChunk, mayPublish } from './chunk-store.ts'
import { encoderFingerprint } from './encoder.ts'
import { insertGeneration, removeGeneration } from './film-store.ts'
import type { EncodeDeps } from './film-work.ts'
import type { OpenFilm } from './publication.ts'

/**
 * Begins a half encoded film anew, as its next generation: another encoder must not fill the gaps of the one that began.
 * New content key, new paths; sessions on the old generation end in the same transaction.
 */
export async function renewGeneration(deps: EncodeDeps, film: OpenFilm, run: FilmChunk): Promise<void> {
  const { videoId, plan } = film
  const generation = film.generation + 1
  const oldPosters = await drawnPostersOf(deps.db, film)
  const renewed = await deps.write(async (tx: Db) => {
    if (!(await mayPublish(tx, run))) return false // another run of the film was first
    await removeGeneration(tx, film)
    await insertGeneration(tx, {
      videoId,
      generation,
      plan,
      wrappedContentKey: wrapContentKey(deps.masterKey, videoId, generation, newContentKey()),
      encoder: encoderFingerprint(deps.sandbox),
      createdAtS: deps.wallNowS(),
    })
    await addChunks(tx, deps.chunkQueue, videoId, generation, planChunks(plan))
    await deps.sessions.end(tx, [videoId], 'video-replaced')
    return true
  })
  if (!renewed) return
  deps.sessions.ended([videoId], 'video-replaced')
  deps.log.info({ videoId, generation }, 'the encoder has changed since this film was begun; it begins anew')
  await removeBlobs(deps.folders.segments, `${videoId}/${film.generation}`)
  for (const blob of oldPosters) await removeBlobs(deps.folders.posters, blob)
}
