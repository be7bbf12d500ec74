import { LRUCache } from 'lru-cache'
import {
  type ExpectedSegment,
  hashBytes,
  hashOpenBlob,
  OTHER_BYTES,
  type SegmentFault,
  unreadable,
  wrongSize,
} from '../../encode/segment-file.ts'
import type { BlobStore, OpenBlob } from '../../storage/blob-store.ts'

/** A segment in memory, or open to be read, which the caller closes. It can be sent whole even when the video is deleted meanwhile. */
export type OpenSegment = { bytes: Buffer } | { blob: OpenBlob }

/** A segment whose bytes another program reads from the folder of segments. */
export type SegmentFile = { file: string; sizeBytes: number }

/** Reads segments, and checks that each is what was published: once in a process, and again when its file was written again. */
export type SegmentReader = {
  /** @throws DamagedFile */
  read(segment: ExpectedSegment): Promise<Buffer>
  /** @param signal aborted when the segment has been sent. @throws DamagedFile */
  open(segment: ExpectedSegment, signal: AbortSignal): Promise<OpenSegment>
  /** Checks only that the file is there, with the right length, at most once a second. @throws DamagedFile */
  find(segment: ExpectedSegment): Promise<SegmentFile>
}

/** A segment's file is not as its row says. */
export class DamagedFile extends Error {
  readonly fault: SegmentFault
  constructor(fault: SegmentFault) {
    super(fault.problem)
    this.fault = fault
  }
}

/** Some 150 bytes each. */
const MAX_REMEMBERED_FILES = 50_000
/** A popular segment is asked for many times in it, and to look for a file takes a third of such a request. */
const FOUND_FOR_MS = 1_000
/**
 * What was read to be checked is sent from memory, in buffers that are used again: fresh memory takes longer than the hash. When all are
 * with slow clients, or a segment is larger, it is read once more to be sent.
 */
const BUFFER_BYTES = 2 * 2 ** 20
const MAX_BUFFERS = 16

export function createSegmentReader(segments: BlobStore): SegmentReader {
  /** The version of each file that had the published bytes. */
  const checked = new LRUCache<string, OpenBlob['version']>({ max: MAX_REMEMBERED_FILES })
  /** The length that each file had a moment ago. */
  const found = new LRUCache<string, number>({ max: MAX_REMEMBERED_FILES, ttl: FOUND_FOR_MS })
  const freeBuffers: Buffer[] = []
  let bufferCount = 0

  /** Opens a file of the right length. `isChecked`: its bytes were compared before. */
  async function openFile({ file: name, sizeBytes }: ExpectedSegment) {
    const blob = await segments.open(name).catch(throwUnreadable)
    if (blob.sizeBytes === sizeBytes) return { blob, isChecked: checked.get(name) === blob.version }
    await blob.close()
    throw new DamagedFile(wrongSize(blob.sizeBytes, sizeBytes))
  }

  function takeBuffer(): Buffer | undefined {
    const free = freeBuffers.pop()
    if (free || bufferCount === MAX_BUFFERS) return free
    bufferCount++
    return Buffer.allocUnsafeSlow(BUFFER_BYTES)
  }

  function compare({ file, sha256 }: ExpectedSegment, { version }: OpenBlob, hash: Buffer): void {
    if (!hash.equals(sha256)) throw new DamagedFile(OTHER_BYTES)
    checked.set(file, version)
  }

  /** @param bytes as long as the segment */
  async function read(segment: ExpectedSegment, bytes: Buffer = Buffer.allocUnsafeSlow(segment.sizeBytes)): Promise<Buffer> {
    const { blob, isChecked } = await openFile(segment)
    try {
      const readBytes = await blob.read(bytes, 0).catch(throwUnreadable)
      if (readBytes < bytes.length) throw new DamagedFile(wrongSize(readBytes, bytes.length)) // cut off meanwhile
      if (!isChecked) compare(segment, blob, await hashBytes(bytes))
      return bytes
    } finally {
      await blob.close()
    }
  }

  async function openChecked(segment: ExpectedSegment): Promise<OpenSegment> {
    const { blob, isChecked } = await openFile(segment)
    try {
      if (!isChecked) compare(segment, blob, await hashOpenBlob(blob).catch(throwUnreadable))
      return { blob }
    } catch (error) {
      await blob.close()
      throw error
    }
  }

  async function find({ file, sizeBytes }: ExpectedSegment): Promise<SegmentFile> {
    if (found.get(file) === sizeBytes) return { file, sizeBytes }
    const stat = await segments.stat(file)
    // A missing file is opened to learn why: its whole folder may be missing, which is no damage.
    if (!stat) await (await segments.open(file).catch(throwUnreadable)).close()
    else if (stat.sizeBytes !== sizeBytes) throw new DamagedFile(wrongSize(stat.sizeBytes, sizeBytes))
    found.set(file, sizeBytes)
    return { file, sizeBytes }
  }

  return {
    find,
    read: (segment) => read(segment),
    async open(segment, signal) {
      const { file, sizeBytes } = segment
      const buffer = checked.has(file) || sizeBytes > BUFFER_BYTES ? undefined : takeBuffer()
      if (!buffer) return openChecked(segment)
      const release = () => void freeBuffers.push(buffer)
      try {
        return { bytes: await read(segment, buffer.subarray(0, sizeBytes)) }
      } finally {
        if (signal.aborted) release()
        else signal.addEventListener('abort', release, { once: true })
      }
    },
  }
}

/** @throws DamagedFile, or the error, when it is a failure of the host */
function throwUnreadable(error: unknown): never {
  throw error instanceof DamagedFile ? error : new DamagedFile(unreadable(error))
}
