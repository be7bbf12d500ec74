import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { type BlobFolder, blobPath } from '../storage/folder.ts'

/** What a segment's row says of its file. */
export type SegmentFile = { file: string; sizeBytes: number; sha256: Buffer }

const PIECE_BYTES = 2 ** 18

/** What is wrong with a segment's file, in words for the log; undefined when it has the bytes that were published. */
export async function findFault(segments: BlobFolder, expected: SegmentFile): Promise<string | undefined> {
  try {
    await using file = await open(blobPath(segments, expected.file))
    const { size } = await file.stat()
    if (size !== expected.sizeBytes) return otherSize(size, expected.sizeBytes)
    return (await sha256Of(file)).equals(expected.sha256) ? undefined : 'its file has other bytes than were published'
  } catch (error) {
    return unreadable(error)
  }
}

export function otherSize(foundBytes: number, expectedBytes: number): string {
  return `its file has ${foundBytes} bytes instead of ${expectedBytes}`
}

/** What it says of a file that it cannot be opened or read. @throws the error, when it is of the whole machine */
export function unreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'its file is missing'
  if (code === 'EIO') return 'its file cannot be read from the disk (EIO)'
  throw error
}

/** In pieces: hashing a large segment as a whole would hold up this thread for milliseconds. */
async function sha256Of(file: FileHandle): Promise<Buffer> {
  const hash = createHash('sha256')
  for await (const bytes of file.createReadStream({ highWaterMark: PIECE_BYTES, autoClose: false })) hash.update(bytes)
  return hash.digest()
}
