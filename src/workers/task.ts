import { hash } from 'node:crypto'
import { newId } from '../crypto/secret.ts'
import type { WorkerRow } from '../db/tables.ts'
import type { ResultSegment } from '../encode/check/result.ts'
import { chunkLimits } from '../encode/chunk.ts'
import { AAC_FRAMES_PER_SEGMENT, type AudioTrackPlan, audioTracksOf, type Plan } from '../encode/plan.ts'
import { StaleRunError } from '../encode/publication.ts'
import type { RemotePart } from '../encode/remote-encoder.ts'
import { Failure } from '../errors.ts'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import { type EndBody, LEASE_MS, MAX_RANGE_BYTES, type TaskBody } from './protocol.ts'

/** The worker is lost, or returned its chunk: another run encodes it. */
export class WorkerLost extends StaleRunError {}

/** A run of one chunk that a worker has. Its segments stay in memory, clear, until they are checked. */
export type Task = {
  id: string
  worker: Pick<WorkerRow, 'id' | 'name' | 'trusted'>
  part: RemotePart
  startedMs: number
  body: TaskBody
  /** How the worker ended it. Rejects with WorkerLost, or with the reason of the run's signal. */
  ended: Promise<EndBody>
  /** Ends it without the worker. */
  fail(reason: Error): void
  isOverdue(nowMs: number): boolean
  /** Each request of the worker extends its lease. */
  beat(): void
  /** Takes part of the source from what the task may fetch. @throws Failure `forbidden` */
  takeRange(range: { first: number; last: number }): { first: number; last: number }
  addInit(renditionId: number, bytes: Buffer): void
  addSegment(renditionId: number, number: number, bytes: Buffer): void
  end(body: EndBody): void
  inits: ReadonlyMap<number, Buffer>
  /** In the order of their numbers in each rendition. */
  listSegments(): (ResultSegment & { bytes: Buffer })[]
  /** The length of the part, in seconds. */
  lengthS: number
}

/** A GOP before the chunk, and the seeks into it, read as much again; headers and indexes are of files of any length. */
const MAX_SHARES = 3
const ALWAYS_ALLOWED_BYTES = 16 * 2 ** 20
const MAX_INIT_BYTES = 64 * 1024
/** 20 s of all rungs have about 25 MB. */
const MAX_TASK_BYTES = 256 * 2 ** 20

/** @param sealed whether the source has an index, so that parts of it can be read; without one all of it may be fetched */
export function openTask(
  worker: Task['worker'],
  part: RemotePart,
  { sizeBytes: sealedBytes, hasIndex }: { sizeBytes: number; hasIndex: boolean },
  nowMs: () => number,
): Task {
  const { plan, source, threads, gains } = part
  const id = newId()
  const lengthS = lengthOf(part)
  const { promise: ended, resolve, reject } = Promise.withResolvers<EndBody>()
  ended.catch(() => undefined) // what waits for it handles it
  const startedMs = nowMs()
  const endsMs = startedMs + chunkLimits(lengthS, 0).wallS * 1000
  const sharesBytes = Math.ceil((MAX_SHARES * sealedBytes * lengthS) / sourceLengthS(plan))
  const allowedBytes = hasIndex ? Math.min(sealedBytes, sharesBytes + ALWAYS_ALLOWED_BYTES) : sealedBytes
  const expected = expectedSegments(part)
  const inits = new Map<number, Buffer>()
  const segments = new Map<string, Buffer>()
  let leaseEndsMs = startedMs + LEASE_MS
  let fetchedBytes = 0
  let receivedBytes = 0
  let hasEnded = false

  function add<Key>(to: Map<Key, Buffer>, key: Key, bytes: Buffer): void {
    if (hasEnded) throw taskNotFound()
    const known = to.get(key)
    if (known && !hash('sha256', known, 'buffer').equals(hash('sha256', bytes, 'buffer')))
      throw new Failure('conflict', 'Other bytes were received for this segment: the chunk is to be given back.')
    if (known) return
    receivedBytes += bytes.length
    if (receivedBytes > MAX_TASK_BYTES)
      throw new Failure('too-large', 'The segments of this chunk are larger than any of its kind.')
    to.set(key, bytes)
  }

  return {
    ...{ id, worker, part, startedMs, ended, inits, lengthS },
    body: {
      id,
      chunk: part.part,
      threads,
      plan: withoutNames(plan),
      gains: [...gains],
      source: { sizeBytes: source.sizeBytes, sealedBytes, keyHex: source.keyHex, ivHex: source.ivHex, allowedBytes },
    },
    fail(reason) {
      hasEnded = true
      reject(reason)
    },
    isOverdue: (now) => !hasEnded && (now > leaseEndsMs || now > endsMs),
    beat() {
      leaseEndsMs = nowMs() + LEASE_MS
    },
    takeRange({ first, last: asked }) {
      const last = Math.min(asked, first + MAX_RANGE_BYTES - 1)
      if (fetchedBytes + last - first + 1 > allowedBytes)
        throw new Failure(
          'forbidden',
          `This chunk may fetch ${allowedBytes} bytes of its source, and has. It is to be given back.`,
        )
      fetchedBytes += last - first + 1
      return { first, last }
    },
    addInit(renditionId, bytes) {
      if (!expected.has(renditionId) || bytes.length > MAX_INIT_BYTES) throw notOfTask()
      add(inits, renditionId, bytes)
    },
    addSegment(renditionId, number, bytes) {
      const numbers = expected.get(renditionId)
      if (!numbers || number < numbers.first || number > numbers.last) throw notOfTask()
      add(segments, `${renditionId}/${number}`, bytes)
    },
    end(body) {
      if (hasEnded) throw taskNotFound()
      if (body.outcome === 'done') assertComplete(expected, inits, segments)
      hasEnded = true
      resolve(body)
    },
    listSegments: () =>
      [...expected].flatMap(([renditionId, { first, last }]) =>
        Array.from({ length: last - first + 1 }, (_, index) => {
          const bytes = segments.get(`${renditionId}/${first + index}`) ?? Buffer.alloc(0)
          return { renditionId, number: first + index, sizeBytes: bytes.length, read: async () => bytes, bytes }
        }),
      ),
  }
}

export function taskNotFound(): Failure {
  return new Failure('not-found', 'This task has ended, or is not of this worker.')
}

function notOfTask(): Failure {
  return new Failure('invalid', 'This is no segment of the chunk.')
}

function assertComplete(
  expected: ReadonlyMap<number, { first: number; last: number }>,
  inits: ReadonlyMap<number, Buffer>,
  segments: ReadonlyMap<string, Buffer>,
): void {
  const count = [...expected.values()].reduce((sum, { first, last }) => sum + last - first + 1, 0)
  if (inits.size !== expected.size || segments.size !== count)
    throw new Failure('invalid', `The chunk has ${count} segments, and ${segments.size} were received: send the others first.`)
}

/** The numbers of the segments of each rendition. */
function expectedSegments({ plan, part }: RemotePart): Map<number, { first: number; last: number }> {
  const ids =
    part.kind === 'audio'
      ? audioTracksOf(plan).map(({ renditionId }) => renditionId)
      : (plan.videoTrack?.renditions ?? []).map(({ id }) => id)
  return new Map(ids.map((id) => [id, { first: part.firstSegment, last: part.firstSegment + part.segmentCount - 1 }]))
}

function lengthOf({ plan: { videoTrack }, part }: RemotePart): number {
  const segmentS =
    part.kind === 'video' && videoTrack
      ? (videoTrack.gopFrames * videoTrack.rateDen) / videoTrack.rateNum
      : (AAC_FRAMES_PER_SEGMENT * AAC_FRAME_SAMPLES) / AAC_RATE_HZ
  return part.segmentCount * segmentS
}

function sourceLengthS({ cut, durationS }: Plan): number {
  return Math.max(0.001, cut?.ofS ?? durationS)
}

/** What encodes needs no names: those of tracks, and sentences for the owner, stay here. */
function withoutNames({ notices: _, ...plan }: Plan): Plan {
  return {
    ...plan,
    audioTrack: plan.audioTrack && withoutName(plan.audioTrack),
    otherAudioTracks: plan.otherAudioTracks?.map(withoutName),
  }
}

function withoutName({ name: _, language: __, dub: ___, ...track }: AudioTrackPlan): AudioTrackPlan {
  return track
}
