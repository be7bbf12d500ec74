import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { arePostersExtracted, insertExtractedPosters, type NewPoster } from '../catalogue/poster-store.ts'
import { decryptSegment, deriveWindowKey, segmentIvs } from '../crypto/content-key.ts'
import { windowOfVideoSegment } from '../crypto/key-window.ts'
import { sealBlob } from '../crypto/sealed-blob.ts'
import { newToken } from '../crypto/secret.ts'
import { isHostFailure } from '../errors.ts'
import { blobPath, putBlob, removeBlobs } from '../storage/folder.ts'
import type { EncodeDeps } from './encode-deps.ts'
import { extractPosters, type Poster } from './extract-posters.ts'
import { findInit, findSegment, moveToReadyIfPlayable } from './generation-store.ts'
import { removeImage, sealImage } from './image.ts'
import type { Plan } from './plan.ts'
import type { OpenGeneration } from './publication.ts'
import type { SealedSource } from './sandbox.ts'

/** A video that could play waits for its posters no longer than until they have taken this. */
const MAX_SEARCH_MS = 2_000
const TRIES = 3

type PosterWork = { deps: EncodeDeps; video: OpenGeneration; source: SealedSource; signal: AbortSignal }

/**
 * Gives a video its two drawn posters, for which `ready` waits. Where drawing them from the source takes too long or fails, the
 * first published segment stands in; a video that shows nothing there goes without. Resolves once they are stored.
 * @throws the signal's reason; trouble of the machine, which is worth another try
 */
export async function addPosters(
  deps: EncodeDeps,
  video: OpenGeneration,
  source: SealedSource,
  signal: AbortSignal,
): Promise<void> {
  if (!video.plan.videoTrack || (await arePostersExtracted(deps.db, video))) return
  const work = { deps, video, source, signal }
  const made = (await drawFromSource(work)) ?? (await drawFromFirstSegment(work))
  const posters: NewPoster[] = []
  for (const { widthPx, heightPx, jpeg } of made) {
    const token = newToken()
    const blob = `${video.videoId}/${token}.sealed`
    await putBlob(deps.folders.posters, blob, sealBlob(video.contentKey, blob, jpeg))
    posters.push({ videoId: video.videoId, widthPx, heightPx, token, blob, sizeBytes: jpeg.length, createdAtS: deps.wallNowS() })
  }
  // Looked at again where it counts: another run may have been faster, or the video restarted under another key.
  const { isWanted, isReady } = await deps.write(async (tx) => {
    const isWanted = await insertExtractedPosters(tx, video, posters, deps.wallNowS())
    return { isWanted, isReady: isWanted && (await moveToReadyIfPlayable(tx, video)) }
  })
  if (isReady) deps.log.info({ videoId: video.videoId }, 'video: ready')
  if (!isWanted) for (const { blob } of posters) await removeBlobs(deps.folders.posters, blob)
}

/** Undefined when it failed three times, or took too long while the video could have played. */
async function drawFromSource({ deps, video, source, signal }: PosterWork): Promise<Poster[] | undefined> {
  const search = new AbortController()
  const either = AbortSignal.any([signal, search.signal])
  const drawing = tryToDraw()
    .catch((error) => {
      if (!either.aborted) deps.log.warn({ err: error, videoId: video.videoId }, 'posters: not drawn from the source')
      return undefined
    })
    .finally(() => search.abort())
  await Promise.all([
    pause(MAX_SEARCH_MS, undefined, { signal: either }).catch(() => undefined),
    firstSegmentOut(deps, video, either),
  ])
  search.abort()
  const posters = await drawing
  signal.throwIfAborted()
  return posters

  async function tryToDraw(): Promise<Poster[]> {
    for (let tries = 1; ; tries++) {
      try {
        return await extractPosters(deps.sandbox, source, video.plan, either)
      } catch (error) {
        if (tries === TRIES || either.aborted) throw error
      }
    }
  }
}

/** Resolves when the best rendition has its first segment, or when the signal ends the wait. */
async function firstSegmentOut(deps: EncodeDeps, video: OpenGeneration, signal: AbortSignal): Promise<void> {
  const renditionId = bestRenditionId(video.plan)
  const wait = new AbortController()
  // Begins before the look, so that none is missed.
  const announced = deps.segmentEvents.waitFor(video, renditionId, 0, AbortSignal.any([signal, wait.signal]))
  if (await findSegment(deps.db, video, renditionId, 0)) wait.abort()
  await announced
}

async function drawFromFirstSegment({ deps, video, signal }: PosterWork): Promise<Poster[]> {
  await firstSegmentOut(deps, video, signal)
  signal.throwIfAborted()
  try {
    const copy = await sealImage(deps.folders.segments.tmp, Readable.from(await readFirstSegment(deps, video)))
    try {
      return await extractPosters(deps.sandbox, copy.source, planOfEncoded(video.plan), signal)
    } finally {
      await removeImage(copy)
    }
  } catch (error) {
    signal.throwIfAborted()
    if (isHostFailure(error)) throw error
    deps.log.warn({ err: error, videoId: video.videoId }, 'posters: none could be drawn')
    return []
  }
}

/** The clear init segment and first segment of the best rendition. */
async function readFirstSegment({ db, folders }: EncodeDeps, video: OpenGeneration): Promise<Buffer[]> {
  const renditionId = bestRenditionId(video.plan)
  const init = await findInit(db, video, renditionId)
  const segment = await findSegment(db, video, renditionId, 0)
  if (!init || !segment) throw new Error('the first segment of the video is not published')
  const key = deriveWindowKey(video.contentKey, windowOfVideoSegment(0))
  const iv = segmentIvs(video.contentKey)(renditionId, 0)
  return [init, decryptSegment(await readFile(blobPath(folders.segments, segment.file)), key, iv)]
}

function bestRenditionId({ videoTrack }: Plan): number {
  return videoTrack?.renditions[0]?.id ?? 0
}

/** What was encoded here is read from its start, and is neither interlaced nor HDR any more. */
function planOfEncoded(plan: Plan): Plan {
  return { ...plan, isSeekable: false, videoTrack: plan.videoTrack && { ...plan.videoTrack, interlaced: false, hdr: false } }
}
