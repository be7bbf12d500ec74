import type { Readable } from 'node:stream'

/**
 * Where blobs are kept, each under a name: letters, digits, `.`, `-`, `_`, and `/` between folders. Each engine keeps the promises below;
 * `test/storage/blob-store-promises.ts` checks them on every one.
 *
 * A blob that cannot be read now is not one that is lost. A method throws BlobLost when the store answers and does not have the
 * blob, and a failure of the host (`isHostFailure`) when the store does not answer, such as a disk that is not mounted: then the same
 * may succeed later, and nothing is known of the blob.
 */
export type BlobStore = {
  /**
   * Writes a blob, of a stream in constant memory. Whole and durable under its name when it resolves; nothing of it is left when it
   * fails, also when the bytes throw at their end: then a blob with that name stays as it was.
   */
  put(name: string, bytes: Buffer | Stages, options?: PutOptions): Promise<{ sizeBytes: number }>
  /**
   * Takes a blob of another store, in place of one with its name, where the two can share its bytes, as folders of one file system do.
   * @returns false: they cannot, so it is to be copied
   * @throws BlobLost
   */
  adopt(name: string, from: BlobStore): Promise<boolean>
  /** A small blob, whole. @throws BlobLost */
  read(name: string): Promise<Buffer>
  /**
   * A blob to be read in parts. What is open is one version of the blob: when that is removed or written again meanwhile, it can be read to
   * its end, as a file can, or is lost. @throws BlobLost
   */
  open(name: string): Promise<OpenBlob>
  /** Undefined: the store does not have it. */
  stat(name: string): Promise<BlobStat | undefined>
  /** Names and sizes of all blobs, where asking for each would be a request that costs time and money. Absent: `stat` is cheap. */
  listStats?(): AsyncGenerator<{ name: string; sizeBytes: number }>
  /** Removes a blob, if it exists. */
  remove(name: string): Promise<void>
  /** Removes every blob below a folder, if there are any. */
  removeAll(folder: string): Promise<void>
  /**
   * Removes a blob whose row is gone while its video stays: from a folder immediately, as backups of one have files of their own. In a
   * bucket it stays as it is until `RETIRED_KEPT_S` later, so that the rows of a backup that is not older find it; then a sweep removes it.
   */
  retire(name: string): Promise<void>
  /** The same with every blob below a folder. */
  retireAll(folder: string): Promise<void>
  /** What was retired and was not removed yet. */
  listRetired(): AsyncGenerator<Retired>
  /** Ends the retirement of what was removed, or is named by a row again. */
  endRetirement(retired: Retired): Promise<void>
  /**
   * The names below a folder (`''`: all) that come after a name, in the order of their bytes, in constant memory. What is added or
   * removed meanwhile may be in it or not.
   */
  list(folder: string, after: string): AsyncGenerator<string>
  /**
   * Adds to a blob that grows over requests and restarts. The caller keeps how many of its bytes count: those after them, left by a call
   * that failed, are dropped first. Durable when it resolves. Until it is finished, only the removals may be
   * called for it.
   * @param countedBytes 0 begins the blob
   * @param bytes without any, only what counts is looked for
   * @returns how many bytes it has now
   * @throws BlobLost when it has fewer bytes than count
   */
  appendPart(name: string, countedBytes: number, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number>
  /** Makes a grown blob one that can be read, in a time that does not depend on its size. @throws BlobLost as `appendPart` */
  finish(name: string, countedBytes: number): Promise<void>
  /**
   * For programs that need a file with seeks. @param use is given a path that is valid until it resolves
   * @param newCheck where the file is a copy, it has passed this @throws BlobLost
   */
  withLocalCopy<T>(name: string, use: (path: string) => Promise<T>, newCheck?: () => CopyCheck): Promise<T>
  /** Whether there is room for a local copy of so many bytes next to the others: what is larger is read in place, by `open`. */
  mayCopy(sizeBytes: number): boolean
  /** Removes what writes left that failed, or that a crash ended, if nothing was written to it since. @returns how many there were */
  removeUnfinished(sinceS: number): Promise<number>
  /** The time by the store's own clock, which may differ from this machine's: `changedAtS` is of it. */
  nowS(): Promise<number>
  /** @throws when blobs cannot be read and written */
  check(): Promise<void>
}

/** A blob, or with `isFolder` all that are below one. */
export type Retired = { name: string; isFolder: boolean; retiredAtS: number }

/** How long a bucket keeps what was retired. */
export const RETIRED_KEPT_S = 7 * 24 * 3600

/** The bytes of a new blob, and what they pass on their way. */
export type Stages = readonly [NodeJS.ReadableStream | AsyncIterable<Uint8Array>, ...NodeJS.ReadWriteStream[]]

export type PutOptions = {
  /** Aborts the write. Do not pass it to the source as well: its error would be unhandled until the blob is open. */
  signal?: AbortSignal
  /** No blob has had this name: where the store can, it refuses to replace one. */
  isNew?: boolean
}

/** Is given all bytes of a copy, in their order. */
export type CopyCheck = { add(bytes: Buffer): void; isIntact(): boolean }

/** `file`: where blobs are files, two with the same one share their bytes. */
export type BlobStat = { sizeBytes: number; changedAtS: number; file?: { device: number; inode: number } }

export type OpenBlob = AsyncDisposable & {
  sizeBytes: number
  /** Changes when the blob is written again. */
  version: string
  /** Fills `into` with the bytes from `at` on. @returns how many there were, fewer only at the end. @throws BlobLost */
  read(into: Buffer, at: number): Promise<number>
  /** A part, both ends inclusive, to be sent. The blob is closed at its end. */
  stream(range: { first: number; last: number }): Readable & { readonly bytesRead: number }
  close(): Promise<void>
}

/** The store answers and does not have the blob, or its disk has lost the bytes: no later attempt finds them. */
export class BlobLost extends Error {}

export function ignoreLost(error: unknown): undefined {
  if (!(error instanceof BlobLost)) throw error
}

const BLOCK_BYTES = 2 ** 20

/** A blob from its start to its end, in blocks. A block is valid until the next one is asked for. @throws BlobLost */
export async function* blocksOf(blob: OpenBlob, blockBytes = BLOCK_BYTES): AsyncGenerator<Buffer> {
  const block = Buffer.allocUnsafe(Math.min(blockBytes, Math.max(1, blob.sizeBytes)))
  for (let at = 0; ; at += block.length) {
    const readBytes = await blob.read(block, at)
    if (readBytes > 0) yield block.subarray(0, readBytes)
    if (readBytes < block.length) return
  }
}
