import type { GenerationKey } from '../../catalogue/generation-key.ts'
import type { Db } from '../../db/database.ts'
import type { Write } from '../../db/write.ts'
import { findInit, findSegment } from '../../encode/generation-store.ts'
import { findAudioTrack } from '../../encode/plan.ts'
import { prioritizeSegment } from '../../encode/prioritize-segment.ts'
import { waitForSegment } from '../../encode/publication.ts'
import type { Damage } from '../../encode/repair.ts'
import type { Signals } from '../../signals/signals.ts'
import { PlaybackRefusal } from '../refusal.ts'
import { isSignedMediaPath, type MediaSecrets } from './media-path.ts'
import { findSegmentCount, hasRendition, type PlayableVideo, type PlayableVideos } from './playable-video.ts'
import { cacheKey, type SegmentCache } from './segment-cache.ts'
import { DamagedFile, type OpenSegment, type SegmentFile, type SegmentReader } from './segment-reader.ts'

export type SegmentDeps = {
  db: Db
  write: Write
  nowS: () => number
  videos: PlayableVideos
  mediaSecrets(): MediaSecrets
  segmentReader: SegmentReader
  hotSegments: SegmentCache
  signals: Signals
  /** Called for each segment whose file is not as its row says. */
  reportDamage(damage: Damage): void
}

/** A signed address: `/media/<exp>/<sig>/<videoId>/<generation>/…` */
type MediaPath = GenerationKey & { exp: number; sig: string }

/** `repairs`: as its address has it. `sentBy`: `proxy` and `bucket` send it by the name of its blob. `signal` is aborted when the response has ended or its connection was closed. */
type SegmentRequest = {
  path: MediaPath
  renditionId: number
  number: number
  repairs: number
  sentBy: 'server' | 'proxy' | 'bucket'
  signal: AbortSignal
}

/** A player that waits longer takes the network for slow (playback-facts.md, section 2). */
const MAX_WAIT_MS = 4_000
const RETRY_DAMAGED_AFTER_S = 5

/**
 * Opens a segment, whose bytes are those that were published; of one that a proxy sends only the length is compared, and of one that the
 * bucket sends nothing. One that is not encoded yet, or is being repaired, gets priority and is waited for, 4 s at most.
 * @throws PlaybackRefusal `not-allowed` for a wrong or expired signature; `video-gone`; `file-gone` for a rendition that the video does
 * not have, or no longer; `bad-request` for a segment that it does not have; `segment-replaced` for the address from before a repair;
 * `busy` when it was not encoded in time, or its file is not as its row says
 */
export async function openSegment(deps: SegmentDeps, request: SegmentRequest): Promise<OpenSegment | SegmentFile> {
  const { path, renditionId, number, repairs, sentBy } = request
  const video = await getVideoWith(deps, path, renditionId)
  if (repairs !== video.repairsOf(renditionId, number)) throw new PlaybackRefusal('segment-replaced')
  const name = cacheKey(path, renditionId, number)
  try {
    const known = sentBy === 'server' ? undefined : deps.hotSegments.findRow(name)
    const hot = sentBy === 'server' ? deps.hotSegments.find(name) : undefined
    if (hot) return { bytes: await hot }
    const segment = known ?? (await findSegment(deps.db, path, renditionId, number)) ?? (await awaitSegment(deps, request))
    if (sentBy !== 'server') {
      if (!known) deps.hotSegments.keepRow(name, segment)
      return sentBy === 'proxy' ? await deps.segmentReader.find(segment) : segment
    }
    const bytes = await deps.hotSegments.readIfHot(name, segment.sizeBytes, () => deps.segmentReader.read(segment))
    return bytes ? { bytes } : await deps.segmentReader.open(segment, request.signal)
  } catch (error) {
    await getVideoWith(deps, path, renditionId) // it may have been deleted meanwhile, and its files with it
    if (!(error instanceof DamagedFile)) throw error
    const { videoId, generation } = path
    deps.reportDamage({ videoId, generation, renditionId, number, ...error.fault })
    throw new PlaybackRefusal('busy', { retryAfterS: RETRY_DAMAGED_AFTER_S })
  }
}

async function awaitSegment(
  deps: SegmentDeps,
  { path, renditionId, number, signal }: Omit<SegmentRequest, 'repairs' | 'sentBy'>,
) {
  const video = await getVideoWith(deps, path, renditionId)
  if (number >= (findSegmentCount(video, renditionId) ?? 0)) throw new PlaybackRefusal('bad-request')

  const isAudio = findAudioTrack(video.plan, renditionId) !== undefined
  const waited = waitForSegment(
    deps.signals,
    { ...path, renditionId, number },
    AbortSignal.any([signal, AbortSignal.timeout(MAX_WAIT_MS)]),
  )
  await prioritizeSegment(deps, path, isAudio ? 'audio' : 'video', number)
  // It may have been published after the first query and before the wait began.
  const published = await findSegment(deps.db, path, renditionId, number)
  if (published) return published
  await waited
  const late = await findSegment(deps.db, path, renditionId, number)
  if (!late) throw new PlaybackRefusal('busy')
  return late
}

/** The init segment of a rendition. @throws PlaybackRefusal as `openSegment` */
export async function openInit(
  deps: SegmentDeps,
  request: Omit<SegmentRequest, 'number' | 'repairs' | 'sentBy'>,
): Promise<Buffer> {
  const { path, renditionId } = request
  await getVideoWith(deps, path, renditionId)
  const init = await findInit(deps.db, path, renditionId)
  if (init) return init
  await awaitSegment(deps, { ...request, number: 0 }) // published together with the first segment
  return (await findInit(deps.db, path, renditionId)) ?? Promise.reject(new PlaybackRefusal('busy'))
}

async function getVideoWith(deps: SegmentDeps, path: MediaPath, renditionId: number): Promise<PlayableVideo> {
  if (!isSignedMediaPath(deps.mediaSecrets(), path, deps.nowS())) throw new PlaybackRefusal('not-allowed')
  const video = await deps.videos.get(path.videoId, path.generation)
  if (!video) throw new PlaybackRefusal('video-gone')
  if (!hasRendition(video, renditionId)) throw new PlaybackRefusal('file-gone')
  return video
}
