import { moveStatus } from '../catalogue/status.ts'
import { newContentKey, wrapContentKey } from '../crypto/content-key.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import { planChunks } from './chunk-plan.ts'
import { addChunks } from './chunk-queue.ts'
import { type EncodeDeps, findSealedSource } from './encode-deps.ts'
import { encoderFingerprint } from './encoder.ts'
import { failVideo } from './fail-video.ts'
import { insertGeneration } from './generation-store.ts'
import { planVideo } from './grid.ts'
import { MediaFailure } from './media-failure.ts'
import type { Plan } from './plan.ts'
import { probeSource } from './probe.ts'

const FIRST_GENERATION = 1

/** From a source to its plan: probe, ladder, grid, content key and chunks, in one transaction. A source that is not media fails the video. */
export async function examineSource(deps: EncodeDeps, videoId: string, signal: AbortSignal): Promise<void> {
  const source = await findSealedSource(deps, videoId)
  if (!source) return // deleted meanwhile
  await deps.write((tx) => moveStatus(tx, videoId, 'Processing'))
  const plan = await planSource(deps, source, signal)
  if (plan instanceof MediaFailure) return failVideo(deps, { videoId, error: plan, signal })
  const key = { videoId, generation: FIRST_GENERATION }
  await deps.write(async (tx) => {
    const wrappedContentKey = wrapContentKey(deps.masterKey, videoId, FIRST_GENERATION, newContentKey())
    const encoder = encoderFingerprint(deps.sandbox)
    const isInserted = await insertGeneration(tx, { ...key, wrappedContentKey, plan, encoder, createdAtS: deps.wallNowS() })
    if (isInserted) await addChunks(tx, deps.chunkQueue, key, planChunks(plan))
  })
}

async function planSource(deps: EncodeDeps, source: SealedSource, signal: AbortSignal): Promise<Plan | MediaFailure> {
  try {
    return planVideo(await probeSource(deps.sandbox, source, signal))
  } catch (error) {
    if (error instanceof MediaFailure) return error
    throw error
  }
}
