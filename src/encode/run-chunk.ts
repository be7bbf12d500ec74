import { setStatusReason } from '../catalogue/status.ts'
import type { Claim } from '../jobs/claims.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import { addPosters, type PosterDeps } from './add-posters.ts'
import { encodeAudioChunk } from './audio-chunk.ts'
import { isDecodableInParts } from './capacity.ts'
import { type ChunkSink, encodeVideoChunk, LEADS_S, TOLERATED_FRAMES } from './chunk.ts'
import { type Chunk, sequentialChunk, URGENT_SEGMENTS } from './chunk-plan.ts'
import {
  countSequentialChunks,
  endRun,
  hasPendingChunks,
  isCurrentRun,
  isRunning,
  listUnfinishedChunks,
  replaceChunk,
  type VideoChunk,
} from './chunk-store.ts'
import { findGenerationWithKey, findSealedSource } from './encode-deps.ts'
import { encoderFingerprint } from './encoder.ts'
import {
  type FailDeps,
  type FailedPart,
  failVideo,
  isSourceGone,
  isSourceIntact,
  segmentsLost,
  settleFailure,
} from './fail-video.ts'
import { findGain, listPublishedNumbers, setGain } from './generation-store.ts'
import { measuredAs, measureGain } from './loudness.ts'
import { type ChunkEnd, InexactSeek, MediaFailure, truncationReason } from './media-failure.ts'
import { type ReplaceDeps, startNextGeneration } from './next-generation.ts'
import { type AudioTrackPlan, audioTracksOf, type DubFile, type Plan } from './plan.ts'
import {
  type Encoded,
  type GenerationWithKey,
  openPublication,
  type Publication,
  type SegmentStoring,
  StaleRunError,
  waitForFirstSegment,
} from './publication.ts'
import type { RemoteEncoder } from './remote-encoder.ts'
import { openRepair } from './repair.ts'
import { runAll } from './run-all.ts'

type Part = Pick<Chunk, 'kind' | 'firstSegment' | 'segmentCount' | 'decodesFromStart'>

type RunDeps = FailDeps &
  ReplaceDeps &
  PosterDeps & {
    /** Gains that are being measured, by audio track. */
    gainsInProgress: Map<string, Promise<void>>
  }

type Run = {
  deps: RunDeps
  chunk: VideoChunk
  claim: Claim
  video: GenerationWithKey
  source: SealedSource
  signal: AbortSignal
  /** What claimed the chunk, as `encoderFingerprint`. */
  encoder: string
  /** What encodes it first; undefined: this server. */
  remote: RemoteEncoder | undefined
}

/**
 * Encodes a chunk and publishes its segments, or repairs those that are damaged.
 * @param remote encodes what is not published yet; what it does not encode cleanly, this server does
 */
export async function runChunk(
  deps: RunDeps,
  chunk: VideoChunk,
  claim: Claim,
  signal: AbortSignal,
  remote?: RemoteEncoder,
): Promise<void> {
  const video = await findGenerationWithKey(deps, chunk)
  const source = video && (await findSealedSource(deps, chunk.videoId, video.sourceNumber))
  if (!video || !source) return // deleted meanwhile
  const run: Run = {
    deps,
    chunk,
    claim,
    video,
    source,
    signal,
    encoder: remote?.encoder ?? encoderFingerprint(deps.sandbox),
    remote: remote && mayLeave(video.plan, chunk) ? remote : undefined,
  }
  const part = await unpublishedPart(run)
  if (part.segmentCount > 0) return publishPart(run, part)
  if (hasPosters(chunk)) await addPosters(run)
  await repairChunk(run)
}

/** Whether the posters are extracted together with this chunk. */
function hasPosters({ kind, firstSegment }: VideoChunk): boolean {
  return kind === 'video' && firstSegment === 0
}

async function publishPart(run: Run, part: Part): Promise<void> {
  const { deps, chunk, video, signal } = run
  if (video.encoder !== run.encoder) {
    return startNextGeneration(deps, video, chunk, 'the encoder of this generation is not there any more')
  }
  const startsWithSeek = !part.decodesFromStart && (part.firstSegment > 0 || video.plan.cut !== undefined)
  const isHeld = startsWithSeek || run.remote !== undefined
  const publication = openPublication({ ...deps, claim: run.claim, segments: deps.folders.segments }, video, chunk, isHeld)
  const threads = await chooseThreads(deps, part)
  let encoded: Encoded = { threads }
  try {
    // `ready` waits for the posters, so they are extracted at the same time. The chunk is not done before, so that a crash does not lose them.
    await runAll(signal, [
      async (signal) => {
        encoded = await encodeExactly({ ...run, signal }, { ...part, threads }, publication)
      },
      async (signal) => hasPosters(chunk) && addPosters({ ...run, signal, isHeld }),
    ])
    await publication.finish(encoded)
  } catch (error) {
    await publication.abandon()
    if (error instanceof InexactSeek) await runInSequence(run)
    else if (error instanceof OtherEncoder) await startOwnGeneration(run, error)
    // Another attempt would not change what the media is.
    else if (error instanceof MediaFailure)
      await failVideo(deps, { ...partOf(video), error, fence: (tx) => endRun(tx, chunk, 'failed'), signal })
    else if (!(error instanceof StaleRunError)) throw error
  }
}

/**
 * Encodes a part into its publication. When the decoder complains after a seek, the part is encoded again from earlier in the source.
 * Two runs that began at different key frames and give the same bytes show that the damage is in the part itself, as it is when the
 * video is decoded from its start.
 * @returns how the run that is held was encoded
 * @throws InexactSeek when no run is clean and none confirms another; OtherEncoder; otherwise see `encodeVideoChunk`
 */
async function encodeExactly(run: Run, part: Part & { threads: 0 | 1 }, publication: Publication): Promise<Encoded> {
  const sink = { onInit: publication.addInit, onSegment: publication.addSegment }
  const { remote } = run
  if (remote) {
    if (await encodeRemotely(run, remote, part, sink, publication.storing))
      return { threads: part.threads, workerId: remote.workerId }
    if (!isOwnEncoder(run)) throw new OtherEncoder('its encoder cannot encode a part cleanly')
  }
  const doubtful: { decodedBefore: number; digest: string }[] = []
  let threads = part.threads
  for (const leadS of LEADS_S) {
    const end = await tryPart(run, { ...part, threads, leadS }, sink)
    if (!(end instanceof InexactSeek)) {
      await saveEnd(run, part.kind, end)
      return { threads }
    }
    const digest = publication.digestHeld()
    const { outcome } = end
    if (outcome && doubtful.some((other) => other.decodedBefore < outcome.decodedBefore && other.digest === digest)) {
      await saveEnd(run, part.kind, outcome.end)
      return { threads }
    }
    if (outcome) doubtful.push({ decodedBefore: outcome.decodedBefore, digest })
    await publication.abandon()
    // With several threads, neither decoders nor encoders give the same bytes again after damage.
    threads = 1
  }
  throw new InexactSeek('no two runs gave the same bytes')
}

/** The generation is another encoder's, whose segments are not mixed with this server's. */
class OtherEncoder extends Error {}

function isOwnEncoder({ deps, video }: Run): boolean {
  return video.encoder === encoderFingerprint(deps.sandbox)
}

/** What another encoder does not encode cleanly this server does, all of it; in sequence, where it has no encoders for parts. */
async function startOwnGeneration({ deps, video, chunk }: Run, { message }: OtherEncoder): Promise<void> {
  const made = { encoder: encoderFingerprint(deps.sandbox), isInSequence: deps.encoderSlots === 0 }
  await startNextGeneration(deps, video, chunk, message, made)
}

/**
 * Whether a chunk may be encoded on another machine. One that is decoded from the video's start needs all of the source there, and all of
 * its result here until that is checked; added audio tracks are files of their own.
 */
function mayLeave(plan: Plan, { kind, decodesFromStart }: VideoChunk): boolean {
  return (
    !decodesFromStart &&
    isDecodableInParts(plan) &&
    !(kind === 'audio' && audioTracksOf(plan).some(({ dub }) => dub !== undefined))
  )
}

async function encodeRemotely(
  run: Run,
  remote: RemoteEncoder,
  part: Part & { threads: 0 | 1 },
  sink: ChunkSink,
  storing?: SegmentStoring,
): Promise<boolean> {
  const { video, source, signal } = run
  const { videoId, generation, sourceNumber, plan, encoder } = video
  const gains = new Map<number, number>()
  for (const track of part.kind === 'audio' ? audioTracksOf(plan) : []) {
    const gainDb = await settleGain(run, track, source)
    if (gainDb !== undefined) gains.set(track.renditionId, gainDb)
  }
  const { threads, kind, firstSegment, segmentCount, decodesFromStart } = part
  const span = { kind, firstSegment, segmentCount, decodesFromStart }
  const key = { videoId, generation, sourceNumber }
  const request = { video: key, plan, encoder, part: span, threads, gains, source, signal }
  return remote.encode({ ...request, ...(storing && { storing }) }, sink)
}

/**
 * Encodes a chunk again whose segments are all published, some of them damaged, or all to be compared. A segment that comes out with the
 * bytes that were published is put back. When others remain, the video gets its next generation; without its source it fails.
 */
async function repairChunk(run: Run): Promise<void> {
  const { deps, chunk, video, signal } = run
  const repair = await openRepair({ ...deps, claim: run.claim, segments: deps.folders.segments }, video, chunk)
  try {
    await repair.keepIntact()
    if (!repair.isDone() && !(await isSourceGone(deps, video))) await encodeForRepair(run, repair)
    if (repair.isDone()) return await repair.finish()
  } catch (error) {
    if (error instanceof StaleRunError) return
    if (!(error instanceof MediaFailure)) throw error
  }
  if (await isSourceIntact(deps, video, signal))
    await startNextGeneration(deps, video, chunk, 'a segment came out with other bytes')
  else if (repair.isPlayable()) await repair.finish()
  else await settleFailure(deps, partOf(video), segmentsLost(), (tx) => endRun(tx, chunk, 'failed'))
}

/** Encodes a chunk again as it was encoded. The bytes are compared with the published ones, whatever the decoder reports. */
async function encodeForRepair(run: Run, { sink, isDone }: Awaited<ReturnType<typeof openRepair>>): Promise<void> {
  const { chunk, video, remote } = run
  if (!isOwnEncoder(run)) {
    if (remote?.encoder === video.encoder)
      await encodeRemotely(run, remote, { ...chunk, threads: chunk.threads === 1 ? 1 : 0 }, sink)
    return
  }
  for (const leadS of LEADS_S) {
    if (isDone() || !((await tryPart(run, { ...chunk, leadS }, sink)) instanceof InexactSeek)) return
  }
}

function partOf({ videoId, generation, sourceNumber }: GenerationWithKey): FailedPart {
  return { videoId, generation, sourceNumber }
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

function renditionIds(plan: Plan, kind: Part['kind']): number[] {
  if (kind === 'audio') return audioTracksOf(plan).map(({ renditionId }) => renditionId)
  return (plan.videoTrack?.renditions ?? []).map(({ id }) => id)
}

/**
 * One thread for each chunk is cheapest while several run; a chunk that a viewer waits for, and the last of all, get as many as the
 * encoder chooses (0). With one thread a chunk always comes out with the same bytes. With more, x264 keeps to its bitrate cap by what
 * its threads have done so far, so segments that reach the cap come out with other bytes.
 */
async function chooseThreads(deps: RunDeps, { kind, segmentCount }: Part): Promise<0 | 1> {
  return kind === 'video' && (segmentCount <= URGENT_SEGMENTS || !(await hasPendingChunks(deps.db))) ? 0 : 1
}

/** Encodes a part once. Returns the error of a seek that was not clean. */
async function tryPart(run: Run, part: Part & { threads: number; leadS: number }, sink: ChunkSink) {
  const { deps, video, source, signal } = run
  const request = { sandbox: deps.sandbox, source, plan: video.plan, chunk: part, signal }
  try {
    if (part.kind === 'audio') {
      const findGain = (...track: [AudioTrackPlan, SealedSource]) => settleGain(run, ...track)
      return await encodeAudioChunk({ ...request, findGain, findDubSource: (dub) => findDubSource(run, dub) }, sink)
    }
    const afterLowest = isAwaitedBeginning(video.plan, part) ? () => waitForSound(run) : undefined
    return await encodeVideoChunk({ ...request, threads: part.threads === 0 ? 'auto' : 1, afterLowest }, sink)
  } catch (error) {
    if (error instanceof InexactSeek) return error
    throw error
  }
}

/**
 * Whether a viewer can play what comes first: one rung is enough for a video to be `ready`, a player starts with the lowest, and that
 * takes a third of the time of all. Its first seconds are then decoded twice. A part of a video is published as a whole.
 */
function isAwaitedBeginning({ cut }: Plan, { firstSegment, segmentCount }: Part): boolean {
  return cut === undefined && firstSegment === 0 && segmentCount <= URGENT_SEGMENTS
}

/** How long the other rungs of the beginning wait for its sound, if it takes longer than the lowest rung. */
const MAX_WAIT_FOR_SOUND_MS = 2_000

/** A video plays with its lowest rung and its sound: the other rungs would take the cores on which that is encoded. */
async function waitForSound({ deps, video, signal }: Run): Promise<void> {
  const { audioTrack } = video.plan
  if (!audioTrack || !(await isRunning(deps.db, { ...video, kind: 'audio', firstSegment: 0 }))) return
  const wait = AbortSignal.any([signal, AbortSignal.timeout(MAX_WAIT_FOR_SOUND_MS)])
  await waitForFirstSegment(deps, video, audioTrack.renditionId, wait)
  signal.throwIfAborted()
}

/**
 * The gain of an audio track, which all chunks have: measured once, and durable before the first of them is encoded, whichever that is.
 * @returns undefined where the audio stays as loud as it is
 */
async function settleGain(run: Run, audioTrack: AudioTrackPlan, source: SealedSource): Promise<number | undefined> {
  const { deps, video, signal } = run
  const { videoId, generation, plan } = video
  if (!plan.normalizesLoudness) return undefined
  const { renditionId } = audioTrack
  const settled = await findGain(deps.db, video, renditionId)
  if (settled !== undefined) return settled
  const track = [videoId, generation, renditionId].join('/')
  const inProgress = deps.gainsInProgress.get(track)
  if (inProgress) {
    await inProgress.catch(() => undefined) // its run may have been stopped: then it is measured here
    signal.throwIfAborted()
    return settleGain(run, audioTrack, source)
  }
  const measured = measureGain(deps.sandbox, source, { ...measuredAs(plan, audioTrack), signal }).then((gainDb) =>
    deps.write((tx) => setGain(tx, video, renditionId, gainDb)),
  )
  deps.gainsInProgress.set(track, measured)
  await measured.finally(() => deps.gainsInProgress.delete(track))
  return findGain(deps.db, video, renditionId)
}

/** Undefined: it is lost. */
async function findDubSource({ deps, chunk: { videoId } }: Run, { sourceNumber }: DubFile): Promise<SealedSource | undefined> {
  return (await isSourceGone(deps, { videoId, sourceNumber })) ? undefined : findSealedSource(deps, videoId, sourceNumber)
}

/** Records for the owner where the source ends early. */
async function saveEnd(run: Run, kind: Part['kind'], { missingFrames = 0, truncatedAtS }: ChunkEnd): Promise<void> {
  if (truncatedAtS !== undefined) await saveTruncation(run, kind, truncatedAtS)
  const { videoTrack } = run.video.plan
  if (videoTrack && missingFrames > TOLERATED_FRAMES) {
    const readFrames = videoTrack.frameCount - (videoTrack.heldFrames ?? 0) - missingFrames
    await saveTruncation(run, 'video', (readFrames * videoTrack.rateDen) / videoTrack.rateNum)
  }
}

/** Records for the owner that a stream of the source ends early. */
async function saveTruncation({ deps, video }: Run, stream: 'video' | 'audio', atS: number): Promise<void> {
  await deps.write((tx) => setStatusReason(tx, video, truncationReason(stream, atS, video.plan.durationS)))
}

/** Each decodes the video up to its own end: with more of them, one that encodes all the rest takes less time. */
const MAX_SEQUENTIAL_CHUNKS = 3

/**
 * Replaces a chunk by one without a seek. In a video that needs several of these no seek is exact: then one without a seek replaces
 * all unfinished chunks. Runs of replaced chunks are fenced off.
 */
async function runInSequence({ deps, chunk }: Run): Promise<void> {
  const { videoId, kind, firstSegment } = chunk
  await deps.write(async (tx) => {
    if (!(await isCurrentRun(tx, chunk))) return // another run has done this already
    const isSeekable = (await countSequentialChunks(tx, chunk)) < MAX_SEQUENTIAL_CHUNKS
    const [first, ...others] = isSeekable ? [chunk] : await listUnfinishedChunks(tx, chunk)
    if (!first) return
    for (const other of others) await replaceChunk(tx, other, [])
    await replaceChunk(tx, first, [sequentialChunk([first, ...others])])
    const extent = isSeekable ? 'this chunk is' : 'all unfinished chunks are'
    deps.log.info(
      { videoId, kind, segment: firstSegment },
      `video: does not decode cleanly after a seek, ${extent} encoded in sequence`,
    )
  })
}
