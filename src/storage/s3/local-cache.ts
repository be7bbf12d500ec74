import { randomBytes } from 'node:crypto'
import { type FileHandle, open, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isDiskFull, StorageUnavailable } from '../../errors.ts'
import { BlobLost, type CopyCheck, type OpenBlob } from '../blob-store.ts'
import { hasRoomIn } from '../space.ts'
import { writeWhole } from '../write-whole.ts'
import { openSpooled, type Spooled } from './spool.ts'

/** Copies of blobs on this machine’s disk, for programs that need a file, and bytes that wait to be sent. As sealed as the blobs. */
export type LocalCache = {
  newSpooled(): Spooled
  /** Whether a copy of so many bytes is no larger than the cache. */
  mayHold(sizeBytes: number): boolean
  /**
   * @param key of this version of the blob
   * @param use is given a path that is valid until it resolves
   * @param newCheck a copy is used only as long as its bytes pass this
   * @throws BlobLost when the blob itself does not pass it
   */
  use<T>(key: string, blob: OpenBlob, use: (path: string) => Promise<T>, newCheck?: () => CopyCheck): Promise<T>
}

/** `verified`: when its bytes were compared last, and the time of the file’s last change then. */
type Copy = {
  path: string
  sizeBytes: number
  users: number
  ready: Promise<void>
  verified?: { atMs: number; changedNs: bigint }
}

const RANGE_BYTES = 8 * 2 ** 20
const RANGES_AT_ONCE = 4
const BLOCK_BYTES = 2 ** 20
/** A file that looks unchanged is compared again after so long: a disk may lose bytes without a trace. */
const VERIFIED_FOR_MS = 10 * 60_000
const NO_CHECK: CopyCheck = { add: () => undefined, isIntact: () => true }

/**
 * Keeps those that were used last. One that is in use is never removed, so a blob that is larger than the cache is there as long
 * as it is used.
 * @param folder exists, is empty, and belongs to this process
 * @param onDiskFull called when the disk has no room
 */
export function openLocalCache(folder: string, maxBytes: number, onDiskFull: () => void = () => undefined): LocalCache {
  /** In the order of their last use. */
  const copies = new Map<string, Copy>()

  async function makeRoom(limitBytes: number): Promise<void> {
    let usedBytes = 0
    for (const { sizeBytes } of copies.values()) usedBytes += sizeBytes
    for (const [key, copy] of [...copies]) {
      if (usedBytes <= limitBytes) return
      if (copy.users > 0) continue
      copies.delete(key)
      usedBytes -= copy.sizeBytes
      await rm(copy.path, { force: true })
    }
  }

  async function fetch(copy: Copy, blob: OpenBlob, newCheck: () => CopyCheck): Promise<void> {
    await makeRoom(maxBytes)
    if (!(await hasRoomIn([folder], blob.sizeBytes))) await makeRoom(0)
    if (!(await hasRoomIn([folder], blob.sizeBytes))) throw noRoom(blob)
    try {
      await rm(copy.path, { force: true })
      await copyRanges(blob, copy.path)
    } catch (error) {
      throw isDiskFull(error) ? noRoom(blob, error) : error
    }
    if (!(await verify(copy, newCheck))) throw new BlobLost('its object has other bytes than were stored')
  }

  function noRoom({ sizeBytes }: OpenBlob, cause?: unknown): StorageUnavailable {
    onDiskFull()
    return new StorageUnavailable(
      `The disk of this server has no room for a copy of ${Math.ceil(sizeBytes / 1e9)} GB of a video from its bucket. Try again when there is space.`,
      { cause },
    )
  }

  /** Of a copy that is there: as it was verified, or verified now, or fetched once more. */
  async function refresh(copy: Copy, blob: OpenBlob, newCheck: () => CopyCheck): Promise<void> {
    const { verified } = copy
    const isRecent = verified && performance.now() - verified.atMs < VERIFIED_FOR_MS
    if (isRecent && (await changeOf(copy)) === verified.changedNs) return
    if (!(await verify(copy, newCheck))) await fetch(copy, blob, newCheck)
  }

  return {
    newSpooled: () => openSpooled(folder, onDiskFull),
    mayHold: (sizeBytes) => sizeBytes <= maxBytes,
    async use(key, blob, use, newCheck = () => NO_CHECK) {
      const path = join(folder, randomBytes(16).toString('hex'))
      const known = copies.get(key)
      const copy: Copy = known ?? { path, sizeBytes: blob.sizeBytes, users: 0, ready: Promise.resolve() }
      copies.delete(key)
      copies.set(key, copy)
      copy.users++
      const before = copy.ready
      const ready = known ? before.then(() => refresh(copy, blob, newCheck)) : fetch(copy, blob, newCheck)
      copy.ready = ready
      try {
        await ready.catch(async (error) => {
          if (copies.get(key) === copy) copies.delete(key)
          await rm(copy.path, { force: true })
          throw error
        })
        return await use(copy.path)
      } finally {
        copy.users--
        if (copy.users === 0) await makeRoom(maxBytes)
      }
    },
  }
}

/** Whether all bytes of a copy are the right ones. */
async function verify(copy: Copy, newCheck: () => CopyCheck): Promise<boolean> {
  const changedNs = await changeOf(copy)
  if (changedNs === undefined) return false
  const check = newCheck()
  await using file = await open(copy.path)
  for await (const block of blocksIn(file)) check.add(block)
  if (!check.isIntact()) return false
  copy.verified = { atMs: performance.now(), changedNs }
  return true
}

/** When a copy’s file was changed last, which no program can set. Undefined: it is gone. */
async function changeOf({ path }: Copy): Promise<bigint | undefined> {
  return stat(path, { bigint: true }).then(
    ({ ctimeNs }) => ctimeNs,
    () => undefined,
  )
}

async function* blocksIn(file: FileHandle): AsyncGenerator<Buffer> {
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  for (;;) {
    const { bytesRead } = await file.read(block, 0, block.length, null)
    if (bytesRead === 0) return
    yield block.subarray(0, bytesRead)
  }
}

async function copyRanges(blob: OpenBlob, path: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  let next = 0
  let hasFailed = false
  async function copyOnwards() {
    const block = Buffer.allocUnsafe(Math.min(RANGE_BYTES, Math.max(1, blob.sizeBytes)))
    while (next < blob.sizeBytes && !hasFailed) {
      const at = next
      next += block.length
      const readBytes = await blob.read(block, at)
      await writeWhole(file, block.subarray(0, readBytes), at)
    }
  }
  const copying = Array.from({ length: RANGES_AT_ONCE }, () =>
    copyOnwards().catch((error) => {
      hasFailed = true
      throw error
    }),
  )
  const [failed] = (await Promise.allSettled(copying)).filter((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}
