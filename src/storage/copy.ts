import { createHash } from 'node:crypto'
import { BlobLost, type BlobStore, blocksOf, ignoreLost, type PutOptions } from './blob-store.ts'

// Published blobs, which never change: whether they are intact, and copies of them for a backup or a restored installation.

/** Of a bucket each block is a request. */
const BLOCK_BYTES = 4 * 2 ** 20

/** Compares a blob that is read with the one that was published. */
export type FileCheck = {
  /** Is given all bytes in their order. */
  add(bytes: Buffer): void
  /** @param sha256 of all bytes */
  isIntact(sha256: Buffer): boolean
}

const NO_CHECK: FileCheck = { add: () => undefined, isIntact: () => true }

export function checkHash(expected: Buffer): FileCheck {
  return { add: () => undefined, isIntact: (sha256) => sha256.equals(expected) }
}

/**
 * The SHA-256 of a blob; undefined when it is lost, or not intact.
 * @param pace is awaited after each part that was read
 */
export async function hashBlob(store: BlobStore, name: string, check = NO_CHECK, pace?: (sizeBytes: number) => Promise<void>) {
  const hash = createHash('sha256')
  try {
    await using blob = await store.open(name)
    for await (const bytes of blocksOf(blob, BLOCK_BYTES)) {
      hash.update(bytes)
      check.add(bytes)
      await pace?.(bytes.length)
    }
  } catch (error) {
    return ignoreLost(error)
  }
  const sha256 = hash.digest()
  return check.isIntact(sha256) ? sha256 : undefined
}

/** Copies a blob to another store; undefined when it is lost, or not intact: then the other store stays as it is. */
export async function copyBlob(
  from: BlobStore,
  to: BlobStore,
  name: string,
  check = NO_CHECK,
  options?: PutOptions,
): Promise<{ sizeBytes: number; sha256: Buffer } | undefined> {
  const hash = createHash('sha256')
  let sha256 = Buffer.alloc(0)
  async function* checked(blocks: AsyncIterable<Buffer>) {
    for await (const bytes of blocks) {
      hash.update(bytes)
      check.add(bytes)
      yield bytes
    }
    sha256 = hash.digest()
    if (!check.isIntact(sha256)) throw new BlobLost('it has other bytes than were published')
  }
  try {
    await using blob = await from.open(name)
    const { sizeBytes } = await to.put(name, [checked(blocksOf(blob, BLOCK_BYTES))], options)
    return { sizeBytes, sha256 }
  } catch (error) {
    return ignoreLost(error)
  }
}
