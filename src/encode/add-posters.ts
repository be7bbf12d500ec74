import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import {
  forgetPosterExtraction,
  insertExtractedPosters,
  isPosterExtractionDone,
  type NewPoster,
} from '../catalogue/poster-store.ts'
import { createSegmentIvDeriver, decryptSegment, deriveWindowKey } from '../crypto/content-key.ts'
import { windowOfVideoSegment } from '../crypto/key-window.ts'
import { sealBlob } from '../crypto/sealed-blob.ts'
import { newToken } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { isHostFailure } from '../errors.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import { isCurrentRun, reopenChunk, type VideoChunk } from './chunk-store.ts'
import { encodedColor } from './color.ts'
import { findPlayable } from './damage-store.ts'
import type { VideoDeps } from './encode-deps.ts'
import { extractPosters, type Poster } from './extract-posters.ts'
import { findInit, findSegment, moveToReadyIfPlayable } from './generation-store.ts'
import { removeImage, sealImage } from './image.ts'
import type { Plan } from './plan.ts'
import { type GenerationWithKey, waitForFirstSegment } from './publication.ts'

/** How long posters may delay a video that could play. */
const MAX_SEARCH_MS = 2_000
const MAX_ATTEMPTS = 3

export type PosterDeps = VideoDeps & { sandbox: Sandbox }

/** `chunk`: the run that extracts them, too. */
type PosterWork = {
  /** Its segments are published when it ends: none can be waited for. */
  isHeld?: boolean
  deps: PosterDeps
  chunk: VideoChunk
  video: GenerationWithKey
  source: SealedSource
  signal: AbortSignal
}

/**
 * Extracts the two posters of a video, for which `ready` waits. When extracting them from the source takes too long or fails, they are
 * extracted from the first published segment; when that fails too, the video has none. Resolves once they are stored.
 * @throws the signal's reason; a failure of the host, which may be retried
 */
export async function addPosters(work: PosterWork): Promise<void> {
  const { deps, chunk, video } = work
  if (!video.plan.videoTrack || (await isPosterExtractionDone(deps.db, video))) return
  const extracted = (await extractFromSource(work)) ?? (work.isHeld ? [] : await extractFromFirstSegment(work))
  const posters: NewPoster[] = []
  for (const { widthPx, heightPx, jpeg } of extracted) {
    const token = newToken()
    const blob = `${video.videoId}/${token}.sealed`
    await deps.folders.posters.put(blob, sealBlob(video.contentKey, blob, jpeg))
    posters.push({ videoId: video.videoId, widthPx, heightPx, token, blob, sizeBytes: jpeg.length, createdAtS: deps.wallNowS() })
  }
  // Checked again in the transaction: another run may have been faster, or the generation was restarted with another key.
  const { isWanted, isReady } = await deps.write(async (tx) => {
    const isWanted = (await isCurrentRun(tx, chunk)) && (await insertExtractedPosters(tx, video, posters, deps.wallNowS()))
    return { isWanted, isReady: isWanted && (await moveToReadyIfPlayable(tx, video)) }
  })
  if (isReady) deps.log.info({ videoId: video.videoId }, 'video: ready')
  if (!isWanted) for (const { blob } of posters) await deps.folders.posters.remove(blob)
}

/** Has the posters of a generation extracted again, with its first chunk. False: they will not be, such as those of a failed video. */
export async function requeuePosters(tx: Db, video: GenerationKey): Promise<boolean> {
  if (!(await findPlayable(tx, [video.videoId])).has(video.videoId)) return false
  const isQueued = await reopenChunk(tx, { ...video, kind: 'video', firstSegment: 0 })
  if (isQueued) await forgetPosterExtraction(tx, video)
  return !(await isPosterExtractionDone(tx, video))
}

/** Undefined when it failed each time, or took too long while the video could have played. */
async function extractFromSource({ deps, video, source, signal }: PosterWork): Promise<Poster[] | undefined> {
  const search = new AbortController()
  const either = AbortSignal.any([signal, search.signal])
  const extracting = extractWithRetries()
    .catch((error) => {
      if (!either.aborted) deps.log.warn({ err: error, videoId: video.videoId }, 'posters: not extracted from the source')
      return undefined
    })
    .finally(() => search.abort())
  await Promise.all([
    pause(MAX_SEARCH_MS, undefined, { signal: either }).catch(() => undefined),
    waitForFirstSegment(deps, video, bestRenditionId(video.plan), either),
  ])
  search.abort()
  const posters = await extracting
  signal.throwIfAborted()
  return posters

  async function extractWithRetries(): Promise<Poster[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await extractPosters(deps.sandbox, source, video.plan, either)
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || either.aborted) throw error
      }
    }
  }
}

async function extractFromFirstSegment({ deps, video, signal }: PosterWork): Promise<Poster[]> {
  await waitForFirstSegment(deps, video, bestRenditionId(video.plan), signal)
  signal.throwIfAborted()
  try {
    const copy = await sealImage(deps.tmp, Readable.from(await readFirstSegment(deps, video)))
    try {
      return await extractPosters(deps.sandbox, copy.source, planForEncoded(video.plan), signal)
    } finally {
      await removeImage(copy)
    }
  } catch (error) {
    signal.throwIfAborted()
    if (isHostFailure(error)) throw error
    deps.log.warn({ err: error, videoId: video.videoId }, 'posters: none could be extracted')
    return []
  }
}

/** The decrypted init segment and first segment of the best rendition. */
async function readFirstSegment({ db, folders }: PosterDeps, video: GenerationWithKey): Promise<Buffer[]> {
  const renditionId = bestRenditionId(video.plan)
  const init = await findInit(db, video, renditionId)
  const segment = await findSegment(db, video, renditionId, 0)
  if (!init || !segment) throw new Error('the first segment of the video is not published')
  const key = deriveWindowKey(video.contentKey, windowOfVideoSegment(0))
  const iv = createSegmentIvDeriver(video.contentKey)(renditionId, 0)
  return [init, decryptSegment(await folders.segments.read(segment.file), key, iv)]
}

function bestRenditionId({ videoTrack }: Plan): number {
  return videoTrack?.renditions[0]?.id ?? 0
}

/** A segment that was encoded here is read from its start, is not interlaced, and has the colors that it was given. */
function planForEncoded({ videoTrack, cut: _, ...plan }: Plan): Plan {
  const color = videoTrack?.color && encodedColor(videoTrack.color)
  return {
    ...plan,
    isSeekable: false,
    videoTrack: videoTrack && { ...videoTrack, firstFrame: 0, interlaced: false, hdr: false, color },
  }
}
