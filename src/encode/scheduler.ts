import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import type { VideoFolders, VideoSessions } from '../catalogue/deletion.ts'
import { moveStatus, setStatusReason } from '../catalogue/status.ts'
import { newContentKey, unwrapContentKey, wrapContentKey } from '../crypto/content-key.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { isSealIntact } from '../crypto/sealed-file.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure, isHostFailure } from '../errors.ts'
import { openSourceSeal } from '../ingest/source.ts'
import { findSource } from '../ingest/source-store.ts'
import type { Job } from '../jobs/dispatcher.ts'
import type { ClaimFilter } from '../jobs/queue.ts'
import { blobPath, isEmptyFolder } from '../storage/folder.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { addPosters } from './add-posters.ts'
import { encodeAudioChunk } from './audio-chunk.ts'
import { type ChunkSink, encodeVideoChunk, TOLERATED_FRAMES } from './chunk.ts'
import { type Chunk, planChunks, sequentialChunk, URGENT_SEGMENTS } from './chunk-plan.ts'
import { addChunks, type ChunkQueue, claimChunk, forVideo, replaceChunk } from './chunk-queue.ts'
import {
  abandonChunks,
  endRun,
  hasPendingChunks,
  isUrgent,
  listUnfinishedChunks,
  mayPublish,
  URGENT_PRIORITY,
  type VideoChunk,
} from './chunk-store.ts'
import { encoderFingerprint } from './encoder.ts'
import {
  countSegments,
  findGeneration,
  findUnfinished,
  findUnplanned,
  finishGeneration,
  insertGeneration,
  listPublishedNumbers,
  renditionSizes,
} from './generation-store.ts'
import { planVideo } from './grid.ts'
import { InexactSeek, MediaFailure, truncationReason } from './media-failure.ts'
import { type Plan, plannedSegmentCount } from './plan.ts'
import { probeSource } from './probe.ts'
import { type OpenGeneration, openPublication, type SegmentEvents, StaleRunError } from './publication.ts'
import { openRepair } from './repair.ts'
import { replaceGeneration, restartGeneration } from './restart-generation.ts'
import { isEncodingAllowed, type Sandbox, type SealedSource } from './sandbox.ts'

export type EncodeDeps = {
  db: Db
  slowDb: Db
  write: Write
  wallNowS: () => number
  masterKey: MasterKey
  sandbox: Sandbox
  folders: VideoFolders
  chunkQueue: ChunkQueue
  news: SegmentEvents
  log: Logger
  sessions: VideoSessions
  /** Ends what runs for a video. */
  stopJobs(videoId: string): Promise<void>
  /** Whether the disk has room for what an encode makes. */
  hasRoom(): Promise<boolean>
  /** The video whose source this server made itself, if there is one: it is encoded where uploads may not be opened. */
  findOwnVideo(): Promise<string | undefined>
}

/** By what means work may be done, and of which video alone. */
type Allowed = { deps: EncodeDeps; only?: string }

/** How often work on a video may fail before the video does; trouble of the whole machine does not count. */
const TRIES = 3
const REST_MS = 30_000
/** Trouble of the machine is over all at once, and what would only meet it again does not begin: see `hasRoom`. */
const MACHINE_REST_MS = 5_000
/** How soon a disk without room is looked at again. */
const LOOK_FOR_ROOM_MS = 2_000
/** An ffmpeg that chooses its threads itself can use about so many cores. */
const CORES_OF_ONE = 4
/** A video that takes longer for its first seconds holds up the others no more. */
const HURRY_MS = 5_000

/**
 * What there is to do for videos, in the order in which it matters: examine a new source, encode the most wanted chunk, finish a video.
 * The database is the truth. What is in hand is remembered only so that it is not begun twice in this process, and a video that met
 * trouble rests for a while, so that a full disk is not asked again as fast as the machine can.
 * @param wake says that there may be something to claim again
 */
export function createEncodeScheduler(deps: EncodeDeps, wake: () => void) {
  const inHand = new Set<string>()
  const resting = new Set<string>()
  const failures = new Map<string, number>()
  /** Runs that have ended and could not be given back yet. */
  const lost: VideoChunk[] = []
  /** Runs of pictures that somebody waits for right now. */
  const hurried = new Set<VideoChunk>()

  let looksForRoom = false
  let isSandboxMissing = false

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    if (!(await deps.hasRoom())) {
      if (!looksForRoom) setTimeout(lookForRoom, LOOK_FOR_ROOM_MS).unref()
      looksForRoom = true
      return undefined
    }
    const allowed = await findAllowed()
    if (!allowed) return undefined
    if (urgentOnly) return (await claimRun(allowed, true)) ?? (await claimPlan(allowed))
    return (await claimPlan(allowed)) ?? (await claimRun(allowed, false)) ?? (await claimFinish(allowed))
  }

  /** What may be worked on now, and how. Undefined: nothing; uploads wait for a sandbox. */
  async function findAllowed(): Promise<Allowed | undefined> {
    if (await isEncodingAllowed(deps.sandbox)) {
      if (isSandboxMissing) deps.log.info('sandbox: bubblewrap runs, uploads are encoded')
      isSandboxMissing = false
      return { deps }
    }
    isSandboxMissing = true
    const only = await deps.findOwnVideo()
    const sandbox = { ...deps.sandbox, weak: true }
    return only === undefined ? undefined : { deps: { ...deps, sandbox, chunkQueue: forVideo(only, deps.chunkQueue) }, only }
  }

  function lookForRoom() {
    looksForRoom = false
    wake()
  }

  async function claimPlan({ deps, only }: Allowed): Promise<Job | undefined> {
    const videoId = await findUnplanned(deps.db, [...inHand, ...resting], only)
    return videoId === undefined ? undefined : jobOf(videoId, (signal) => planNextVideo(deps, videoId, signal))
  }

  async function claimFinish({ deps, only }: Allowed): Promise<Job | undefined> {
    const video = await findUnfinished(deps.db, [...inHand, ...resting], only)
    return video && jobOf(video.videoId, (signal) => finishVideo(deps, video.videoId, video.generation, signal))
  }

  async function claimRun({ deps }: Allowed, urgentOnly: boolean): Promise<Job | undefined> {
    for (const run of lost.splice(0)) await giveBack(run)
    // What nobody waits for would take its share of the cores that a hurried run keeps busy, and double its time.
    const isHurried = hurried.size * CORES_OF_ONE >= availableParallelism()
    const which = (): ClaimFilter => ({
      upToPriority: urgentOnly || isHurried ? URGENT_PRIORITY : undefined,
      except: [...resting],
    })
    const taken = await claimChunk(deps.write, deps.chunkQueue, which)
    if (!taken) return undefined
    const { run, hold } = taken
    if (isUrgent(run)) hurry(run)
    const work = (signal: AbortSignal) =>
      runChunk(deps, run, signal, () => calm(run))
        .catch(async (error) => {
          if (!signal.aborted) resting.add(run.videoId) // before it waits again, or a claim would take it at once
          await giveBack(run)
          throw error
        })
        .finally(() => calm(run))
    return { key: run.videoId, run: (signal) => minded(run.videoId, (signal) => hold(() => work(signal)), signal) }
  }

  function hurry(run: VideoChunk) {
    hurried.add(run)
    setTimeout(() => calm(run), HURRY_MS).unref()
  }

  function calm(run: VideoChunk) {
    if (hurried.delete(run)) wake()
  }

  async function giveBack(run: VideoChunk): Promise<void> {
    await deps.write((tx) => endRun(tx, run, 'pending')).catch(() => lost.push(run))
  }

  function jobOf(videoId: string, work: (signal: AbortSignal) => Promise<void>): Job {
    inHand.add(videoId)
    return { key: videoId, run: (signal) => minded(videoId, work, signal).finally(() => inHand.delete(videoId)) }
  }

  /** Runs a piece of work; what it throws is trouble on this machine, or a bug, or an end that somebody asked for. */
  async function minded(videoId: string, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await work(signal)
      failures.delete(videoId)
    } catch (error) {
      if (signal.aborted) resting.delete(videoId)
      else await afterTrouble(videoId, error, signal)
    }
  }

  async function afterTrouble(videoId: string, error: unknown, signal: AbortSignal): Promise<void> {
    const ofTheMachine = isHostFailure(error)
    const count = (failures.get(videoId) ?? 0) + (ofTheMachine ? 0 : 1)
    failures.set(videoId, count)
    resting.add(videoId)
    if (!ofTheMachine && (count >= TRIES || (await isSourceGone(deps, videoId)))) {
      failures.delete(videoId)
      await failVideo(deps, videoId, error, signal).finally(() => resting.delete(videoId))
      return
    }
    deps.log.warn({ err: error, videoId }, 'work on a video failed and is tried again')
    setTimeout(
      () => {
        resting.delete(videoId)
        wake()
      },
      ofTheMachine ? MACHINE_REST_MS : REST_MS,
    ).unref()
  }

  return { claim }
}

/** From a source to its plan: probe, ladder, grid, content key and chunks, in one transaction. */
async function planNextVideo(deps: EncodeDeps, videoId: string, signal: AbortSignal): Promise<void> {
  const source = await openSource(deps, videoId)
  if (!source) return // deleted meanwhile
  await deps.write((tx) => moveStatus(tx, videoId, 'Processing'))
  const plan = await planSource(deps, source, signal)
  if (plan instanceof MediaFailure) return failVideo(deps, videoId, plan, signal)
  const generation = 1
  await deps.write(async (tx) => {
    const wrappedContentKey = wrapContentKey(deps.masterKey, videoId, generation, newContentKey())
    const encoder = encoderFingerprint(deps.sandbox)
    const video = { videoId, generation, wrappedContentKey, plan, encoder, createdAtS: deps.wallNowS() }
    if (await insertGeneration(tx, video)) await addChunks(tx, deps.chunkQueue, videoId, generation, planChunks(plan))
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

/** Encodes one chunk and publishes its segments. @param published called when they are out and nobody waits any more */
async function runChunk(deps: EncodeDeps, run: VideoChunk, signal: AbortSignal, published: () => void): Promise<void> {
  const video = await openGeneration(deps, run.videoId, run.generation)
  const source = await openSource(deps, run.videoId)
  if (!video || !source) return // deleted meanwhile
  const part = await unpublishedPart(deps, video.plan, run)
  if (part.segmentCount > 0) {
    if (!(await publishPart(deps, { video, source }, run, part, signal))) return
  } else {
    if (isBeginning(run)) await addPosters(deps, video, source, signal)
    if (!(await repairChunk(deps, { video, source }, run, signal))) return
  }
  published()
}

/** Whether posters are drawn with this chunk. */
function isBeginning({ kind, firstSegment }: VideoChunk): boolean {
  return kind === 'video' && firstSegment === 0
}

/** Runs works side by side to their ends. What one throws ends the others, and is thrown when all have ended. */
async function endTogether(signal: AbortSignal, works: readonly ((signal: AbortSignal) => Promise<unknown>)[]): Promise<void> {
  const failure = new AbortController()
  const either = AbortSignal.any([signal, failure.signal])
  await Promise.all(works.map((work) => work(either).catch((error) => failure.abort(error))))
  either.throwIfAborted()
}

type Opened = { video: OpenGeneration; source: SealedSource }

/** @returns false when something else is done about the chunk, or the video */
async function publishPart(
  deps: EncodeDeps,
  { video, source }: Opened,
  run: VideoChunk,
  part: Part,
  signal: AbortSignal,
): Promise<boolean> {
  if (video.encoder !== encoderFingerprint(deps.sandbox)) {
    await restartGeneration(deps, video, run, 'the encoder has changed since the last one was begun')
    return false
  }
  const isSought = !part.decodesFromStart && part.firstSegment > 0
  const publication = openPublication({ ...deps, segments: deps.folders.segments }, video, run, isSought)
  const threads = await chooseThreads(deps, part)
  try {
    const sink = { onInit: publication.addInit, onSegment: publication.addSegment }
    // Posters are drawn meanwhile, since `ready` waits for them; the chunk is not done before, so that a crash forgets none.
    await endTogether(signal, [
      (signal) => encodePart(deps, { video, source }, { ...part, threads }, sink, signal),
      async (signal) => isBeginning(run) && addPosters(deps, video, source, signal),
    ])
    await publication.finish(threads)
    return true
  } catch (error) {
    await publication.abandon()
    if (error instanceof InexactSeek) await continueInSequence(deps, video, run)
    // What is said of the media itself does not change by trying again.
    else if (error instanceof MediaFailure) await failVideo(deps, video.videoId, error, signal, run)
    else if (!(error instanceof StaleRunError)) throw error
    return false
  }
}

/**
 * Encodes a chunk again whose segments are all published, some of them damaged. What comes out with the bytes that were published is
 * put back. For the rest the video gets its next generation; without its source it fails.
 */
async function repairChunk(deps: EncodeDeps, { video, source }: Opened, run: VideoChunk, signal: AbortSignal): Promise<boolean> {
  const { videoId } = video
  const repair = await openRepair({ ...deps, segments: deps.folders.segments }, video, run)
  const mayComeOutEqual = video.encoder === encoderFingerprint(deps.sandbox) && existsSync(source.path)
  try {
    await repair.keepWhole()
    if (!repair.isDone() && mayComeOutEqual) await encodePart(deps, { video, source }, run, repair.sink, signal)
    if (repair.isDone()) {
      await repair.finish()
      return true
    }
  } catch (error) {
    if (error instanceof StaleRunError) return false
    if (!(error instanceof MediaFailure || error instanceof InexactSeek)) throw error
  }
  if (await isEmptyFolder(deps.folders.sources)) throw SOURCES_AWAY
  if (await isSourceIntact(deps, videoId, signal))
    await restartGeneration(deps, video, run, 'a damaged segment came out with other bytes')
  else await settleFailure(deps, videoId, LOST, run)
  return false
}

const SOURCES_AWAY = new Failure(
  'unavailable',
  'The folder of uploaded files is empty. Mount its disk, or restore it from a backup.',
)

type Part = Pick<Chunk, 'kind' | 'firstSegment' | 'segmentCount' | 'decodesFromStart'>

/** What a run cut off by a crash left to do: the segments it had published at the chunk's beginning stay. */
async function unpublishedPart(deps: EncodeDeps, plan: Plan, run: VideoChunk): Promise<Part> {
  const renditionIds =
    run.kind === 'audio' ? [plan.audioTrack?.renditionId ?? 0] : (plan.videoTrack?.renditions ?? []).map(({ id }) => id)
  const end = run.firstSegment + run.segmentCount
  let firstSegment = end
  for (const renditionId of renditionIds) {
    const published = new Set(await listPublishedNumbers(deps.db, run, renditionId, run.firstSegment))
    let missing = run.firstSegment
    while (missing < end && published.has(missing)) missing++
    firstSegment = Math.min(firstSegment, missing)
  }
  return { kind: run.kind, firstSegment, segmentCount: end - firstSegment, decodesFromStart: run.decodesFromStart }
}

/**
 * Side by side one thread each is cheapest; a chunk that somebody waits for, or the last of all, is made as fast as the machine can (0).
 * With one thread the same chunk always comes out with the same bytes; with more, x264 keeps its bitrate's cap by what its threads have
 * done so far, so that segments which meet the cap come out with others.
 */
async function chooseThreads(deps: EncodeDeps, { kind, segmentCount }: Part): Promise<0 | 1> {
  return kind === 'video' && (segmentCount <= URGENT_SEGMENTS || !(await hasPendingChunks(deps.db))) ? 0 : 1
}

async function encodePart(
  deps: EncodeDeps,
  { video, source }: Opened,
  part: Part & { threads: number },
  sink: ChunkSink,
  signal: AbortSignal,
): Promise<void> {
  const request = { sandbox: deps.sandbox, source, plan: video.plan, chunk: part, signal }
  if (part.kind === 'audio') {
    const { breaksOffAtS } = await encodeAudioChunk(request, sink)
    if (breaksOffAtS !== undefined) await noteBreak(deps, video, 'audio', breaksOffAtS)
    return
  }
  const { missingFrames } = await encodeVideoChunk({ ...request, threads: part.threads === 0 ? 'auto' : 1 }, sink)
  const { videoTrack } = video.plan
  if (videoTrack && missingFrames > TOLERATED_FRAMES) {
    const readFrames = videoTrack.frameCount - (videoTrack.heldFrames ?? 0) - missingFrames
    await noteBreak(deps, video, 'video', (readFrames * videoTrack.rateDen) / videoTrack.rateNum)
  }
}

async function noteBreak(deps: EncodeDeps, video: OpenGeneration, stream: 'video' | 'audio', atS: number): Promise<void> {
  await deps.write((tx) => setStatusReason(tx, video.videoId, truncationReason(stream, atS, video.plan.durationS)))
}

/** Puts one chunk without a seek in the place of all that are unfinished; their runs are fenced off. */
async function continueInSequence(deps: EncodeDeps, video: OpenGeneration, run: VideoChunk): Promise<void> {
  const { videoId } = video
  deps.log.info({ videoId, segment: run.firstSegment }, 'the source does not decode cleanly after a seek; it goes on in sequence')
  await deps.write(async (tx) => {
    if (!(await mayPublish(tx, run))) return // another run has done this already
    const [first, ...others] = await listUnfinishedChunks(tx, video.videoId, video.generation, run.kind)
    if (!first) return
    for (const chunk of others) await replaceChunk(tx, deps.chunkQueue, chunk, [])
    await replaceChunk(tx, deps.chunkQueue, first, [sequentialChunk([first, ...others])])
  })
}

/** Checks the source once more, and notes that every rendition is there. */
async function finishVideo(deps: EncodeDeps, videoId: string, generation: number, signal: AbortSignal): Promise<void> {
  const video = await openGeneration(deps, videoId, generation)
  const source = await openSource(deps, videoId)
  if (!video || !source) return // deleted meanwhile
  if (!(await isSourceIntact(deps, videoId, signal))) return settleFailure(deps, videoId, CHANGED_ON_DISK)
  const missing = plannedSegmentCount(video.plan) - (await countSegments(deps.slowDb, video))
  if (missing !== 0) throw new Error(`${missing} segments of a video are missing although all its chunks are done`)
  const sizes = await renditionSizes(deps.slowDb, video)
  const segmentBytes = sizes.values().reduce((sum, sizeBytes) => sum + sizeBytes, 0)
  const replaced = await deps.write(async (tx) => {
    const replaced = await replaceGeneration(deps, tx, video)
    const isFinished = await finishGeneration(tx, video, { segmentBytes, nowS: deps.wallNowS() })
    // Of a video that was whole before, this is no news to its owner.
    if (isFinished && !replaced) await addVideoEvents(tx, 'video:readyall', [videoId])
    return replaced
  })
  await replaced?.()
}

/** Ends a video that cannot be encoded. Of a source that the disk has changed, nothing that was found says anything about what was uploaded. */
async function failVideo(
  deps: EncodeDeps,
  videoId: string,
  error: unknown,
  signal: AbortSignal,
  run?: VideoChunk,
): Promise<void> {
  const isIntact = await isSourceIntact(deps, videoId, signal)
  const isKnown = error instanceof MediaFailure
  if (!isKnown) deps.log.error({ err: error, videoId }, 'a video could not be encoded')
  await settleFailure(deps, videoId, !isIntact ? CHANGED_ON_DISK : isKnown ? error : CAUSE_IN_LOG, run)
}

/** One transaction: the run's end, the video's state, and the chunks that are not needed any more. What still encodes them is stopped. */
async function settleFailure(deps: EncodeDeps, videoId: string, failure: MediaFailure, run?: VideoChunk): Promise<void> {
  const { isSettled, hasFailed } = await deps.write(async (tx) => {
    // Fenced off: another run speaks for the video.
    if (run && !(await endRun(tx, run, 'failed'))) return { isSettled: false, hasFailed: false }
    const hasFailed = await moveStatus(tx, videoId, failure.status, failure.message)
    await abandonChunks(tx, videoId)
    return { isSettled: true, hasFailed }
  })
  if (hasFailed) deps.log.info({ videoId, status: failure.status, reason: failure.message }, 'video: failed')
  if (isSettled) void deps.stopJobs(videoId) // not awaited: it waits for the run that came here, too
}

const CHANGED_ON_DISK = new MediaFailure(
  'Encoding error',
  'The uploaded file was changed on this server’s disk. Check the disk and upload it again.',
)
const CAUSE_IN_LOG = new MediaFailure(
  'Encoding error',
  'The video could not be encoded on this server. Its log says why; then upload the video again.',
)

const LOST = new MediaFailure(
  'Encoding error',
  'A part of the video was lost on this server’s disk, and so was the uploaded file. Check the disk and upload the video again.',
)

async function isSourceIntact(deps: EncodeDeps, videoId: string, signal: AbortSignal): Promise<boolean> {
  const row = await findSource(deps.db, videoId)
  if (!row?.wrappedKey) return true // deleted: nobody asks any more
  const seal = openSourceSeal(deps, { ...row, wrappedKey: row.wrappedKey })
  return isSealIntact(blobPath(deps.folders.sources, row.file), seal, row.macs, signal)
}

/** A file that is missing from its folder does not come back; a folder that is missing may be a disk that is mounted again. */
async function isSourceGone(deps: EncodeDeps, videoId: string): Promise<boolean> {
  const source = await openSource(deps, videoId)
  return source !== undefined && existsSync(dirname(source.path)) && !existsSync(source.path)
}

async function openSource(deps: EncodeDeps, videoId: string): Promise<SealedSource | undefined> {
  const row = await findSource(deps.db, videoId)
  if (!row?.wrappedKey) return undefined
  const seal = openSourceSeal(deps, { ...row, wrappedKey: row.wrappedKey })
  return {
    path: blobPath(deps.folders.sources, row.file),
    keyHex: seal.key.toString('hex'),
    ivHex: seal.iv.toString('hex'),
    sizeBytes: row.sizeBytes,
  }
}

/** A video with what opens it; undefined once its video is deleted. */
export async function openGeneration(
  deps: Pick<EncodeDeps, 'db' | 'masterKey'>,
  videoId: string,
  generation: number,
): Promise<OpenGeneration | undefined> {
  const row = await findGeneration(deps.db, videoId, generation)
  if (!row?.wrappedContentKey) return undefined
  return {
    videoId,
    generation,
    plan: row.plan,
    encoder: row.encoder,
    contentKey: unwrapContentKey(deps.masterKey, videoId, generation, row.wrappedContentKey),
  }
}
