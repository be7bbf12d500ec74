import { statfs } from 'node:fs/promises'
import type { Logger } from 'pino'

/** Uploads and encodes stop while less is free, so that the database can always be written: what plays goes on, and a deletion makes room. */
const KEPT_FREE_BYTES = 2 ** 30
/** On a small file system the kept space is this share of it. */
const KEPT_FREE_SHARE = 0.05

/**
 * Whether the file systems of these folders have room for so many bytes more and the kept space beside them.
 * Asked anew each time: it costs one call of the kernel for each folder.
 */
export async function hasRoomIn(folders: readonly string[], forBytes: number): Promise<boolean> {
  for (const folder of folders) {
    const { bavail, blocks, bsize } = await statfs(folder)
    if (bavail * bsize - forBytes < Math.min(KEPT_FREE_BYTES, KEPT_FREE_SHARE * blocks * bsize)) return false
  }
  return true
}

/** Asks `hasRoomIn`, and says when the space runs out and when there is some again: once each, though everybody asks. */
export function watchSpace(folders: readonly string[], log: Logger): (forBytes: number) => Promise<boolean> {
  let wasLow = false
  return async (forBytes) => {
    const isLow = !(await hasRoomIn(folders, 0))
    if (isLow && !wasLow) log.warn('the disk is nearly full: uploads are refused and encodes wait until there is space')
    if (!isLow && wasLow) log.info('the disk has space again: uploads and encodes go on')
    wasLow = isLow
    return !isLow && (forBytes === 0 || hasRoomIn(folders, forBytes))
  }
}
