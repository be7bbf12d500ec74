import type { Logger } from 'pino'
import type { VideoFolders, VideoSessions } from '../catalogue/deletion.ts'
import { moveStatus, noteReason } from '../catalogue/status.ts'
import type { Db } from '../db/sqlite.ts'
import type { Write } from '../db/write.ts'
import { openSourceSeal } from '../ingest/source.ts'
import { findSource } from '../ingest/source-store.ts'
import type { Job } from '../jobs/dispatcher.ts'
import { newContentKey, unwrapContentKey, wrapContentKey } from '../protect/content-key.ts'
import type { MasterKey } from '../protect/master-key.ts'
import { isSealIntact } from '../protect/sealed-file.ts'
import { blobPath } from '../storage/folder.ts'
import { encodePictureChunk } from './chunk.ts'
import { AWAITED_SEGMENTS, type Chunk, inSequence, planChunks } from './chunk-plan.ts'
import {
  claimChunk,
  endRun,
  type FilmChunk,
  giveUpChunks,
  insertChunks,
  listUnfinishedChunks,
  mayPublish,
  replaceChunk,
} from './chunk-store.ts'
import { encoderFingerprint } from './encoder.ts'
import { findFilm, findUnfinished, findUnplanned, finishGeneration, insertGeneration, listPublished } from './film-store.ts'
import { planFilm } from './grid.ts'
import { MediaFailure, UncleanSeek } from './media-failure.ts'
import type { Plan } from './plan.ts'
import { addPosters } from './posters.ts'
import { probeSource } from './probe.ts'
import { FencedOff, type OpenFilm, openPublication, type Publication, type SegmentNews } from './publication.ts'
import { renewGeneration } from './renewal.ts'
import type { Sandbox, SealedSource } from './sandbox.ts'
import { encodeSoundChunk } from './sound-chunk.ts'

export type EncodeDeps = {
  db: Db
  write: Write
  nowS: () => number
  masterKey: MasterKey
  sandbox: Sandbox
  folders: VideoFolders
  news: SegmentNews
  log: Logger
  sessions: VideoSessions
}

/** How often a chunk is tried before the film fails: a run may be killed by the machine's own trouble. */
const ATTEMPTS = 3
/** A file may lack so many frames at its end without anybody noticing. */
const TOLERATED_FRAMES = 3

/**
 * What there is to do for films, in the order in which it matters: examine a new source, encode the most wanted chunk, finish a film.
 * The database is the truth; what is in hand is remembered only so that it is not begun twice in this process.
 */
export function createEncodeWork(deps: EncodeDeps) {
  const inHand = new Set<string>()

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    return (await claimPlan()) ?? (await claimRun(urgentOnly)) ?? (await claimFinish())
  }

  async function claimPlan(): Promise<Job | undefined> {
    const videoId = await findUnplanned(deps.db, [...inHand])
    if (!videoId) return undefined
    return held(videoId, (signal) => planVideo(deps, videoId, signal))
  }

  async function claimRun(urgentOnly: boolean): Promise<Job | undefined> {
    const run = await deps.write((tx) => claimChunk(tx, urgentOnly))
    return run && { key: run.videoId, run: (signal) => runChunk(deps, run, signal) }
  }

  async function claimFinish(): Promise<Job | undefined> {
    const film = await findUnfinished(deps.db, [...inHand])
    return film && held(film.videoId, (signal) => finishFilm(deps, film.videoId, film.generation, signal))
  }

  function held(videoId: string, run: (signal: AbortSignal) => Promise<void>): Job {
    inHand.add(videoId)
    return { key: videoId, run: (signal) => run(signal).finally(() => inHand.delete(videoId)) }
  }

  return { claim }
}

/** From a source to its plan: probe, ladder, grid, content key and chunks, in one transaction. */
async function planVideo(deps: EncodeDeps, videoId: string, signal: AbortSignal): Promise<void> {
  const source = await openSource(deps, videoId)
  if (!source) return
  await deps.write((tx) => moveStatus(tx, videoId, 'Processing'))
  try {
    const plan = planFilm(await probeSource(deps.sandbox, source, signal))
    const generation = 1
    await deps.write(async (tx) => {
      const wrappedContentKey = wrapContentKey(deps.masterKey, videoId, generation, newContentKey())
      await insertGeneration(tx, {
        videoId,
        generation,
        wrappedContentKey,
        plan,
        encoder: encoderFingerprint(deps.sandbox),
        createdAtS: deps.nowS(),
      })
      await insertChunks(tx, videoId, generation, planChunks(plan))
    })
  } catch (error) {
    signal.throwIfAborted()
    await failVideo(deps, videoId, error)
  }
}

/** Encodes one chunk and publishes its segments. */
async function runChunk(deps: EncodeDeps, run: FilmChunk, signal: AbortSignal): Promise<void> {
  const film = await openFilm(deps, run.videoId, run.generation)
  const source = await openSource(deps, run.videoId)
  if (!film || !source) return // deleted meanwhile
  if (film.encoder !== encoderFingerprint(deps.sandbox)) return renewGeneration(deps, film, run)
  const chunk = await unpublishedPart(deps, film.plan, run)
  const isSought = !chunk.fromStart && chunk.firstSegment > 0
  const publication = openPublication({ ...deps, segments: deps.folders.segments }, film, run, isSought)
  try {
    if (chunk.segmentCount > 0) await encodeChunk(deps, film, source, chunk, signal, publication)
    await publication.finish()
  } catch (error) {
    await publication.abandon()
    return settleFailedRun(deps, film, run, error, signal)
  }
  if (run.kind === 'picture' && run.firstSegment === 0) await addPosters(deps, film, source, signal)
}

type Part = Pick<Chunk, 'kind' | 'firstSegment' | 'segmentCount' | 'fromStart'>

/** What a run cut off by a crash left to do: the segments it had published at the chunk's beginning stay. */
async function unpublishedPart(deps: EncodeDeps, plan: Plan, run: FilmChunk): Promise<Part> {
  const renditionIds =
    run.kind === 'sound' ? [plan.sound?.renditionId ?? 0] : (plan.picture?.renditions ?? []).map(({ id }) => id)
  const end = run.firstSegment + run.segmentCount
  let firstSegment = end
  for (const renditionId of renditionIds) {
    const published = new Set(await listPublished(deps.db, run, renditionId, run.firstSegment))
    let missing = run.firstSegment
    while (missing < end && published.has(missing)) missing++
    firstSegment = Math.min(firstSegment, missing)
  }
  return { kind: run.kind, firstSegment, segmentCount: end - firstSegment, fromStart: run.fromStart }
}

async function encodeChunk(
  deps: EncodeDeps,
  film: OpenFilm,
  source: SealedSource,
  chunk: Part,
  signal: AbortSignal,
  publication: Publication,
): Promise<void> {
  const sink = { onInit: publication.addInit, onSegment: publication.addSegment }
  const request = { sandbox: deps.sandbox, source, plan: film.plan, chunk, signal }
  if (chunk.kind === 'sound') return encodeSoundChunk(request, sink)
  // Side by side one thread each is cheapest; the chunk that somebody waits for is made as fast as the machine can.
  const threads = chunk.segmentCount <= AWAITED_SEGMENTS ? 'auto' : 1
  const { missingFrames } = await encodePictureChunk({ ...request, threads }, sink)
  if (missingFrames > TOLERATED_FRAMES) {
    const reason = `The file breaks off ${missingFrames} frames before the end that it announces; its last picture stands in for them.`
    await deps.write((tx) => noteReason(tx, film.videoId, reason))
  }
}

async function settleFailedRun(
  deps: EncodeDeps,
  film: OpenFilm,
  run: FilmChunk,
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  if (error instanceof FencedOff) return
  if (signal.aborted) {
    await deps.write((tx) => endRun(tx, run, 'waiting')) // given back at a stop
    return
  }
  if (error instanceof UncleanSeek) {
    deps.log.info(
      { videoId: film.videoId, segment: run.firstSegment },
      'the source does not decode cleanly after a seek; it goes on in sequence',
    )
    await continueInSequence(deps, film, run)
    return
  }
  // What is said of the media itself does not change by trying again.
  if (!(error instanceof MediaFailure) && run.attempt < ATTEMPTS) {
    deps.log.warn(
      { err: error, videoId: film.videoId, segment: run.firstSegment, attempt: run.attempt },
      'a chunk failed and is tried again',
    )
    await deps.write((tx) => endRun(tx, run, 'waiting'))
    return
  }
  if (await deps.write((tx) => endRun(tx, run, 'failed'))) await failVideo(deps, film.videoId, error)
}

/** Puts one chunk without a seek in the place of all that are unfinished; their runs are fenced off. */
async function continueInSequence(deps: EncodeDeps, film: OpenFilm, run: FilmChunk): Promise<void> {
  await deps.write(async (tx) => {
    if (!(await mayPublish(tx, run))) return // another run has done this already
    const [first, ...others] = await listUnfinishedChunks(tx, film.videoId, film.generation, run.kind)
    if (!first) return
    for (const chunk of others) await replaceChunk(tx, chunk, [])
    await replaceChunk(tx, first, [inSequence([first, ...others])])
  })
}

/** Checks the source once more, makes what is missing of the posters, and notes that every rendition is there. */
async function finishFilm(deps: EncodeDeps, videoId: string, generation: number, signal: AbortSignal): Promise<void> {
  const film = await openFilm(deps, videoId, generation)
  const source = await openSource(deps, videoId)
  if (!film || !source) return // deleted meanwhile
  if (!(await isSourceIntact(deps, videoId))) return failVideo(deps, videoId, new MediaFailure('Encoding error', CHANGED_ON_DISK))
  await addPosters(deps, film, source, signal)
  await deps.write((tx) => finishGeneration(tx, film, deps.nowS()))
}

async function failVideo(deps: EncodeDeps, videoId: string, error: unknown): Promise<void> {
  // Of a source that the disk has changed, nothing that was found says anything about what was uploaded.
  const found = (await isSourceIntact(deps, videoId)) ? error : new MediaFailure('Encoding error', CHANGED_ON_DISK)
  const isKnown = found instanceof MediaFailure
  if (!isKnown) deps.log.error({ err: error, videoId }, 'a film could not be encoded')
  const { status, message } = isKnown ? found : new MediaFailure('Encoding error', CAUSE_IN_LOG)
  await deps.write(async (tx) => {
    await moveStatus(tx, videoId, status, message)
    await giveUpChunks(tx, videoId)
  })
}

const CHANGED_ON_DISK = 'The uploaded file was changed on this server’s disk. Check the disk and upload it again.'
const CAUSE_IN_LOG = 'The film could not be encoded on this server. Its log says why; then upload the film again.'

async function isSourceIntact(deps: EncodeDeps, videoId: string): Promise<boolean> {
  const row = await findSource(deps.db, videoId)
  if (!row?.wrappedKey) return true // deleted: nobody asks any more
  return isSealIntact(
    blobPath(deps.folders.sources, row.file),
    openSourceSeal(deps, { ...row, wrappedKey: row.wrappedKey }),
    row.macs,
  )
}

async function openSource(deps: EncodeDeps, videoId: string): Promise<SealedSource | undefined> {
  const row = await findSource(deps.db, videoId)
  if (!row?.wrappedKey) return undefined
  const seal = openSourceSeal(deps, { ...row, wrappedKey: row.wrappedKey })
  return { path: blobPath(deps.folders.sources, row.file), keyHex: seal.key.toString('hex'), ivHex: seal.iv.toString('hex') }
}

async function openFilm(deps: EncodeDeps, videoId: string, generation: number): Promise<OpenFilm | undefined> {
  const row = await findFilm(deps.db, videoId, generation)
  if (!row?.wrappedContentKey) return undefined
  return {
    videoId,
    generation,
    plan: row.plan,
    encoder: row.encoder,
    contentKey: unwrapContentKey(deps.masterKey, videoId, generation, row.wrappedContentKey),
  }
}
