import { LRUCache } from 'lru-cache'
import { createWindowKeyDeriver, deriveIvKey, unwrapContentKey } from '../../crypto/content-key.ts'
import type { MasterKey } from '../../crypto/master-key.ts'
import type { Db } from '../../db/database.ts'
import { listRepairs } from '../../encode/damage-store.ts'
import { findGeneration, findTimelineStart } from '../../encode/generation-store.ts'
import { audioSegmentCount, findAudioTrack, gridFor, type Plan, videoSegmentCount } from '../../encode/plan.ts'

/** What playback needs of one generation of a video, derived from its plan and content key. */
export type PlayableVideo = {
  videoId: string
  generation: number
  /** The file that it was made from: generations of one share their key budgets. */
  sourceNumber: number
  /** Where it begins on the time line of what viewers watched. */
  timelineStartS: number
  plan: Plan
  grid: SegmentGrid
  windowKey: (window: number) => Buffer
  /** What its viewers make the IVs of segments with. */
  ivKey: Buffer
  /** How often a segment was repaired after its file had other bytes: part of its address, without changing its IV. */
  repairsOf: (renditionId: number, segment: number) => number
}

/** The frame rate as a fraction, and the frames of a GOP, which is a segment. */
type SegmentGrid = { rateNum: number; rateDen: number; gopFrames: number }

export type PlayableVideos = {
  /** Undefined: there is no such generation, or its content key is destroyed. */
  get(videoId: string, generation: number): Promise<PlayableVideo | undefined>
  /** Drops videos from memory: their content keys are destroyed, or addresses of their segments have changed. */
  forget(videoIds: readonly string[]): void
}

/** Generations in memory; the least recently used are dropped. */
const MAX_CACHED = 500

/** Reads what playback needs of videos and keeps the recent ones in memory. */
export function createPlayableVideos(db: Db, masterKey: MasterKey): PlayableVideos {
  const cache = new LRUCache<string, PlayableVideo>({ max: MAX_CACHED })
  /** Counts the calls of `forget`, so that a video that was read meanwhile is read again. */
  let forgetCount = 0

  async function get(videoId: string, generation: number): Promise<PlayableVideo | undefined> {
    const key = `${videoId}/${generation}`
    const cached = cache.get(key)
    if (cached) return cached
    const countBefore = forgetCount
    const row = await findGeneration(db, { videoId, generation })
    const fileStartS = row ? await findTimelineStart(db, videoId, row.sourceNumber) : 0
    const repairs = new Map(
      (await listRepairs(db, { videoId, generation })).map((segment) => [segmentName(segment), segment.repairs]),
    )
    if (countBefore !== forgetCount) return get(videoId, generation) // its key may have been destroyed since
    if (!row?.wrappedContentKey) return undefined
    const contentKey = unwrapContentKey(masterKey, videoId, generation, row.wrappedContentKey)
    const video = {
      videoId,
      generation,
      sourceNumber: row.sourceNumber,
      timelineStartS: fileStartS + (row.plan.cut?.startS ?? 0),
      plan: row.plan,
      grid: gridFor(row.plan),
      windowKey: createWindowKeyDeriver(contentKey),
      ivKey: deriveIvKey(contentKey),
      repairsOf: (renditionId: number, number: number) => repairs.get(segmentName({ renditionId, number })) ?? 0,
    }
    cache.set(key, video)
    return video
  }

  function forget(videoIds: readonly string[]): void {
    forgetCount++
    for (const [key, video] of cache) if (videoIds.includes(video.videoId)) cache.delete(key)
  }

  return { get, forget }
}

function segmentName({ renditionId, number }: { renditionId: number; number: number }): string {
  return `${renditionId}/${number}`
}

export function hasRendition(video: PlayableVideo, renditionId: number): boolean {
  return findSegmentCount(video, renditionId) !== undefined
}

/** How many segments a rendition has; undefined when the video has none of that id. */
export function findSegmentCount({ plan }: PlayableVideo, renditionId: number): number | undefined {
  const audioTrack = findAudioTrack(plan, renditionId)
  if (audioTrack) return audioSegmentCount(audioTrack)
  const { videoTrack } = plan
  return videoTrack?.renditions.some(({ id }) => id === renditionId) ? videoSegmentCount(videoTrack) : undefined
}
