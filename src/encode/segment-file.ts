import { createHash, hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { BlobLost, type BlobStore, blocksOf, type OpenBlob } from '../storage/blob-store.ts'

/** The path, size and hash that a segment's row has of its file. */
export type ExpectedSegment = { file: string; sizeBytes: number; sha256: Buffer }

const HASH_CHUNK_BYTES = 2 ** 18
const MAX_HASHED_IN_ONE_CALL_BYTES = 2 ** 20

/** What is wrong with a segment's file. */
export type SegmentFault = {
  /** As a phrase for the log. */
  problem: string
  /** Its length is right, so it may have been sent before this was found. */
  mayHaveBeenSent: boolean
}

/** What is wrong with a segment's file; undefined when it has the published bytes. */
export async function findSegmentFault(
  segments: Pick<BlobStore, 'open'>,
  expected: ExpectedSegment,
): Promise<SegmentFault | undefined> {
  try {
    await using blob = await segments.open(expected.file)
    if (blob.sizeBytes !== expected.sizeBytes) return wrongSize(blob.sizeBytes, expected.sizeBytes)
    return (await hashOpenBlob(blob)).equals(expected.sha256) ? undefined : OTHER_BYTES
  } catch (error) {
    return unreadable(error)
  }
}

/** The bytes of a segment's file, or what is wrong with them. */
export async function readSegment(
  segments: BlobStore,
  expected: ExpectedSegment,
): Promise<{ bytes: Buffer } | { fault: SegmentFault }> {
  try {
    const bytes = await segments.read(expected.file)
    if (bytes.length !== expected.sizeBytes) return { fault: wrongSize(bytes.length, expected.sizeBytes) }
    return (await hashBytes(bytes)).equals(expected.sha256) ? { bytes } : { fault: OTHER_BYTES }
  } catch (error) {
    return { fault: unreadable(error) }
  }
}

export const OTHER_BYTES: SegmentFault = { problem: 'its file has other bytes than were published', mayHaveBeenSent: true }

export function wrongSize(foundBytes: number, expectedBytes: number): SegmentFault {
  return { problem: `its file has ${foundBytes} bytes instead of ${expectedBytes}`, mayHaveBeenSent: false }
}

/** What is wrong with a file that is lost. @throws the error, when it says nothing of the file */
export function unreadable(error: unknown): SegmentFault {
  if (error instanceof BlobLost) return { problem: error.message, mayHaveBeenSent: false }
  throw error
}

export function hashOpenBlob(blob: OpenBlob): Promise<Buffer> {
  return hashChunks(blocksOf(blob, HASH_CHUNK_BYTES))
}

/** Most segments in one call, which takes less than a millisecond. */
export async function hashBytes(bytes: Buffer): Promise<Buffer> {
  return bytes.length <= MAX_HASHED_IN_ONE_CALL_BYTES ? hash('sha256', bytes, 'buffer') : hashChunks(splitIntoChunks(bytes))
}

/** In chunks: hashing a large segment in one call would block this thread for milliseconds. */
async function hashChunks(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const sha256 = createHash('sha256')
  for await (const bytes of chunks) sha256.update(bytes)
  return sha256.digest()
}

async function* splitIntoChunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += HASH_CHUNK_BYTES) {
    yield bytes.subarray(at, at + HASH_CHUNK_BYTES)
    await setImmediate()
  }
}
