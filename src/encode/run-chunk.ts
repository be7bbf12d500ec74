import { existsSync } from 'node:fs'
import { setStatusReason } from '../catalogue/status.ts'
import { Failure } from '../errors.ts'
import { isEmptyFolder } from '../storage/folder.ts'
import { addPosters } from './add-posters.ts'
import { encodeAudioChunk } from './audio-chunk.ts'
import { type ChunkSink, encodeVideoChunk, TOLERATED_FRAMES } from './chunk.ts'
import { type Chunk, sequentialChunk, URGENT_SEGMENTS } from './chunk-plan.ts'
import { replaceChunk } from './chunk-queue.ts'
import { hasPendingChunks, isCurrentRun, listUnfinishedChunks, type VideoChunk } from './chunk-store.ts'
import { type EncodeDeps, findGenerationWithKey, findSealedSource } from './encode-deps.ts'
import { encoderFingerprint } from './encoder.ts'
import { failVideo, isSourceIntact, segmentsLost, settleFailure } from './fail-video.ts'
import { listPublishedNumbers } from './generation-store.ts'
import { InexactSeek, MediaFailure, truncationReason } from './media-failure.ts'
import { startNextGeneration } from './next-generation.ts'
import type { Plan } from './plan.ts'
import { type GenerationWithKey, openPublication, StaleRunError } from './publication.ts'
import { openRepair } from './repair.ts'
import type { SealedSource } from './sandbox.ts'

type Part = Pick<Chunk, 'kind' | 'firstSegment' | 'segmentCount' | 'decodesFromStart'>

/** One run of a chunk, with what opens its video. */
type Run = { deps: EncodeDeps; chunk: VideoChunk; video: GenerationWithKey; source: SealedSource; signal: AbortSignal }

/** Encodes a chunk and publishes its segments, or repairs those that are damaged. */
export async function runChunk(deps: EncodeDeps, chunk: VideoChunk, signal: AbortSignal): Promise<void> {
  const video = await findGenerationWithKey(deps, chunk)
  const source = await findSealedSource(deps, chunk.videoId)
  if (!video || !source) return // deleted meanwhile
  const run: Run = { deps, chunk, video, source, signal }
  const part = await unpublishedPart(run)
  if (part.segmentCount > 0) return publishPart(run, part)
  if (hasPosters(chunk)) await addPosters(deps, video, source, signal)
  await repairChunk(run)
}

/** Whether the posters are extracted together with this chunk. */
function hasPosters({ kind, firstSegment }: VideoChunk): boolean {
  return kind === 'video' && firstSegment === 0
}

async function publishPart(run: Run, part: Part): Promise<void> {
  const { deps, chunk, video, source, signal } = run
  if (video.encoder !== encoderFingerprint(deps.sandbox)) {
    return startNextGeneration(deps, video, chunk, 'the encoder has changed since this generation was started')
  }
  const startsWithSeek = !part.decodesFromStart && part.firstSegment > 0
  const publication = openPublication({ ...deps, segments: deps.folders.segments }, video, chunk, startsWithSeek)
  const threads = await chooseThreads(deps, part)
  try {
    const sink = { onInit: publication.addInit, onSegment: publication.addSegment }
    // `ready` waits for the posters, so they are extracted at the same time. The chunk is not done before, so that a crash does not lose them.
    await runAll(signal, [
      (signal) => encodePart({ ...run, signal }, { ...part, threads }, sink),
      async (signal) => hasPosters(chunk) && addPosters(deps, video, source, signal),
    ])
    await publication.finish(threads)
  } catch (error) {
    await publication.abandon()
    if (error instanceof InexactSeek) await fallBackToSequentialChunk(run)
    // Another attempt would not change what the media is.
    else if (error instanceof MediaFailure) await failVideo(deps, { videoId: video.videoId, error, run: chunk, signal })
    else if (!(error instanceof StaleRunError)) throw error
  }
}

/** Runs tasks concurrently. What one throws aborts the others, and is thrown when all have ended. */
async function runAll(signal: AbortSignal, tasks: readonly ((signal: AbortSignal) => Promise<unknown>)[]): Promise<void> {
  const failure = new AbortController()
  const either = AbortSignal.any([signal, failure.signal])
  await Promise.all(tasks.map((task) => task(either).catch((error) => failure.abort(error))))
  either.throwIfAborted()
}

/**
 * Encodes a chunk again whose segments are all published, some of them damaged. A segment that comes out with the bytes that were
 * published is put back. When others remain, the video gets its next generation; without its source it fails.
 */
async function repairChunk(run: Run): Promise<void> {
  const { deps, chunk, video, source, signal } = run
  const repair = await openRepair({ ...deps, segments: deps.folders.segments }, video, chunk)
  const mayComeOutEqual = video.encoder === encoderFingerprint(deps.sandbox) && existsSync(source.path)
  try {
    await repair.keepIntact()
    if (!repair.isDone() && mayComeOutEqual) await encodePart(run, chunk, repair.sink)
    if (repair.isDone()) return await repair.finish()
  } catch (error) {
    if (error instanceof StaleRunError) return
    if (!(error instanceof MediaFailure || error instanceof InexactSeek)) throw error
  }
  if (await isEmptyFolder(deps.folders.sources)) throw sourcesMissing()
  if (await isSourceIntact(deps, video.videoId, signal))
    await startNextGeneration(deps, video, chunk, 'a damaged segment came out with other bytes')
  else await settleFailure(deps, video.videoId, segmentsLost(), chunk)
}

function sourcesMissing(): Failure {
  return new Failure('unavailable', 'The folder of uploaded files is empty. Mount its disk, or restore it from a backup.')
}

/** What is left of a chunk after a crash: segments already published at its beginning remain. */
async function unpublishedPart({ deps, chunk, video: { plan } }: Run): Promise<Part> {
  const end = chunk.firstSegment + chunk.segmentCount
  let firstSegment = end
  for (const renditionId of renditionIds(plan, chunk.kind)) {
    const published = new Set(await listPublishedNumbers(deps.db, chunk, renditionId, chunk.firstSegment))
    let missing = chunk.firstSegment
    while (missing < end && published.has(missing)) missing++
    firstSegment = Math.min(firstSegment, missing)
  }
  const { kind, decodesFromStart } = chunk
  return { kind, firstSegment, segmentCount: end - firstSegment, decodesFromStart }
}

function renditionIds({ audioTrack, videoTrack }: Plan, kind: Part['kind']): number[] {
  return kind === 'audio' ? [audioTrack?.renditionId ?? 0] : (videoTrack?.renditions ?? []).map(({ id }) => id)
}

/**
 * One thread for each chunk is cheapest while several run; a chunk that a viewer waits for, and the last of all, get as many as the
 * encoder chooses (0). With one thread a chunk always comes out with the same bytes. With more, x264 keeps to its bitrate cap by what
 * its threads have done so far, so segments that reach the cap come out with other bytes.
 */
async function chooseThreads(deps: EncodeDeps, { kind, segmentCount }: Part): Promise<0 | 1> {
  return kind === 'video' && (segmentCount <= URGENT_SEGMENTS || !(await hasPendingChunks(deps.db))) ? 0 : 1
}

async function encodePart(run: Run, part: Part & { threads: number }, sink: ChunkSink): Promise<void> {
  const { deps, video, source, signal } = run
  const request = { sandbox: deps.sandbox, source, plan: video.plan, chunk: part, signal }
  if (part.kind === 'audio') {
    const { truncatedAtS } = await encodeAudioChunk(request, sink)
    if (truncatedAtS !== undefined) await saveTruncation(run, 'audio', truncatedAtS)
    return
  }
  const { missingFrames } = await encodeVideoChunk({ ...request, threads: part.threads === 0 ? 'auto' : 1 }, sink)
  const { videoTrack } = video.plan
  if (videoTrack && missingFrames > TOLERATED_FRAMES) {
    const readFrames = videoTrack.frameCount - (videoTrack.heldFrames ?? 0) - missingFrames
    await saveTruncation(run, 'video', (readFrames * videoTrack.rateDen) / videoTrack.rateNum)
  }
}

/** Records for the owner that a stream of the source ends early. */
async function saveTruncation({ deps, video }: Run, stream: 'video' | 'audio', atS: number): Promise<void> {
  await deps.write((tx) => setStatusReason(tx, video.videoId, truncationReason(stream, atS, video.plan.durationS)))
}

/** Replaces all unfinished chunks by one without a seek; their runs are fenced off. */
async function fallBackToSequentialChunk({ deps, chunk }: Run): Promise<void> {
  deps.log.info(
    { videoId: chunk.videoId, segment: chunk.firstSegment },
    'video: does not decode cleanly after a seek, encoded in sequence',
  )
  await deps.write(async (tx) => {
    if (!(await isCurrentRun(tx, chunk))) return // another run has done this already
    const [first, ...others] = await listUnfinishedChunks(tx, chunk)
    if (!first) return
    for (const other of others) await replaceChunk(tx, deps.chunkQueue, other, [])
    await replaceChunk(tx, deps.chunkQueue, first, [sequentialChunk([first, ...others])])
  })
}
