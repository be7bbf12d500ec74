import { listExtractedPosters, publishExtractedPosters } from '../catalogue/poster-store.ts'
import { newContentKey, wrapContentKey } from '../crypto/content-key.ts'
import type { Db } from '../db/database.ts'
import { removeBlobs } from '../storage/folder.ts'
import { planChunks } from './chunk-plan.ts'
import { addChunks } from './chunk-queue.ts'
import { endRun, mayPublish, type VideoChunk } from './chunk-store.ts'
import type { EncodeDeps } from './encode-deps.ts'
import { encoderFingerprint } from './encoder.ts'
import { hasLaterGeneration, insertGeneration, isFinished, playGeneration, removeGeneration } from './generation-store.ts'
import type { OpenGeneration } from './publication.ts'

/**
 * Begins the next generation of a video, with a new content key and new paths: another encoder must not fill the gaps of the one that
 * began, nor may other bytes take the place of damaged ones. A half encoded generation goes, and sessions on it end, in the same
 * transaction; a finished one plays, as far as it is whole, until the next is finished, too.
 */
export async function restartGeneration(deps: EncodeDeps, video: OpenGeneration, run: VideoChunk, why: string): Promise<void> {
  const { videoId } = video
  const oldPosters = await listExtractedPosters(deps.db, video)
  const change = await deps.write(async (tx) => {
    if (!(await mayPublish(tx, run))) return undefined // another run was first
    if (await isFinished(tx, video)) {
      await endRun(tx, run, 'failed')
      if (await hasLaterGeneration(tx, video)) return undefined
      await insertNext(deps, tx, video)
      return 'begun'
    }
    await removeGeneration(tx, video)
    await insertNext(deps, tx, video)
    await deps.sessions.end(tx, [videoId], 'video-replaced')
    return 'replaced'
  })
  if (!change) return
  deps.log.info({ videoId, generation: video.generation + 1, why }, 'video: next generation begun')
  if (change === 'replaced') await removeReplaced(deps, video, oldPosters)
}

async function insertNext(deps: EncodeDeps, tx: Db, { videoId, plan, ...video }: OpenGeneration): Promise<void> {
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
 * Lets the video play this generation, now that it is whole, in the transaction that marks it finished; the one before goes.
 * @returns what is to be done after the commit; undefined when it plays this one already
 */
export async function replaceGeneration(
  deps: EncodeDeps,
  tx: Db,
  video: OpenGeneration,
): Promise<(() => Promise<void>) | undefined> {
  const { videoId } = video
  const generation = await playGeneration(tx, video)
  if (generation === undefined) return undefined
  const oldPosters = await listExtractedPosters(tx, { videoId, generation })
  await removeGeneration(tx, { videoId, generation })
  await publishExtractedPosters(tx, video)
  await deps.sessions.end(tx, [videoId], 'video-replaced')
  return () => removeReplaced(deps, { videoId, generation }, oldPosters)
}

async function removeReplaced(
  deps: EncodeDeps,
  { videoId, generation }: Pick<OpenGeneration, 'videoId' | 'generation'>,
  posters: readonly string[],
): Promise<void> {
  deps.sessions.onEnded([videoId], 'video-replaced')
  await removeBlobs(deps.folders.segments, `${videoId}/${generation}`)
  for (const blob of posters) await removeBlobs(deps.folders.posters, blob)
}
