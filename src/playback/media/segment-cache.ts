import { LRUCache } from 'lru-cache'
import type { GenerationKey } from '../../catalogue/generation-key.ts'
import type { ExpectedSegment } from '../../encode/segment-file.ts'

/** Segments that several viewers request, in memory: the viewers of a premiere want the same ones at the same time. */
export type SegmentCache = {
  find(name: string): Promise<Buffer> | undefined
  /** Reads and keeps a segment that was requested before, once for all concurrent requests; undefined for the first request. */
  readIfHot(name: string, sizeBytes: number, read: () => Promise<Buffer>): Promise<Buffer> | undefined
  /** The row of a segment that another program sends. */
  findRow(name: string): ExpectedSegment | undefined
  keepRow(name: string, row: ExpectedSegment): void
  /** Drops a segment whose file was found damaged. */
  forget(name: string): void
}

export function cacheKey(video: GenerationKey, renditionId: number, number: number): string {
  return `${video.videoId}/${video.generation}/${renditionId}/${number}`
}

const MAX_BYTES = 64 * 2 ** 20
/** Larger segments are always streamed from the disk. */
const MAX_SEGMENT_BYTES = 8 * 2 ** 20
const MAX_REMEMBERED_NAMES = 2_000
/** Some 400 bytes each. A published row changes only by damage, of which this process may not be notified. */
const MAX_ROWS = 10_000
const ROW_KNOWN_FOR_MS = 10_000

/** A single viewer requests each segment once, so the segments of a video that one viewer watches are not copied into memory. */
export function createSegmentCache(): SegmentCache {
  const hot = new LRUCache<string, Promise<Buffer>>({ maxSize: MAX_BYTES, maxEntrySize: MAX_SEGMENT_BYTES })
  const rows = new LRUCache<string, ExpectedSegment>({ max: MAX_ROWS, ttl: ROW_KNOWN_FOR_MS })
  const requestedOnce = new LRUCache<string, true>({ max: MAX_REMEMBERED_NAMES })

  return {
    find: (name) => hot.get(name),
    readIfHot(name, sizeBytes, read) {
      const known = hot.get(name)
      if (known) return known
      if (sizeBytes > MAX_SEGMENT_BYTES || !requestedOnce.delete(name)) {
        requestedOnce.set(name, true)
        return undefined
      }
      const bytes = read()
      hot.set(name, bytes, { size: sizeBytes })
      bytes.catch(() => hot.delete(name))
      return bytes
    },
    findRow: (name) => rows.get(name),
    keepRow: (name, row) => void rows.set(name, row),
    forget(name) {
      hot.delete(name)
      rows.delete(name)
    },
  }
}
