import { recordOperationsAlert } from '../alerts/operations.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { listGenerationBlobs } from '../catalogue/poster-store.ts'
import { findReplacement, removeReplacement, updateReplacement } from '../catalogue/replacement-store.ts'
import { moveStatus } from '../catalogue/status.ts'
import { findAccountOfVideo } from '../catalogue/video-store.ts'
import { isSealIntact } from '../crypto/sealed-file.ts'
import type { Db } from '../db/database.ts'
import type { ReplacementRow } from '../db/tables.ts'
import { openSourceSeal } from '../ingest/source.ts'
import { findSource } from '../ingest/source-store.ts'
import { BlobLost, blocksOf } from '../storage/blob-store.ts'
import { abandonChunks } from './chunk-store.ts'
import { hasDamage } from './damage-store.ts'
import type { EncodeCounters } from './encode-counters.ts'
import type { VideoDeps } from './encode-deps.ts'
import {
  findLaterGeneration,
  findPlayedGeneration,
  isFinished,
  removeGeneration,
  removeUnusedSource,
} from './generation-store.ts'
import { MediaFailure } from './media-failure.ts'

export type FailDeps = VideoDeps & { counters: EncodeCounters }

/** Whether the work that failed may still decide about the video; may end it. False: it was fenced off, and nothing changes. */
type Fence = (tx: Db) => Promise<boolean>

/** What of a video failed: a generation, or a source that was examined. Neither is given where that is not known. */
export type FailedPart = { videoId: string; generation?: number; sourceNumber?: number }

type VideoFailure = FailedPart & { error: unknown; fence?: Fence; signal: AbortSignal }

/** Ends a video that cannot be encoded. When the disk has changed its source, that is the reason: what was found says nothing about the upload. */
export async function failVideo(deps: FailDeps, { error, fence, signal, ...part }: VideoFailure): Promise<void> {
  const { videoId } = part
  const replacement = await findReplacement(deps.db, videoId)
  const sourceNumber = part.sourceNumber ?? replacement?.sourceNumber ?? undefined
  const isIntact = await isSourceIntact(deps, { videoId, sourceNumber }, signal)
  const isKnown = error instanceof MediaFailure
  if (!isKnown) deps.log.error({ err: error, videoId }, 'video: encoding failed')
  await settleFailure(deps, part, !isIntact ? sourceChanged() : isKnown ? error : unexpectedFailure(), fence)
}

/** One transaction: the run's end, the video's status, and the chunks that are no longer needed. Jobs that still encode them are stopped. */
export async function settleFailure(deps: FailDeps, part: FailedPart, failure: MediaFailure, fence?: Fence): Promise<void> {
  const { videoId } = part
  const { isSettled, hasFailed, removed } = await deps.write(async (tx) => {
    if (fence && !(await fence(tx))) return { isSettled: false, hasFailed: false }
    const replacement = await findReplacement(tx, videoId)
    if (replacement && isPartOf(replacement, part)) {
      await alertOfFailure(deps, tx, videoId, failure)
      return { isSettled: true, hasFailed: false, removed: await dropReplacement(tx, replacement, failure.message) }
    }
    const removed = await removeUnneededNext(tx, videoId)
    if (removed) return { isSettled: true, hasFailed: false, removed }
    const hasFailed = await moveStatus(tx, videoId, failure.status, failure.message)
    await abandonChunks(tx, videoId)
    if (!hasFailed) return { isSettled: true, hasFailed }
    await alertOfFailure(deps, tx, videoId, failure)
    // Only what replaces a video that plays can be made: its owner begins again once it does.
    const isPending = replacement !== undefined && replacement.problem === null
    return {
      isSettled: true,
      hasFailed,
      removed: isPending ? await dropReplacement(tx, replacement, failure.message) : undefined,
    }
  })
  if (hasFailed) deps.counters.failures++
  if (hasFailed) deps.log.info({ videoId, status: failure.status, reason: failure.message }, 'video: failed')
  if (removed && !hasFailed)
    deps.log.error(
      { videoId, generation: removed.generation, reason: failure.message },
      'video: next generation failed, the one before plays on',
    )
  if (isSettled) void deps.signals.send('work-cancelled', { videoIds: [videoId], work: 'encode' }) // not awaited: it waits for the calling run, too
  if (removed) await removeFiles(deps.folders, removed)
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
async function removeUnneededNext(tx: Db, videoId: string): Promise<RemovedFiles | undefined> {
  const played = { videoId, generation: (await findPlayedGeneration(tx, videoId))?.generation ?? 0 }
  const generation = await findLaterGeneration(tx, played)
  if (generation === undefined || !(await isFinished(tx, played)) || (await hasDamage(tx, played))) return undefined
  const key = { videoId, generation }
  const posters = await listGenerationBlobs(tx, key)
  await removeGeneration(tx, key)
  return { ...key, posters }
}

/** Whether this is what failed: what replaces a video, and not what it plays. */
function isPartOf({ problem, sourceNumber, generation }: ReplacementRow, failed: FailedPart): boolean {
  if (problem !== null || sourceNumber === null) return false
  return failed.generation === undefined ? true : failed.generation === generation
}

/** What no row names any more, for `removeFiles`. */
export type RemovedFiles = { videoId: string; generation: number | null; posters: readonly string[]; sources?: readonly string[] }

/**
 * Removes what was to replace a video, with its key; what plays goes on.
 * @param problem is kept for the owner; absent: nothing of the replacement is
 */
export async function dropReplacement(
  tx: Db,
  { videoId, generation, sourceNumber }: ReplacementRow,
  problem?: string,
): Promise<RemovedFiles> {
  const posters = generation === null ? [] : await listGenerationBlobs(tx, { videoId, generation })
  if (generation !== null) await removeGeneration(tx, { videoId, generation })
  const sources = sourceNumber === null ? [] : await removeUnusedSource(tx, videoId, sourceNumber)
  if (problem === undefined) await removeReplacement(tx, videoId)
  else await updateReplacement(tx, videoId, { problem, generation: null, sourceNumber: null })
  return { videoId, generation, posters, sources }
}

export async function removeFiles(
  folders: VideoFolders,
  { videoId, generation, posters, sources = [] }: RemovedFiles,
): Promise<void> {
  if (generation !== null) await removeGenerationFiles(folders, { videoId, generation }, posters)
  for (const source of sources) await folders.sources.retire(source)
}

/** Removes the segments and the extracted posters of a generation that no row names any more. */
export async function removeGenerationFiles(
  folders: Pick<VideoFolders, 'segments' | 'posters'>,
  { videoId, generation }: GenerationKey,
  posters: readonly string[],
): Promise<void> {
  await folders.segments.retireAll(`${videoId}/${generation}`)
  for (const blob of posters) await folders.posters.retire(blob)
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

/** A file of a video; without a number, the one that it is made from. */
type SourceKey = { videoId: string; sourceNumber?: number | undefined }

/** Whether the source still has the bytes that were uploaded. @throws a failure of the host, such as a disk that is not mounted */
export async function isSourceIntact(
  deps: VideoDeps,
  { videoId, sourceNumber }: SourceKey,
  signal: AbortSignal,
): Promise<boolean> {
  const row = await findSource(deps.db, videoId, sourceNumber)
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
export async function isSourceGone(
  { db, folders }: Pick<VideoDeps, 'db' | 'folders'>,
  { videoId, sourceNumber }: SourceKey,
): Promise<boolean> {
  const source = await findSource(db, videoId, sourceNumber)
  return source !== undefined && (await folders.sources.stat(source.file)) === undefined
}
