import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Db } from '../db/database.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import { CHUNK_KINDS, type ChunkKind } from './chunk-plan.ts'
import { reopenChunk } from './chunk-store.ts'
import { findFinishedChunk } from './damage-store.ts'
import { findGeneration, findLaterGeneration } from './generation-store.ts'
import { assertEncodable, encodedAlready, getReadyVideo, type RequestedDeps } from './next-generation.ts'
import { AAC_FRAMES_PER_SEGMENT, audioTracksOf, type Plan } from './plan.ts'

/** Has what plays at a position of an account's video encoded again. */
export type EncodePartAgain = (
  part: { accountId: string; videoId: string; positionS: number },
  alsoInTransaction: (tx: Db) => Promise<void>,
) => Promise<void>

/**
 * Has the chunks encoded again, of video and sound, that play at a position. They are compared with what is published, which plays
 * meanwhile: where the same bytes come out nothing changes, else the video gets its next generation.
 * @param alsoInTransaction the caller's record of it
 * @throws Failure `invalid` beyond the video's end; otherwise as `reencryptVideo`
 */
export async function encodePartAgain(
  deps: RequestedDeps,
  { videoId, positionS }: { videoId: string; positionS: number },
  alsoInTransaction: (tx: Db) => Promise<void>,
): Promise<void> {
  await getReadyVideo(deps.db, videoId)
  await assertEncodable(deps, videoId)
  await deps.write(async (tx) => {
    const key = await getReadyVideo(tx, videoId)
    const { plan } = (await findGeneration(tx, key)) ?? {}
    if (!plan) throw videoNotFound()
    if (positionS >= plan.durationS) throw new Failure('invalid', 'The video ends before this position.')
    const isReopened = (await findLaterGeneration(tx, key)) === undefined && (await reopenAt(tx, key, plan, positionS))
    if (!isReopened) throw encodedAlready()
    await alsoInTransaction(tx)
  })
  deps.log.info({ videoId, positionS }, 'video: a part is encoded again and compared')
  void deps.signals.send('work-queued', 'encode')
}

/** False: its chunks are being encoded. */
async function reopenAt(tx: Db, key: GenerationKey, plan: Plan, positionS: number): Promise<boolean> {
  let isReopened = false
  for (const kind of CHUNK_KINDS) {
    const segment = findSegmentAt(plan, kind, positionS)
    const chunk = segment && (await findFinishedChunk(tx, { ...key, ...segment }))
    if (chunk && (await reopenChunk(tx, chunk, true))) isReopened = true
  }
  return isReopened
}

/** Of the first rendition of its kind: all have the same chunks. */
function findSegmentAt(plan: Plan, kind: ChunkKind, positionS: number) {
  const { videoTrack } = plan
  if (kind === 'video') {
    const [rendition] = videoTrack?.renditions ?? []
    if (!videoTrack || !rendition) return undefined
    const { rateNum, rateDen, gopFrames, frameCount } = videoTrack
    const frame = Math.min(Math.floor((positionS * rateNum) / rateDen), frameCount - 1)
    return { renditionId: rendition.id, number: Math.floor(frame / gopFrames) }
  }
  const [track] = audioTracksOf(plan)
  if (!track) return undefined
  const frame = Math.min(Math.floor((positionS * AAC_RATE_HZ) / AAC_FRAME_SAMPLES), track.frameCount - 1)
  return { renditionId: track.renditionId, number: Math.floor(frame / AAC_FRAMES_PER_SEGMENT) }
}
