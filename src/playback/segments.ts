import { type FileHandle, open, readFile } from 'node:fs/promises'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import type { ChunkQueue } from '../encode/chunk-queue.ts'
import { findInit, findSegment } from '../encode/generation-store.ts'
import { prioritizeSegment } from '../encode/prioritize-segment.ts'
import type { SegmentEvents } from '../encode/publication.ts'
import type { Damage } from '../encode/repair.ts'
import { sizeMismatch, unreadableSegment } from '../encode/segment-file.ts'
import { type BlobFolder, blobPath } from '../storage/folder.ts'
import { isSignedMediaPath } from './media-path.ts'
import { findSegmentCount, type PlayableVideo, type PlayableVideos } from './playable-video.ts'
import { PlaybackRefusal } from './refusal.ts'
import { cacheKey, type SegmentCache } from './segment-cache.ts'

export type SegmentDeps = {
  db: Db
  write: Write
  nowS: () => number
  videos: PlayableVideos
  mediaSecret: string
  segments: BlobFolder
  hotSegments: SegmentCache
  chunkQueue: ChunkQueue
  news: SegmentEvents
  /** Says that a chunk was moved forward. */
  wakeEncoders(): void
  /** For each segment whose file is not as its row says. */
  noteDamage(damage: Damage): void
}

/** A signed address: `/media/<exp>/<sig>/<videoId>/<generation>/…` */
export type MediaPath = { exp: number; sig: string; videoId: string; generation: number }

/** Longer than a player likes to wait makes it think that the network is slow (playback-facts.md, section 2). */
const HOLD_MS = 4_000

/** A segment in memory, or its file, open, which the caller closes: whatever is deleted from now on, the whole of it can be sent. */
export type OpenSegment = { bytes: Buffer } | { file: FileHandle; sizeBytes: number }

/**
 * Opens a segment. One that is not encoded yet, or is encoded again, is moved forward and waited for, at most 4 s.
 * @throws PlaybackRefusal `not-allowed` for a false or old signature; `video-gone`; `bad-request` for a segment the video does not
 * have; `busy` when the wait was in vain, or its file is missing or not as long as its row says
 */
export async function openSegment(
  deps: SegmentDeps,
  path: MediaPath,
  renditionId: number,
  number: number,
  signal: AbortSignal,
): Promise<OpenSegment> {
  await getSignedVideo(deps, path)
  const name = cacheKey(path, renditionId, number)
  try {
    const hot = deps.hotSegments.find(name)
    if (hot) return { bytes: await hot }
    const { file, sizeBytes } =
      (await findSegment(deps.db, path, renditionId, number)) ?? (await awaitSegment(deps, path, renditionId, number, signal))
    return await readSegment(deps, name, file, sizeBytes)
  } catch (error) {
    await getSignedVideo(deps, path) // the video may have been deleted meanwhile, and its files with it
    if (!(error instanceof DamagedFile)) throw error
    const { videoId, generation } = path
    deps.noteDamage({ videoId, generation, renditionId, number, problem: error.message })
    throw new PlaybackRefusal('busy', { retryAfterS: DAMAGED_AGAIN_S })
  }
}

const DAMAGED_AGAIN_S = 5

/** A file is missing, or not as long as its row says. */
class DamagedFile extends Error {}

/** Before anything of an answer leaves: a short segment that a cache took for whole would stay there for a year. */
async function readSegment(deps: SegmentDeps, name: string, file: string, sizeBytes: number): Promise<OpenSegment> {
  const place = blobPath(deps.segments, file)
  const bytes = await deps.hotSegments.readIfHot(name, sizeBytes, async () => {
    const read = await readFile(place).catch(refuseUnreadable)
    refuseOtherSize(read.length, sizeBytes)
    return read
  })
  if (bytes) return { bytes }
  const opened = await open(place).catch(refuseUnreadable)
  try {
    refuseOtherSize((await opened.stat()).size, sizeBytes)
    return { file: opened, sizeBytes }
  } catch (error) {
    await opened.close()
    throw error
  }
}

function refuseOtherSize(foundBytes: number, expectedBytes: number): void {
  if (foundBytes !== expectedBytes) throw new DamagedFile(sizeMismatch(foundBytes, expectedBytes))
}

function refuseUnreadable(error: unknown): never {
  throw new DamagedFile(unreadableSegment(error))
}

async function awaitSegment(deps: SegmentDeps, path: MediaPath, renditionId: number, number: number, signal: AbortSignal) {
  const video = await getSignedVideo(deps, path)
  if (number >= (findSegmentCount(video, renditionId) ?? 0)) throw new PlaybackRefusal('bad-request')

  const isAudio = video.plan.audioTrack?.renditionId === renditionId
  const patience = AbortSignal.any([signal, AbortSignal.timeout(HOLD_MS)])
  const heard = deps.news.heard(path, renditionId, number, patience)
  if (await prioritizeSegment(deps, path, isAudio ? 'audio' : 'video', number)) deps.wakeEncoders()
  // It may have been published between the first look and the listening.
  const published = await findSegment(deps.db, path, renditionId, number)
  if (published) return published
  await heard
  const late = await findSegment(deps.db, path, renditionId, number)
  if (!late) throw new PlaybackRefusal('busy')
  return late
}

/** The init segment of a rendition. @throws PlaybackRefusal as `openSegment` */
export async function openInit(deps: SegmentDeps, path: MediaPath, renditionId: number, signal: AbortSignal): Promise<Buffer> {
  await getSignedVideo(deps, path)
  const init = await findInit(deps.db, path, renditionId)
  if (init) return init
  await awaitSegment(deps, path, renditionId, 0, signal) // the first segment brings it
  return (await findInit(deps.db, path, renditionId)) ?? Promise.reject(new PlaybackRefusal('busy'))
}

async function getSignedVideo(deps: SegmentDeps, path: MediaPath): Promise<PlayableVideo> {
  if (!isSignedMediaPath(deps.mediaSecret, path, deps.nowS())) throw new PlaybackRefusal('not-allowed')
  const video = await deps.videos.get(path.videoId, path.generation)
  if (!video) throw new PlaybackRefusal('video-gone')
  return video
}
