import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Claim } from '../jobs/claims.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { findGenerationWithKey } from './encode-deps.ts'
import { type FailDeps, isSourceIntact, settleFailure, sourceChanged } from './fail-video.ts'
import { countSegments, findPlayedGeneration, finishGeneration, renditionSizes } from './generation-store.ts'
import { type ReplaceDeps, replaceGeneration } from './next-generation.ts'
import { plannedSegmentCount } from './plan.ts'

/** Checks the source once more, and records that every rendition is complete. */
export async function finishVideo(deps: FailDeps & ReplaceDeps, key: GenerationKey, claim: Claim, signal: AbortSignal) {
  const { videoId } = key
  const video = await findGenerationWithKey(deps, key)
  if (!video) return // deleted meanwhile
  if (!(await isSourceIntact(deps, video, signal))) return settleFailure(deps, video, sourceChanged(), claim.isHeld)
  const missing = plannedSegmentCount(video.plan) - (await countSegments(deps.slowQueryDb, video))
  if (missing !== 0) throw new Error(`${missing} segments of a video are missing although all its chunks are done`)
  const segmentBytes = sum(await renditionSizes(deps.slowQueryDb, video))
  const played = (await findPlayedGeneration(deps.db, videoId))?.generation ?? 0
  const playedBytes = sum(await renditionSizes(deps.slowQueryDb, { videoId, generation: played }))
  const removeReplaced = await claim.settle(async (tx) => {
    const removeReplaced = await replaceGeneration(deps, tx, video, playedBytes)
    const isFinished = await finishGeneration(tx, video, { segmentBytes, nowS: deps.wallNowS() })
    // The owner of a video that was complete before has had this event.
    if (isFinished && !removeReplaced) await addVideoEvents(tx, 'video:readyall', [videoId])
    return removeReplaced
  })
  await removeReplaced?.()
  void deps.signals.send('work-queued', 'storyboard')
}

function sum(sizes: ReadonlyMap<number, number>): number {
  return sizes.values().reduce((total, sizeBytes) => total + sizeBytes, 0)
}
