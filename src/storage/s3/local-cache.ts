import { randomBytes } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isDiskFull, StorageUnavailable } from '../../errors.ts'
import type { OpenBlob } from '../blob-store.ts'
import { hasRoomIn } from '../space.ts'

/** Copies of blobs on this machine’s disk, for programs that need a file. As sealed as the blobs. */
export type LocalCache = {
  /** @param key of this version of the blob. @param use is given a path that is valid until it resolves */
  use<T>(key: string, blob: OpenBlob, use: (path: string) => Promise<T>): Promise<T>
}

type Copy = { path: string; sizeBytes: number; users: number; fetched: Promise<void> }

const RANGE_BYTES = 8 * 2 ** 20
const RANGES_AT_ONCE = 4

/**
 * Keeps those that were used last. One that is in use is never removed, so a blob that is larger than the cache is there as long
 * as it is used.
 * @param folder exists, is empty, and belongs to this process
 */
export function openLocalCache(folder: string, maxBytes: number): LocalCache {
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

  async function fetch(blob: OpenBlob, path: string): Promise<void> {
    await makeRoom(maxBytes)
    if (!(await hasRoomIn([folder], blob.sizeBytes))) await makeRoom(0)
    if (!(await hasRoomIn([folder], blob.sizeBytes))) throw noRoom()
    try {
      await copyRanges(blob, path)
    } catch (error) {
      throw isDiskFull(error) ? noRoom(error) : error
    }
  }

  return {
    async use(key, blob, use) {
      const path = join(folder, randomBytes(16).toString('hex'))
      const copy = copies.get(key) ?? { path, sizeBytes: blob.sizeBytes, users: 0, fetched: Promise.resolve() }
      const isNew = !copies.has(key)
      copies.delete(key)
      copies.set(key, copy)
      copy.users++
      try {
        if (isNew) copy.fetched = fetch(blob, copy.path)
        await copy.fetched
        return await use(copy.path)
      } catch (error) {
        if (isNew && !(await isFetched(copy))) {
          if (copies.get(key) === copy) copies.delete(key)
          await rm(copy.path, { force: true })
        }
        throw error
      } finally {
        copy.users--
        if (copy.users === 0) await makeRoom(maxBytes)
      }
    },
  }
}

const isFetched = ({ fetched }: Copy) =>
  fetched.then(
    () => true,
    () => false,
  )

function noRoom(cause?: unknown): StorageUnavailable {
  return new StorageUnavailable(
    'The disk of this server has no room for a copy of a video from its bucket. Try again when there is space.',
    { cause },
  )
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
      await file.write(block, 0, readBytes, at)
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
