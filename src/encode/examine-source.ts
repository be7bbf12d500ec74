import { moveStatus } from '../catalogue/status.ts'
import { newContentKey, wrapContentKey } from '../crypto/content-key.ts'
import type { Claim } from '../jobs/claims.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import { planChunks } from './chunk-plan.ts'
import { insertChunks } from './chunk-store.ts'
import { findSealedSource } from './encode-deps.ts'
import { encoderFingerprint } from './encoder.ts'
import { type FailDeps, failVideo } from './fail-video.ts'
import { insertGeneration } from './generation-store.ts'
import { planVideo } from './grid.ts'
import { MediaFailure } from './media-failure.ts'
import type { Plan } from './plan.ts'
import { probeSource } from './probe.ts'

const FIRST_GENERATION = 1

/** From a source to its plan: probe, ladder, grid, content key and chunks, in one transaction. A source that is not media fails the video. */
export async function examineSource(deps: FailDeps & { sandbox: Sandbox }, videoId: string, claim: Claim, signal: AbortSignal) {
  const source = await findSealedSource(deps, videoId)
  if (!source) return // deleted meanwhile
  await deps.write((tx) => moveStatus(tx, videoId, 'Processing'))
  const plan = await planSource(deps.sandbox, source, signal)
  if (plan instanceof MediaFailure) return failVideo(deps, { videoId, error: plan, fence: claim.isHeld, signal })
  const key = { videoId, generation: FIRST_GENERATION }
  await claim.settle(async (tx) => {
    const wrappedContentKey = wrapContentKey(deps.masterKey, videoId, FIRST_GENERATION, newContentKey())
    const encoder = encoderFingerprint(deps.sandbox)
    const isInserted = await insertGeneration(tx, { ...key, wrappedContentKey, plan, encoder, createdAtS: deps.wallNowS() })
    if (isInserted) await insertChunks(tx, key, planChunks(plan))
  })
}

async function planSource(sandbox: Sandbox, source: SealedSource, signal: AbortSignal): Promise<Plan | MediaFailure> {
  try {
    return planVideo(await probeSource(sandbox, source, signal))
  } catch (error) {
    if (error instanceof MediaFailure) return error
    throw error
  }
}
