import { listExtractedPosterBlobs, publishExtractedPosters } from '../catalogue/poster-store.ts'
import { newContentKey, wrapContentKey } from '../crypto/content-key.ts'
import type { Db } from '../db/database.ts'
import { removeBlobs } from '../storage/folder.ts'
import { planChunks } from './chunk-plan.ts'
import { addChunks } from './chunk-queue.ts'
import { endRun, isCurrentRun, type VideoChunk } from './chunk-store.ts'
import type { EncodeDeps } from './encode-deps.ts'
import { encoderFingerprint } from './encoder.ts'
import { hasLaterGeneration, insertGeneration, isFinished, removeGeneration, switchToGeneration } from './generation-store.ts'
import type { GenerationWithKey } from './publication.ts'

/**
 * Starts the next generation of a video, with a new content key and new paths: segments of two encoders must not be mixed, and a
 * segment that is encoded again with other bytes must not be served under the path and key of a damaged one. An unfinished generation is removed, and its sessions end, in the same transaction. A finished
 * one plays, except for its damaged segments, until the next is finished.
 */
export async function startNextGeneration(
  deps: EncodeDeps,
  video: GenerationWithKey,
  chunk: VideoChunk,
  reason: string,
): Promise<void> {
  const { videoId } = video
  const oldPosters = await listExtractedPosterBlobs(deps.db, video)
  const change = await deps.write(async (tx) => {
    if (!(await isCurrentRun(tx, chunk))) return undefined // another run has handled this already
    if (await isFinished(tx, video)) {
      await endRun(tx, chunk, 'failed')
      if (await hasLaterGeneration(tx, video)) return undefined
      await insertNext(deps, tx, video)
      return 'started'
    }
    await removeGeneration(tx, video)
    await insertNext(deps, tx, video)
    await deps.sessions.end(tx, [videoId], 'video-replaced')
    return 'replaced'
  })
  if (!change) return
  deps.log.info({ videoId, generation: video.generation + 1, reason }, 'video: next generation started')
  if (change === 'replaced') await cleanUpReplaced(deps, video, oldPosters)
}

async function insertNext(deps: EncodeDeps, tx: Db, { videoId, plan, ...video }: GenerationWithKey): Promise<void> {
  const generation = video.generation + 1
  await insertGeneration(tx, {
    videoId,
    generation,
    plan,
    wrappedContentKey: wrapContentKey(deps.masterKey, videoId, generation, newContentKey()),
    encoder: encoderFingerprint(deps.sandbox),
    createdAtS: deps.wallNowS(),
  })
  await addChunks(tx, deps.chunkQueue, { videoId, generation }, planChunks(plan))
}

/**
 * Makes this complete generation the one that the video plays, in the transaction that marks it finished, and removes the one before.
 * @returns the clean-up after the commit; undefined when the video plays this generation already
 */
export async function replaceGeneration(
  deps: EncodeDeps,
  tx: Db,
  video: GenerationWithKey,
): Promise<(() => Promise<void>) | undefined> {
  const { videoId } = video
  const oldGeneration = await switchToGeneration(tx, video)
  if (oldGeneration === undefined) return undefined
  const old = { videoId, generation: oldGeneration }
  const oldPosters = await listExtractedPosterBlobs(tx, old)
  await removeGeneration(tx, old)
  await publishExtractedPosters(tx, video)
  await deps.sessions.end(tx, [videoId], 'video-replaced')
  return () => cleanUpReplaced(deps, old, oldPosters)
}

async function cleanUpReplaced(
  deps: EncodeDeps,
  { videoId, generation }: Pick<GenerationWithKey, 'videoId' | 'generation'>,
  posters: readonly string[],
): Promise<void> {
  deps.sessions.endInMemory([videoId], 'video-replaced')
  await removeBlobs(deps.folders.segments, `${videoId}/${generation}`)
  for (const blob of posters) await removeBlobs(deps.folders.posters, blob)
}
