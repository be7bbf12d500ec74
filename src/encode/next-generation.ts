import type { EndVideoSessions } from '../catalogue/deletion.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { listGenerationBlobs, publishExtractedPosters } from '../catalogue/poster-store.ts'
import { findReplacement, removeReplacement, takeNumber } from '../catalogue/replacement-store.ts'
import { newContentKey, wrapContentKey } from '../crypto/content-key.ts'
import type { Db } from '../db/database.ts'
import { Failure, videoNotFound } from '../errors.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type CapacityDeps, chooseEncoder, isDecodableInParts } from './capacity.ts'
import { planChunks } from './chunk-plan.ts'
import { endRun, insertChunks, isCurrentRun, type VideoChunk } from './chunk-store.ts'
import { findGenerationWithKey, type VideoDeps } from './encode-deps.ts'
import { encoderFingerprint } from './encoder.ts'
import { exchange } from './exchange.ts'
import { isSourceIntact, removeGenerationFiles } from './fail-video.ts'
import {
  findGeneration,
  findLaterGeneration,
  findPlayedGeneration,
  insertGeneration,
  isFinished,
  removeGeneration,
  switchToGeneration,
} from './generation-store.ts'
import { findLostDubs, leaveOutDubs } from './lost-dubs.ts'
import type { GenerationWithKey } from './publication.ts'

/** For what replaces an encode of a video by another. */
export type ReplaceDeps = VideoDeps & CapacityDeps & { sandbox: Sandbox; endVideoSessions: EndVideoSessions }

/** The same where an owner asks for it. */
export type RequestedDeps = ReplaceDeps & {
  /** Whether the disk has room for the output of an encode. */
  hasRoom(): Promise<boolean>
}

/**
 * Starts the next generation of a video, with a new content key and new paths: segments of two encoders must not be mixed, and a
 * segment that is encoded again with other bytes must not be served under the path and key of a damaged one. An unfinished generation is removed, and its sessions end, in the same transaction. A finished
 * one plays, except for its damaged segments, until the next is finished.
 * @param made how the next one is encoded; missing: by the encoders that finish it first
 */
export async function startNextGeneration(
  deps: ReplaceDeps,
  video: GenerationWithKey,
  chunk: VideoChunk,
  reason: string,
  made?: Made,
): Promise<void> {
  const { videoId } = video
  const next = made ?? { encoder: await chooseEncoder(deps, video.plan) }
  const oldPosters = await listGenerationBlobs(deps.db, video)
  const lostDubs = await findLostDubs(deps, videoId, video.plan, new AbortController().signal)
  const change = await deps.write(async (tx) => {
    if (!(await isCurrentRun(tx, chunk))) return undefined // another run has handled this already
    if (await isFinished(tx, video)) await endRun(tx, chunk, 'failed')
    return addNextGeneration(deps, tx, video, { ...next, lostDubs })
  })
  if (!change) return
  deps.log.info({ videoId, generation: video.generation + 1, reason }, 'video: next generation started')
  if (change === 'replaced') await cleanUpReplaced(deps, video, oldPosters)
}

/**
 * Has a video encoded again under a new content key, because the old one has leaked. The old generation plays until the new one is
 * complete; then its sessions end, and its key and segments are destroyed. One that is not complete is replaced immediately.
 * @param alsoInTransaction the caller's record of it
 * @throws Failure `not-found`; `conflict` when it is not ready, is being encoded again already, or has lost its source; `unavailable` without room
 */
export async function reencryptVideo(
  deps: RequestedDeps,
  videoId: string,
  alsoInTransaction: (tx: Db, accountId: string) => Promise<void>,
): Promise<void> {
  const played = await getReadyVideo(deps.db, videoId)
  const video = await findGenerationWithKey(deps, played)
  if (!video) throw videoNotFound()
  await assertEncodable(deps, videoId)
  const oldPosters = await listGenerationBlobs(deps.db, video)
  const lostDubs = await findLostDubs(deps, videoId, video.plan, new AbortController().signal)
  const encoder = await chooseEncoder(deps, video.plan)
  const change = await deps.write(async (tx) => {
    const { accountId, generation } = await getReadyVideo(tx, videoId)
    if (generation !== video.generation || (await findLaterGeneration(tx, video)) !== undefined) throw encodedAlready()
    await alsoInTransaction(tx, accountId)
    return addNextGeneration(deps, tx, video, { encoder, lostDubs })
  })
  deps.log.info({ videoId, generation: video.generation + 1, reason: 'requested' }, 'video: next generation started')
  if (change === 'replaced') {
    await deps.signals.send('work-cancelled', { videoIds: [videoId], work: 'encode' })
    await cleanUpReplaced(deps, video, oldPosters)
  }
  void deps.signals.send('work-queued', 'encode')
}

/** Found out while the old generation plays: at the end it would fail the video. @throws Failure as `reencryptVideo` */
export async function assertEncodable(deps: RequestedDeps, videoId: string): Promise<void> {
  if (!(await deps.hasRoom()))
    throw new Failure('unavailable', 'The disk of this server has no room for another encoding of this video.')
  if (!(await isSourceIntact(deps, { videoId }, new AbortController().signal)))
    throw new Failure('conflict', 'The uploaded file of this video was lost or changed on this server’s disk. Upload it again.')
}

/** @throws Failure `not-found`; `conflict` when it is not ready */
export async function getReadyVideo(db: Db, videoId: string): Promise<GenerationKey & { accountId: string }> {
  const video = await findPlayedGeneration(db, videoId)
  if (!video) throw videoNotFound()
  if (video.status !== 'ready')
    throw new Failure('conflict', `This video is ${video.status}: only one that is ready can be encoded again.`)
  return { videoId, ...video }
}

export function encodedAlready(): Failure {
  return new Failure('conflict', 'This video is being encoded again already. Try again when that is finished.')
}

/** @returns undefined when there is a later generation already */
async function addNextGeneration(
  deps: ReplaceDeps,
  tx: Db,
  key: GenerationWithKey,
  { lostDubs, ...made }: Made & { lostDubs: readonly number[] },
) {
  const isComplete = await isFinished(tx, key)
  if (isComplete && (await findLaterGeneration(tx, key)) !== undefined) return undefined
  // It may have got another audio track since it was read.
  const { plan } = (await findGeneration(tx, key)) ?? key
  const video = { ...key, plan: await leaveOutDubs(tx, key.videoId, plan, lostDubs) }
  if (isComplete) {
    await insertPlanned(deps, tx, video, made)
    return 'started'
  }
  await removeGeneration(tx, video)
  await insertPlanned(deps, tx, video, made)
  await deps.endVideoSessions(tx, [video.videoId], 'video-replaced')
  return 'replaced'
}

/** How a generation is encoded: by which encoder, and whether each track is decoded from its start, which no worker does. */
type Made = { encoder: string; isInSequence?: boolean }

/**
 * Adds a generation with this plan and a new content key, and queues its chunks.
 * @param made.encoder see `chooseEncoder`
 * @returns its number; undefined: the video is deleted
 */
export async function insertPlanned(
  deps: Pick<ReplaceDeps, 'masterKey' | 'sandbox' | 'wallNowS'>,
  tx: Db,
  { videoId, plan, sourceNumber }: Pick<GenerationWithKey, 'videoId' | 'plan' | 'sourceNumber'>,
  { encoder, isInSequence = false }: Made,
): Promise<number | undefined> {
  const generation = await takeNumber(tx, videoId)
  const isInserted = await insertGeneration(tx, {
    videoId,
    generation,
    plan,
    sourceNumber,
    wrappedContentKey: wrapContentKey(deps.masterKey, videoId, generation, newContentKey()),
    // Workers do nothing that is decoded from the start.
    encoder: isDecodableInParts(plan) ? encoder : encoderFingerprint(deps.sandbox),
    createdAtS: deps.wallNowS(),
  })
  if (!isInserted) return undefined
  await insertChunks(tx, { videoId, generation }, planChunks(isInSequence ? { ...plan, isSeekable: false } : plan))
  return generation
}

/**
 * Makes this complete generation the one that the video plays, in the transaction that marks it finished. The one before is removed; one
 * that was replaced by its owner is kept for its open sessions, and for when the owner wants it back.
 * @param playedBytes the size of the segments of what has played until now
 * @returns the clean-up after the commit; undefined when the video plays this generation already
 */
export async function replaceGeneration(deps: ReplaceDeps, tx: Db, video: GenerationWithKey, playedBytes: number) {
  const { videoId } = video
  const replacement = await findReplacement(tx, videoId)
  if (replacement?.generation === video.generation) {
    await removeReplacement(tx, videoId)
    return exchange(deps, tx, video, { by: replacement.kind, playedBytes })
  }
  const oldGeneration = await switchToGeneration(tx, video)
  if (oldGeneration === undefined) return undefined
  const old = { videoId, generation: oldGeneration }
  const oldPosters = await listGenerationBlobs(tx, old)
  await removeGeneration(tx, old)
  await publishExtractedPosters(tx, video)
  await deps.endVideoSessions(tx, [videoId], 'video-replaced')
  return async () => {
    await cleanUpReplaced(deps, old, oldPosters)
    deps.log.info({ videoId, generation: video.generation }, 'video: next generation published')
  }
}

async function cleanUpReplaced(
  deps: ReplaceDeps,
  { videoId, generation }: Pick<GenerationWithKey, 'videoId' | 'generation'>,
  posters: readonly string[],
): Promise<void> {
  void deps.signals.send('session-ended', { videoIds: [videoId], why: 'video-replaced' })
  void deps.signals.send('keys-destroyed', undefined)
  await removeGenerationFiles(deps.folders, { videoId, generation }, posters)
}
