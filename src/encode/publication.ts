import { hash, randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { createSegmentIvDeriver, decryptSegment, deriveWindowKey, encryptSegment } from '../crypto/content-key.ts'
import { windowOfAudioSegment, windowOfVideoSegment } from '../crypto/key-window.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown, type Write } from '../db/write.ts'
import type { Claim } from '../jobs/claims.ts'
import type { SignalData, Signals } from '../signals/signals.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import { endRun, isCurrentRun, reopenChunk, type VideoChunk } from './chunk-store.ts'
import { listDamaged } from './damage-store.ts'
import type { EncodeCounters } from './encode-counters.ts'
import { findSegment, insertSegment, moveToReadyIfPlayable, type NewSegment } from './generation-store.ts'
import { gridFor, type Plan } from './plan.ts'

/** A generation with its plan and its unwrapped content key, while it is encoded or read. */
export type GenerationWithKey = GenerationKey & { plan: Plan; encoder: string; sourceNumber: number; contentKey: Buffer }

export type PublicationDeps = {
  db: Db
  write: Write
  segments: BlobStore
  /** On the run of the chunk. */
  claim: Claim
  signals: Signals
  counters: EncodeCounters
  log: Logger
}

/** The run was fenced off: its video was deleted, or the chunk was given to another run. Not a failure. */
export class StaleRunError extends Error {}

/** How a chunk was encoded. `threads` 0: chosen by the encoder. No `workerId`: by this server. */
export type Encoded = { threads: 0 | 1; workerId?: string }

/** How another encoder stores the segments of one run by itself. */
export type SegmentStoring = {
  /** What encrypts a segment. */
  keysOf(renditionId: number, number: number): [key: Buffer, iv: Buffer]
  /** What its blob is called. */
  nameOf(renditionId: number, number: number): string
  /** Holds a segment whose blob is there: these clear bytes, encrypted with its keys. */
  addStored(renditionId: number, number: number, clear: Buffer): void
}

/** Where one run of a chunk puts its clear segments. */
export type Publication = {
  addInit(renditionId: number, init: Buffer): void
  addSegment(renditionId: number, number: number, clear: Buffer): Promise<void>
  /** Another encoder encrypts and stores segments itself. */
  storing: SegmentStoring
  /** Publishes the held segments and marks the chunk done, in one transaction. */
  finish(encoded: Encoded): Promise<void>
  /** A hash of the held segments: equal for equal frames from one encoder. */
  digestHeld(): string
  /** Removes the held segments: the run failed, or begins again. */
  abandon(): Promise<void>
}

/**
 * Takes the clear segments of one run of a chunk, encrypts and stores each, and publishes them: each immediately when the run
 * decodes from the video's start; all together in `finish` when they are held: when it starts with a seek, since only the end shows a
 * clean decode, or is another machine's.
 */
export function openPublication(
  deps: PublicationDeps,
  video: GenerationWithKey,
  chunk: VideoChunk,
  isHeld: boolean,
): Publication {
  const inits = new Map<number, Buffer>()
  const held: NewSegment[] = []
  let storeSegment = createSegmentWriter(deps, video, chunk.kind)

  const [encryptStored, nameOf] = [segmentCipher(video, chunk.kind), newSegmentNames(video)]

  function addStored(renditionId: number, number: number, clear: Buffer): void {
    const file = nameOf(renditionId, number)
    held.push({
      init: getInit(renditionId),
      renditionId,
      number,
      ...describeStored(file, encryptStored(renditionId, number, clear)),
    })
  }

  async function addSegment(renditionId: number, number: number, clear: Buffer): Promise<void> {
    const segment = { init: getInit(renditionId), ...(await storeSegment(renditionId, number, clear)) }
    if (isHeld) held.push(segment)
    else await publish([segment])
  }

  function getInit(renditionId: number): Buffer {
    const init = inits.get(renditionId)
    if (!init) throw new Error(`rendition ${renditionId} has a segment before its init segment`)
    return init
  }

  async function publish(segments: readonly NewSegment[], finished?: Encoded): Promise<void> {
    const change = async (tx: Db) => {
      if (!(await isCurrentRun(tx, chunk))) throw new StaleRunError()
      const late: NewSegment[] = []
      for (const segment of segments) if (!(await insertSegment(tx, video, segment))) late.push(segment)
      const isReady = segments.some(({ number }) => number === 0) && (await moveToReadyIfPlayable(tx, video))
      if (finished) await finishRun(tx, { ...chunk, threads: finished.threads }, finished.workerId)
      return { late, isReady }
    }
    const { late, isReady } = await (finished ? settle(change) : deps.write(change)).catch(async (error) => {
      if (!isCommitOutcomeUnknown(error)) await removeSegments(segments)
      throw error
    })
    if (isReady) deps.log.info({ videoId: video.videoId }, 'video: ready')
    await removeSegments(late)
    deps.counters.segments += segments.length
    const { videoId, generation } = video
    for (const { renditionId, number } of segments)
      void deps.signals.send('segment-published', { videoId, generation, renditionId, number })
  }

  async function settle<T>(change: (tx: Db) => Promise<T>): Promise<T> {
    const settled = await deps.claim.settle(change)
    if (settled === undefined) throw new StaleRunError()
    return settled
  }

  async function removeSegments(segments: readonly NewSegment[]): Promise<void> {
    for (const segment of segments) await deps.segments.remove(segment.file)
  }

  return {
    addInit: (renditionId, init) => void inits.set(renditionId, init),
    addSegment,
    storing: { keysOf: segmentKeys(video, chunk.kind), nameOf, addStored },
    finish: (encoded) => publish(held.splice(0), encoded),
    digestHeld() {
      const digests = held.map(({ renditionId, number, sha256 }) => `${renditionId}/${number} ${sha256.toString('hex')}`)
      return digests.sort().join()
    },
    abandon() {
      storeSegment = createSegmentWriter(deps, video, chunk.kind)
      return removeSegments(held.splice(0))
    },
  }
}

/** Ends a run that encoded its chunk. If a segment was found damaged meanwhile, the chunk is queued again. */
export async function finishRun(tx: Db, chunk: VideoChunk, workerId?: string): Promise<void> {
  if ((await endRun(tx, chunk, 'done', workerId)) && (await listDamaged(tx, chunk)).length > 0) await reopenChunk(tx, chunk)
}

/** Encrypts and stores clear segments of one attempt and kind, which no row names yet, each once. */
export function createSegmentWriter(
  { segments }: Pick<PublicationDeps, 'segments'>,
  video: GenerationWithKey,
  kind: VideoChunk['kind'],
) {
  const [encrypt, nameOf] = [segmentCipher(video, kind), newSegmentNames(video)]
  return async (renditionId: number, number: number, clear: Buffer): Promise<Omit<NewSegment, 'init'>> => {
    const bytes = encrypt(renditionId, number, clear)
    const file = nameOf(renditionId, number)
    await segments.put(file, bytes, { isNew: true })
    return { renditionId, number, ...describeStored(file, bytes) }
  }
}

/**
 * Names the blobs of one attempt. Each encrypted version has its own name, so that none is ever overwritten. Those of one attempt share
 * what is random: in a playlist with the addresses of a bucket it does not compress.
 */
function newSegmentNames({ videoId, generation }: GenerationKey) {
  const attempt = randomBytes(6).toString('hex')
  return (renditionId: number, number: number) => `${videoId}/${generation}/${renditionId}/${number}.${attempt}.m4s`
}

function describeStored(file: string, bytes: Buffer): Pick<NewSegment, 'file' | 'sizeBytes' | 'sha256'> {
  return { file, sizeBytes: bytes.length, sha256: hash('sha256', bytes, 'buffer') }
}

/** Encrypts segments of one kind: the same clear bytes always give the same stored ones. */
export function segmentCipher(video: GenerationWithKey, kind: VideoChunk['kind']) {
  const keyOf = segmentKeys(video, kind)
  return (renditionId: number, number: number, clear: Buffer): Buffer => encryptSegment(clear, ...keyOf(renditionId, number))
}

/** The opposite of it. */
export function segmentDecipher(video: GenerationWithKey, kind: VideoChunk['kind']) {
  const keyOf = segmentKeys(video, kind)
  return (renditionId: number, number: number, stored: Buffer): Buffer => decryptSegment(stored, ...keyOf(renditionId, number))
}

function segmentKeys({ plan, contentKey }: GenerationWithKey, kind: VideoChunk['kind']) {
  const segmentIv = createSegmentIvDeriver(contentKey)
  const grid = gridFor(plan)
  return (renditionId: number, number: number): [key: Buffer, iv: Buffer] => {
    const window = kind === 'audio' ? windowOfAudioSegment(number, grid) : windowOfVideoSegment(number)
    return [deriveWindowKey(contentKey, window), segmentIv(renditionId, number)]
  }
}

/** Resolves when the first segment of a rendition is published, or when the signal ends the wait. */
export async function waitForFirstSegment(
  { db, signals }: { db: Db; signals: Pick<Signals, 'on'> },
  { videoId, generation }: GenerationKey,
  renditionId: number,
  signal: AbortSignal,
): Promise<void> {
  const isThere = new AbortController()
  // Listens before it queries, so that no event is missed.
  const first = { videoId, generation, renditionId, number: 0 }
  const published = waitForSegment(signals, first, AbortSignal.any([signal, isThere.signal]))
  if (await findSegment(db, { videoId, generation }, renditionId, 0)) isThere.abort()
  await published
}

/** Resolves when the segment is published, or when the signal ends the wait. */
export function waitForSegment(
  signals: Pick<Signals, 'on'>,
  { videoId, generation, renditionId, number }: SignalData['segment-published'],
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    const stop = signals.on('segment-published', (segment) => {
      if (segment.videoId === videoId && segment.generation === generation && segment.renditionId === renditionId)
        if (segment.number === number) end()
    })
    function end(): void {
      stop()
      signal.removeEventListener('abort', end)
      resolve()
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end)
  })
}
