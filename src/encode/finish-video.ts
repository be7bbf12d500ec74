import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Claim } from '../jobs/claims.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { findGenerationWithKey } from './encode-deps.ts'
import { type FailDeps, isSourceIntact, settleFailure, sourceChanged } from './fail-video.ts'
import { countSegments, finishGeneration, renditionSizes } from './generation-store.ts'
import { type ReplaceDeps, replaceGeneration } from './next-generation.ts'
import { plannedSegmentCount } from './plan.ts'

/** Checks the source once more, and records that every rendition is complete. */
export async function finishVideo(deps: FailDeps & ReplaceDeps, key: GenerationKey, claim: Claim, signal: AbortSignal) {
  const { videoId } = key
  const video = await findGenerationWithKey(deps, key)
  if (!video) return // deleted meanwhile
  if (!(await isSourceIntact(deps, videoId, signal))) return settleFailure(deps, videoId, sourceChanged(), claim.isHeld)
  const missing = plannedSegmentCount(video.plan) - (await countSegments(deps.slowQueryDb, video))
  if (missing !== 0) throw new Error(`${missing} segments of a video are missing although all its chunks are done`)
  const sizes = await renditionSizes(deps.slowQueryDb, video)
  const segmentBytes = sizes.values().reduce((sum, sizeBytes) => sum + sizeBytes, 0)
  const removeReplaced = await claim.settle(async (tx) => {
    const removeReplaced = await replaceGeneration(deps, tx, video)
    const isFinished = await finishGeneration(tx, video, { segmentBytes, nowS: deps.wallNowS() })
    // The owner of a video that was complete before has had this event.
    if (isFinished && !removeReplaced) await addVideoEvents(tx, 'video:readyall', [videoId])
    return removeReplaced
  })
  await removeReplaced?.()
}
