import { dubIdOf, listDubs, updateDub } from '../catalogue/dub-store.ts'
import { renewMp4 } from '../catalogue/file-store.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { hideExtractedPosters, listGenerationBlobs, publishExtractedPosters } from '../catalogue/poster-store.ts'
import { addSize } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { findSource, setDuplicateOf } from '../ingest/source-store.ts'
import type { Signals } from '../signals/signals.ts'
import { DAY_S } from '../time.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { reopenChunk } from './chunk-store.ts'
import { listDamagedChunks } from './damage-store.ts'
import type { VideoDeps } from './encode-deps.ts'
import type { RemovedFiles } from './fail-video.ts'
import {
  alignSource,
  findGeneration,
  type KeptGeneration,
  keepGeneration,
  listKept,
  playGeneration,
  releaseKept,
  removeGeneration,
  removeUnusedSource,
} from './generation-store.ts'
import { findAudioTrack } from './plan.ts'

/** How long what was replaced is kept. */
const KEPT_S = 7 * DAY_S

export type ExchangeDeps = Pick<VideoDeps, 'wallNowS' | 'folders' | 'log'> & { signals: Pick<Signals, 'send'> }

/** By what a video came to play another generation, and the size of the segments of the one that it played. */
type Exchange = { by: 'replace' | 'trim' | 'undo'; playedBytes: number }

/**
 * Makes a video play another complete generation, in the caller's transaction. The one that it played is kept, with its key: its
 * sessions go on, and it can play again.
 * @returns what is to be done after the commit
 */
export async function exchange(
  deps: ExchangeDeps,
  tx: Db,
  { videoId, generation }: GenerationKey,
  { by, playedBytes }: Exchange,
): Promise<() => Promise<void>> {
  const nowS = deps.wallNowS()
  const video = await tx
    .selectFrom('video')
    .select(['generation', 'sourceNumber'])
    .where('id', '=', videoId)
    .executeTakeFirstOrThrow()
  const [old, next] = [
    { videoId, generation: video.generation },
    { videoId, generation },
  ]
  const [last] = await listKept(tx, videoId)
  const keptUntilS = Math.max(nowS + KEPT_S, (last?.keptUntilS ?? 0) + 1) // the order of undo, also where the clock has gone back
  await keepGeneration(tx, old, { keptUntilS, keptBy: by, segmentBytes: playedBytes })
  await hideExtractedPosters(tx, old)
  await releaseKept(tx, next)
  if (by === 'replace') await alignSource(tx, next)
  await playGeneration(tx, next)
  const source = await findSource(tx, videoId)
  if (source && source.number !== video.sourceNumber) await setDuplicateOf(tx, videoId, source.sha256)
  await publishExtractedPosters(tx, next)
  await settleDubs(tx, next)
  for (const chunk of await listDamagedChunks(tx, next)) await reopenChunk(tx, chunk)
  const best = (await findGeneration(tx, next))?.plan.videoTrack?.renditions[0]
  const mp4 = await renewMp4(tx, { videoId, createdAtS: nowS, widthPx: best?.widthPx, heightPx: best?.heightPx })
  await addVideoEvents(tx, 'video:replaced', [videoId], { by })
  return async () => {
    await deps.signals.send('work-cancelled', { videoIds: [videoId], work: 'mp4' })
    if (mp4 !== undefined) await deps.folders.files.retire(mp4)
    for (const work of ['encode', 'mp4', 'storyboard', 'dub'] as const) void deps.signals.send('work-queued', work)
    deps.log.info({ videoId, generation, by }, 'video: replaced')
  }
}

/** An added track that what plays now does not have, because it was added later, is encoded for it. */
async function settleDubs(tx: Db, played: GenerationKey): Promise<void> {
  const { videoId } = played
  const { plan, sourceNumber = 0 } = (await findGeneration(tx, played)) ?? {}
  for (const dub of await listDubs(tx, { videoId, ofSource: sourceNumber })) {
    const isPlayed = plan && findAudioTrack(plan, dubIdOf(dub)) !== undefined
    if (dub.problem === null && isPlayed !== (dub.encoded === 1))
      await updateDub(tx, dub, { encoded: Number(isPlayed), attempts: 0 })
  }
}

/** Removes a kept generation with its key, and the file that only it was made from. Its sessions are the caller's to end. */
export async function removeKept(tx: Db, { sourceNumber, segmentBytes, ...key }: KeptGeneration): Promise<RemovedFiles> {
  const { videoId, generation } = key
  const posters = await listGenerationBlobs(tx, key)
  await removeGeneration(tx, key)
  await addSize(tx, videoId, -segmentBytes)
  return { videoId, generation, posters, sources: await removeUnusedSource(tx, videoId, sourceNumber) }
}
