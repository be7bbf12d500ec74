import { LRUCache } from 'lru-cache'
import { segmentIvs, unwrapContentKey } from '../crypto/content-key.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import type { Db } from '../db/database.ts'
import { findGeneration } from '../encode/generation-store.ts'
import { audioSegmentCount, gridFor, type Plan, videoSegmentCount } from '../encode/plan.ts'

/** What playback needs of a video, computed from a few numbers and its content key. */
export type PlayableVideo = {
  videoId: string
  generation: number
  plan: Plan
  grid: SegmentGrid
  contentKey: Buffer
  ivOf: (renditionId: number, segment: number) => Buffer
}

export type SegmentGrid = { rateNum: number; rateDen: number; gopFrames: number }

export type PlayableVideos = {
  /** Undefined: there is no such generation, or its content key is destroyed. */
  get(videoId: string, generation: number): Promise<PlayableVideo | undefined>
  /** Drops videos from memory when their content keys are destroyed. */
  forget(videoIds: readonly string[]): void
}

/** Videos in memory; the least recently used are dropped. */
const MAX_OPEN = 500

/** Reads what playback needs of videos and keeps the recent ones in memory. */
export function createPlayableVideos(db: Db, masterKey: MasterKey): PlayableVideos {
  const open = new LRUCache<string, PlayableVideo>({ max: MAX_OPEN })
  let forgotten = 0

  async function get(videoId: string, generation: number): Promise<PlayableVideo | undefined> {
    const name = `${videoId}/${generation}`
    const kept = open.get(name)
    if (kept) return kept
    const begunAt = forgotten
    const row = await findGeneration(db, { videoId, generation })
    if (begunAt !== forgotten) return get(videoId, generation) // its key may have been destroyed since
    if (!row?.wrappedContentKey) return undefined
    const contentKey = unwrapContentKey(masterKey, videoId, generation, row.wrappedContentKey)
    const video = { videoId, generation, plan: row.plan, grid: gridFor(row.plan), contentKey, ivOf: segmentIvs(contentKey) }
    open.set(name, video)
    return video
  }

  function forget(videoIds: readonly string[]): void {
    forgotten++
    for (const [name, video] of open) if (videoIds.includes(video.videoId)) open.delete(name)
  }

  return { get, forget }
}

/** How many segments a rendition has; undefined when the video has none of that id. */
export function findSegmentCount({ plan: { videoTrack, audioTrack } }: PlayableVideo, renditionId: number): number | undefined {
  if (audioTrack?.renditionId === renditionId) return audioSegmentCount(audioTrack)
  return videoTrack?.renditions.some(({ id }) => id === renditionId) ? videoSegmentCount(videoTrack) : undefined
}
