import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import { decryptSegment } from '../crypto/content-key.ts'
import { newId } from '../crypto/secret.ts'
import type { WorkerRow } from '../db/tables.ts'
import { expectedRenditions } from '../encode/check/check-result.ts'
import type { ResultSegment } from '../encode/check/result.ts'
import { chunkLimits } from '../encode/chunk.ts'
import { AAC_FRAMES_PER_SEGMENT, type AudioTrackPlan, type Plan } from '../encode/plan.ts'
import { StaleRunError } from '../encode/publication.ts'
import type { RemotePart } from '../encode/remote-encoder.ts'
import { Failure } from '../errors.ts'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import { type AddressBody, type EndBody, LEASE_MS, MAX_RANGE_BYTES, type TaskBody } from './protocol.ts'

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
  /** Both keep what a request brings, and extend the lease while it arrives. @throws Failure for what is none of the chunk */
  receiveInit(renditionId: number, body: AsyncIterable<Buffer>): Promise<void>
  receiveSegment(renditionId: number, number: number, body: AsyncIterable<Buffer>): Promise<void>
  /**
   * Takes the name of the blob that a worker may store a segment as. @throws Failure for what is none of the chunk, or where it announced
   * other bytes before
   */
  takeName(renditionId: number, number: number, bytes: AddressBody): string
  /** Keeps a segment that its worker says it has stored. @param read gives its blob @throws Failure `conflict` when that is not what was announced */
  receiveStored(renditionId: number, number: number, read: (file: string) => Promise<Buffer>): Promise<void>
  /** The names that were taken, and whether a segment was found there. */
  listTaken(): { file: string; isStored: boolean }[]
  end(body: EndBody): void
  hasEnded(): boolean
  heldBytes(): number
  inits: ReadonlyMap<number, Buffer>
  /** What its worker has stored is the publication's. */
  isPassedOn: boolean
  /** In the order of their numbers in each rendition. `isStored`: as a blob, encrypted. */
  listSegments(): (ResultSegment & { bytes: Buffer; isStored: boolean })[]
  /** The length of the part, in seconds. */
  lengthS: number
}

/** A GOP before the chunk, and the seeks into it, read as much again; headers and indexes are of files of any length. */
const MAX_SHARES = 3
const ALWAYS_ALLOWED_BYTES = 16 * 2 ** 20
const MAX_INIT_BYTES = 64 * 1024
/** What encryption adds at most. */
const BLOCK_BYTES = 16

/**
 * @param options.isStoring whether its worker may store segments itself
 * @param sealed whether the source has an index, so that parts of it can be read; without one all of it may be fetched
 */
export function openTask(
  worker: Task['worker'],
  part: RemotePart,
  { sizeBytes: sealedBytes, hasIndex }: { sizeBytes: number; hasIndex: boolean },
  nowMs: () => number,
  { isStoring = false } = {},
): Task {
  const { plan, source, threads, gains } = part
  const storing = isStoring ? part.storing : undefined
  const id = newId()
  const lengthS = lengthOf(part)
  const { promise: ended, resolve, reject } = Promise.withResolvers<EndBody>()
  ended.catch(() => undefined) // what waits for it handles it
  const startedMs = nowMs()
  const endsMs = startedMs + chunkLimits(lengthS, 0).wallS * 1000
  const sharesBytes = Math.ceil((MAX_SHARES * sealedBytes * lengthS) / sourceLengthS(plan))
  const allowedBytes = hasIndex ? Math.min(sealedBytes, sharesBytes + ALWAYS_ALLOWED_BYTES) : sealedBytes
  const renditions = expectedRenditions(plan, part.part.kind)
  const { firstSegment, segmentCount } = part.part
  const numbers = Array.from({ length: segmentCount }, (_, index) => firstSegment + index)
  const maxBytes = renditions.values().reduce((sum, { maxBytes }) => sum + segmentCount * maxBytes + MAX_INIT_BYTES, 0)
  const inits = new Map<number, Buffer>()
  const segments = new Map<string, Buffer>()
  const announced = new Map<string, AddressBody & { file: string; isStored: boolean; isBeingRead: boolean }>()
  let leaseEndsMs = startedMs + LEASE_MS
  let fetchedBytes = 0
  /** Of what is kept and what arrives: many requests may do so at the same time. */
  let heldBytes = 0
  let hasEnded = false

  function beat(): void {
    leaseEndsMs = nowMs() + LEASE_MS
  }

  async function receive<Key>(to: Map<Key, Buffer>, key: Key, body: AsyncIterable<Buffer>, maxLength = maxBytes): Promise<void> {
    const parts: Buffer[] = []
    let lengthBytes = 0
    try {
      for await (const part of body) {
        lengthBytes += part.length
        heldBytes += part.length
        if (hasEnded) throw taskNotFound()
        if (lengthBytes > maxLength) throw notOfTask()
        if (heldBytes > maxBytes) throw new Failure('too-large', 'The segments of this chunk are larger than any of its kind.')
        parts.push(part)
        beat()
      }
      if (keep(to, key, Buffer.concat(parts))) lengthBytes = 0
    } finally {
      heldBytes -= lengthBytes
    }
  }

  /** False: it is there already. */
  function keep<Key>(to: Map<Key, Buffer>, key: Key, bytes: Buffer): boolean {
    if (hasEnded) throw taskNotFound()
    const known = to.get(key)
    if (!known) to.set(key, bytes)
    else if (!hash('sha256', known, 'buffer').equals(hash('sha256', bytes, 'buffer'))) throw otherBytes()
    return !known
  }

  function getKey(renditionId: number, number: number): string {
    if (!renditions.has(renditionId) || !numbers.includes(number)) throw notOfTask()
    return `${renditionId}/${number}`
  }

  return {
    ...{ id, worker, part, startedMs, ended, inits, lengthS, isPassedOn: false },
    body: {
      id,
      chunk: part.part,
      threads,
      plan: withoutNames(plan),
      gains: [...gains],
      source: { sizeBytes: source.sizeBytes, sealedBytes, keyHex: source.keyHex, ivHex: source.ivHex, allowedBytes },
      ...(storing && {
        segmentKeys: [...renditions.keys()].flatMap((renditionId) =>
          numbers.map((number) => {
            const [key, iv] = storing.keysOf(renditionId, number)
            return { renditionId, number, keyHex: key.toString('hex'), ivHex: iv.toString('hex') }
          }),
        ),
      }),
    },
    fail(reason) {
      hasEnded = true
      reject(reason)
    },
    hasEnded: () => hasEnded,
    heldBytes: () => heldBytes,
    isOverdue: (now) => !hasEnded && (now > leaseEndsMs || now > endsMs),
    beat,
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
    async receiveInit(renditionId, body) {
      if (!renditions.has(renditionId)) throw notOfTask()
      await receive(inits, renditionId, body, MAX_INIT_BYTES)
    },
    async receiveSegment(renditionId, number, body) {
      await receive(segments, getKey(renditionId, number), body)
    },
    takeName(renditionId, number, bytes) {
      const key = getKey(renditionId, number)
      if (hasEnded || !storing) throw taskNotFound()
      if (bytes.sizeBytes > (renditions.get(renditionId)?.maxBytes ?? 0) + BLOCK_BYTES) throw notOfTask()
      const known = announced.get(key) ?? {
        ...bytes,
        file: storing.nameOf(renditionId, number),
        isStored: false,
        isBeingRead: false,
      }
      if (known.sha256 !== bytes.sha256 || known.sizeBytes !== bytes.sizeBytes) throw otherBytes()
      announced.set(key, known)
      return known.file
    },
    async receiveStored(renditionId, number, read) {
      const key = getKey(renditionId, number)
      const known = announced.get(key)
      if (hasEnded || !storing || !known) throw taskNotFound()
      if (known.isStored) return
      if (known.isBeingRead) throw new Failure('conflict', 'Another request is about this segment.') // memory is bounded by the chunk
      known.isBeingRead = true
      try {
        const stored = await read(known.file)
        if (hash('sha256', stored) !== known.sha256) throw otherBytes()
        await receive(segments, key, Readable.from([decrypt(stored, storing.keysOf(renditionId, number))]))
        known.isStored = true
      } finally {
        known.isBeingRead = false
      }
    },
    listTaken: () => [...announced.values()],
    end(body) {
      if (hasEnded) throw taskNotFound()
      const missing = renditions.size * (segmentCount + 1) - inits.size - segments.size
      if (body.outcome === 'done' && missing > 0)
        throw new Failure('invalid', `${missing} segments of the chunk were not received: send them first.`)
      hasEnded = true
      resolve(body)
    },
    listSegments: () =>
      [...renditions.keys()].flatMap((renditionId) =>
        numbers.map((number) => {
          const key = getKey(renditionId, number)
          const bytes = segments.get(key) ?? Buffer.alloc(0)
          const isStored = announced.get(key)?.isStored ?? false
          return { renditionId, number, sizeBytes: bytes.length, read: async () => bytes, bytes, isStored }
        }),
      ),
  }
}

export function taskNotFound(): Failure {
  return new Failure('not-found', 'This task has ended, or is not of this worker.')
}

function otherBytes(): Failure {
  return new Failure('conflict', 'Other bytes were received for this segment: the chunk is to be given back.')
}

function decrypt(stored: Buffer, keys: [key: Buffer, iv: Buffer]): Buffer {
  try {
    return decryptSegment(stored, ...keys)
  } catch (error) {
    throw new Failure('invalid', 'The stored segment is not encrypted with its key.', { cause: error })
  }
}

function notOfTask(): Failure {
  return new Failure('invalid', 'This is no segment of the chunk.')
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
