import type { GenerationKey } from '../catalogue/generation-key.ts'
/** Segments that more than one asks for, in memory: a premiere's viewers want the same ones at the same time. */
export type SegmentCache = {
  find(name: string): Promise<Buffer> | undefined
  /** Reads and keeps a segment that was asked for before, once for all who ask meanwhile; undefined when this is the first time. */
  readIfHot(name: string, sizeBytes: number, read: () => Promise<Buffer>): Promise<Buffer> | undefined
  /** Lets go of a segment whose file was found damaged. */
  forget(name: string): void
}

/** What a segment is called here. */
export function cacheKey(video: GenerationKey, renditionId: number, number: number): string {
  return `${video.videoId}/${video.generation}/${renditionId}/${number}`
}

const KEPT_BYTES = 64 * 2 ** 20
/** A larger one is streamed from the disk always. */
const LARGEST_BYTES = 8 * 2 ** 20
const REMEMBERED_NAMES = 2_000

/** Who watches alone asks for each segment once: such a video passes by without a copy of it in memory. */
export function createSegmentCache(): SegmentCache {
  const kept = new Map<string, { bytes: Promise<Buffer>; sizeBytes: number }>() // the one asked for longest ago first
  const askedOnce = new Set<string>()
  let keptBytes = 0

  function find(name: string): Promise<Buffer> | undefined {
    const segment = kept.get(name)
    if (!segment) return undefined
    kept.delete(name)
    kept.set(name, segment)
    return segment.bytes
  }

  function readIfHot(name: string, sizeBytes: number, read: () => Promise<Buffer>): Promise<Buffer> | undefined {
    const known = find(name)
    if (known) return known
    if (sizeBytes > LARGEST_BYTES || !askedOnce.delete(name)) {
      askedOnce.add(name)
      if (askedOnce.size > REMEMBERED_NAMES) askedOnce.delete(askedOnce.keys().next().value ?? '')
      return undefined
    }
    const bytes = read()
    kept.set(name, { bytes, sizeBytes })
    keptBytes += sizeBytes
    bytes.catch(() => drop(name))
    for (const oldest of kept.keys()) {
      if (keptBytes <= KEPT_BYTES) break
      drop(oldest)
    }
    return bytes
  }

  function drop(name: string): void {
    keptBytes -= kept.get(name)?.sizeBytes ?? 0
    kept.delete(name)
  }

  return { find, readIfHot, forget: drop }
}
