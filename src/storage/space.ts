import { statfs } from 'node:fs/promises'
import type { Logger } from 'pino'
import { errorCode } from '../errors.ts'

/** Uploads and encodes stop while less is free, so that the database can always be written: playback continues, and a deletion makes room. */
const KEPT_FREE_BYTES = 2 ** 30
/** On a small file system the kept space is this share of it. */
const KEPT_FREE_SHARE = 0.05

/**
 * Whether the file systems of these folders have room for more bytes and the reserved space.
 * Not cached, since it costs one system call for each folder.
 */
export async function hasRoomIn(folders: readonly string[], forBytes: number): Promise<boolean> {
  for (const folder of folders) {
    const space = await statfs(folder).catch((error) => {
      if (errorCode(error) !== 'ENOENT') throw error // a missing folder is reported by the check of storage
    })
    if (!space) continue
    const { bavail, blocks, bsize } = space
    if (bavail * bsize - forBytes < Math.min(KEPT_FREE_BYTES, KEPT_FREE_SHARE * blocks * bsize)) return false
  }
  return true
}

/** Whether nothing can be written there any more. */
export async function isFull(folder: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize < FULL_BYTES
}

/** One or two small files. */
const FULL_BYTES = 64 * 1024

/** How long a disk counts as full after a failed write: the number of free bytes shows neither quotas nor a lack of inodes. */
const FULL_FOR_MS = 15_000

export type Space = {
  /** Whether there is room for this many more bytes, 0 unless given, beyond the reserved space. */
  hasRoom(forBytes?: number): Promise<boolean>
  /** Whether there is little room, or a write has just failed for lack of it. */
  isLow(): Promise<boolean>
  /** Whether a write has just failed for lack of room. */
  wasJustFull(): boolean
  /** A write has found the disk full. */
  onDiskFull(): void
}

/** Calls `hasRoomIn`, and logs once when the space runs out, and once when there is space again. */
export function watchSpace(folders: readonly string[], log: Logger): Space {
  let wasLow = false
  let fullUntilMs = Number.NEGATIVE_INFINITY

  async function hasRoom(forBytes = 0): Promise<boolean> {
    const isLow = !(await hasRoomIn(folders, 0))
    if (isLow && !wasLow) log.warn('the disk is nearly full: uploads are refused and encodes wait until there is space')
    if (!isLow && wasLow) log.info('disk: has space again, uploads and encodes continue')
    wasLow = isLow
    return !isLow && (forBytes === 0 || hasRoomIn(folders, forBytes))
  }

  const wasJustFull = () => performance.now() < fullUntilMs
  return {
    hasRoom,
    wasJustFull,
    isLow: async () => wasJustFull() || !(await hasRoom(0)),
    onDiskFull() {
      fullUntilMs = performance.now() + FULL_FOR_MS
    },
  }
}
