import { recordOperationsAlert } from '../alerts/operations.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { listExtractedPosterBlobs } from '../catalogue/poster-store.ts'
import { moveStatus } from '../catalogue/status.ts'
import { findAccountOfVideo } from '../catalogue/video-store.ts'
import { isSealIntact } from '../crypto/sealed-file.ts'
import type { Db } from '../db/database.ts'
import { openSourceSeal } from '../ingest/source.ts'
import { findSource } from '../ingest/source-store.ts'
import { BlobLost, blocksOf } from '../storage/blob-store.ts'
import { abandonChunks } from './chunk-store.ts'
import { hasDamage } from './damage-store.ts'
import type { EncodeCounters } from './encode-counters.ts'
import type { VideoDeps } from './encode-deps.ts'
import { findLaterGeneration, findPlayedGeneration, isFinished, removeGeneration } from './generation-store.ts'
import { MediaFailure } from './media-failure.ts'

export type FailDeps = VideoDeps & { counters: EncodeCounters }

/** Whether the work that failed may still decide about the video; may end it. False: it was fenced off, and nothing changes. */
type Fence = (tx: Db) => Promise<boolean>

type VideoFailure = { videoId: string; error: unknown; fence?: Fence; signal: AbortSignal }

/** Ends a video that cannot be encoded. When the disk has changed its source, that is the reason: what was found says nothing about the upload. */
export async function failVideo(deps: FailDeps, { videoId, error, fence, signal }: VideoFailure): Promise<void> {
  const isIntact = await isSourceIntact(deps, videoId, signal)
  const isKnown = error instanceof MediaFailure
  if (!isKnown) deps.log.error({ err: error, videoId }, 'video: encoding failed')
  await settleFailure(deps, videoId, !isIntact ? sourceChanged() : isKnown ? error : unexpectedFailure(), fence)
}

/** One transaction: the run's end, the video's status, and the chunks that are no longer needed. Jobs that still encode them are stopped. */
export async function settleFailure(deps: FailDeps, videoId: string, failure: MediaFailure, fence?: Fence): Promise<void> {
  const { isSettled, hasFailed, removed } = await deps.write(async (tx) => {
    if (fence && !(await fence(tx))) return { isSettled: false, hasFailed: false }
    const removed = await removeUnneededNext(tx, videoId)
    if (removed) return { isSettled: true, hasFailed: false, removed }
    const hasFailed = await moveStatus(tx, videoId, failure.status, failure.message)
    await abandonChunks(tx, videoId)
    if (hasFailed) await alertOfFailure(deps, tx, videoId, failure)
    return { isSettled: true, hasFailed }
  })
  if (hasFailed) deps.counters.failures++
  if (hasFailed) deps.log.info({ videoId, status: failure.status, reason: failure.message }, 'video: failed')
  if (removed)
    deps.log.error({ ...removed.key, reason: failure.message }, 'video: next generation failed, the one before plays on')
  if (isSettled) void deps.signals.send('work-cancelled', { videoIds: [videoId], work: 'encode' }) // not awaited: it waits for the calling run, too
  if (removed) await removeGenerationFiles(deps.folders, removed.key, removed.posters)
}

/** One alert a day for each account, however many videos fail. */
async function alertOfFailure({ wallNowS }: VideoDeps, tx: Db, videoId: string, { message }: MediaFailure): Promise<void> {
  const accountId = await findAccountOfVideo(tx, videoId)
  if (accountId === undefined) return // deleted meanwhile
  await recordOperationsAlert(tx, { accountId, cause: 'encode-failed', videoId, numbers: { reason: message } }, wallNowS())
}

/**
 * Removes a generation that could not be encoded, while the video plays a complete and intact one: it was to be encrypted again, and
 * the owner does not lose it.
 */
async function removeUnneededNext(tx: Db, videoId: string): Promise<{ key: GenerationKey; posters: string[] } | undefined> {
  const played = { videoId, generation: (await findPlayedGeneration(tx, videoId))?.generation ?? 0 }
  const generation = await findLaterGeneration(tx, played)
  if (generation === undefined || !(await isFinished(tx, played)) || (await hasDamage(tx, played))) return undefined
  const key = { videoId, generation }
  const posters = await listExtractedPosterBlobs(tx, key)
  await removeGeneration(tx, key)
  return { key, posters }
}

/** Removes the segments and the extracted posters of a generation that no row names any more. */
export async function removeGenerationFiles(
  folders: Pick<VideoFolders, 'segments' | 'posters'>,
  { videoId, generation }: GenerationKey,
  posters: readonly string[],
): Promise<void> {
  await folders.segments.removeAll(`${videoId}/${generation}`)
  for (const blob of posters) await folders.posters.remove(blob)
}

export function sourceChanged(): MediaFailure {
  return new MediaFailure(
    'Encoding error',
    'The uploaded file was changed on this server’s disk. Check the disk and upload it again.',
  )
}

function unexpectedFailure(): MediaFailure {
  return new MediaFailure(
    'Encoding error',
    'The video could not be encoded on this server. Its log says why. Then try again: in the console, or by POST /api/videos/ID/retry.',
  )
}

export function segmentsLost(): MediaFailure {
  return new MediaFailure(
    'Encoding error',
    'A part of the video was lost on this server’s disk, and so was the uploaded file. Check the disk and upload the video again.',
  )
}

/** Whether the source still has the bytes that were uploaded. @throws a failure of the host, such as a disk that is not mounted */
export async function isSourceIntact(deps: VideoDeps, videoId: string, signal: AbortSignal): Promise<boolean> {
  const row = await findSource(deps.db, videoId)
  if (!row?.wrappedKey) return true // deleted
  const seal = openSourceSeal(deps, { ...row, wrappedKey: row.wrappedKey })
  try {
    await using blob = await deps.folders.sources.open(row.file)
    return await isSealIntact(blocksOf(blob), seal, row.macs, signal)
  } catch (error) {
    if (error instanceof BlobLost) return false
    throw error
  }
}

/** Whether the file of the source is lost. @throws a failure of the host, such as a disk that is not mounted */
export async function isSourceGone({ db, folders }: Pick<VideoDeps, 'db' | 'folders'>, videoId: string): Promise<boolean> {
  const source = await findSource(db, videoId)
  return source !== undefined && (await folders.sources.stat(source.file)) === undefined
}
