import { createHash } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { type BlobFolder, blobPath } from '../storage/folder.ts'

/** The path, size and hash that a segment's row has of its file. */
export type ExpectedSegment = { file: string; sizeBytes: number; sha256: Buffer }

const HASH_CHUNK_BYTES = 2 ** 18

/** What is wrong with a segment's file, as a phrase for the log; undefined when it has the published bytes. */
export async function findSegmentFault(segments: BlobFolder, expected: ExpectedSegment): Promise<string | undefined> {
  try {
    await using file = await open(blobPath(segments, expected.file))
    const { size } = await file.stat()
    if (size !== expected.sizeBytes) return describeSizeMismatch(size, expected.sizeBytes)
    const stream = file.createReadStream({ highWaterMark: HASH_CHUNK_BYTES, autoClose: false })
    return (await hashChunks(stream)).equals(expected.sha256) ? undefined : HASH_MISMATCH
  } catch (error) {
    return describeReadError(error)
  }
}

/** The bytes of a segment's file, or what is wrong with them. */
export async function readSegment(
  segments: BlobFolder,
  expected: ExpectedSegment,
): Promise<{ bytes: Buffer } | { fault: string }> {
  try {
    const bytes = await readFile(blobPath(segments, expected.file))
    if (bytes.length !== expected.sizeBytes) return { fault: describeSizeMismatch(bytes.length, expected.sizeBytes) }
    return (await hashChunks(splitIntoChunks(bytes))).equals(expected.sha256) ? { bytes } : { fault: HASH_MISMATCH }
  } catch (error) {
    return { fault: describeReadError(error) }
  }
}

const HASH_MISMATCH = 'its file has other bytes than were published'

export function describeSizeMismatch(foundBytes: number, expectedBytes: number): string {
  return `its file has ${foundBytes} bytes instead of ${expectedBytes}`
}

/** What is wrong with a file that cannot be opened or read. @throws the error, when it is a failure of the host */
export function describeReadError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'its file is missing'
  if (code === 'EIO') return 'its file cannot be read from the disk (EIO)'
  throw error
}

/** In chunks: hashing a large segment in one call would block this thread for milliseconds. */
async function hashChunks(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const hash = createHash('sha256')
  for await (const bytes of chunks) hash.update(bytes)
  return hash.digest()
}

async function* splitIntoChunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += HASH_CHUNK_BYTES) {
    yield bytes.subarray(at, at + HASH_CHUNK_BYTES)
    await setImmediate()
  }
}
