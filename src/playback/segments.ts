import { type FileHandle, open, readFile } from 'node:fs/promises'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import type { ChunkQueue } from '../encode/chunk-queue.ts'
import { findInit, findSegment } from '../encode/film-store.ts'
import { hurrySegment } from '../encode/hurry.ts'
import type { SegmentNews } from '../encode/publication.ts'
import { type BlobFolder, blobPath } from '../storage/folder.ts'
import { type Film, type Films, findSegmentCount } from './film.ts'
import type { HotSegments } from './hot-segments.ts'
import { isSignedMediaPath } from './media-path.ts'
import { PlaybackRefusal } from './refusal.ts'

export type SegmentDeps = {
  db: Db
  write: Write
  nowS: () => number
  films: Films
  mediaSecret: string
  segments: BlobFolder
  hotSegments: HotSegments
  chunkQueue: ChunkQueue
  news: SegmentNews
  /** Says that a chunk was moved forward. */
  wakeEncoders(): void
}

/** A signed address: `/media/<exp>/<sig>/<videoId>/<generation>/…` */
export type MediaPath = { exp: number; sig: string; videoId: string; generation: number }

/** Longer than a player likes to wait makes it think that the network is slow (playback-facts.md, section 2). */
const HOLD_MS = 4_000

/** A segment in memory, or its file, open, which the caller closes: whatever is deleted from now on, the whole of it can be sent. */
export type OpenSegment = { bytes: Buffer } | { file: FileHandle; sizeBytes: number }

/**
 * Opens a segment. One that is not encoded yet is moved forward and waited for, at most 4 s.
 * @throws PlaybackRefusal `not-allowed` for a false or old signature; `video-gone`; `bad-request` for a segment the film does not
 * have; `busy` when the wait was in vain
 */
export async function openSegment(
  deps: SegmentDeps,
  path: MediaPath,
  renditionId: number,
  number: number,
  signal: AbortSignal,
): Promise<OpenSegment> {
  await getSignedFilm(deps, path)
  const name = `${path.videoId}/${path.generation}/${renditionId}/${number}`
  const hot = deps.hotSegments.find(name)
  if (hot) return { bytes: await orGone(deps, path, hot) }
  const { file, sizeBytes } =
    (await findSegment(deps.db, path, renditionId, number)) ?? (await awaitSegment(deps, path, renditionId, number, signal))
  return orGone(deps, path, readSegment(deps, name, file, sizeBytes))
}

async function readSegment(deps: SegmentDeps, name: string, file: string, sizeBytes: number): Promise<OpenSegment> {
  const place = blobPath(deps.segments, file)
  const bytes = await deps.hotSegments.readIfHot(name, sizeBytes, () => readFile(place))
  return bytes ? { bytes } : { file: await open(place), sizeBytes }
}

/** What is read; `video-gone` where that fails because the film was deleted meanwhile. Otherwise the disk has lost it. */
async function orGone<T>(deps: SegmentDeps, path: MediaPath, reading: Promise<T>): Promise<T> {
  try {
    return await reading
  } catch (error) {
    await getSignedFilm(deps, path)
    throw error
  }
}

async function awaitSegment(deps: SegmentDeps, path: MediaPath, renditionId: number, number: number, signal: AbortSignal) {
  const film = await getSignedFilm(deps, path)
  if (number >= (findSegmentCount(film, renditionId) ?? 0)) throw new PlaybackRefusal('bad-request')

  const isSound = film.plan.sound?.renditionId === renditionId
  const patience = AbortSignal.any([signal, AbortSignal.timeout(HOLD_MS)])
  const heard = deps.news.heard(path, renditionId, number, patience)
  if (await hurrySegment(deps, path, isSound ? 'sound' : 'picture', number)) deps.wakeEncoders()
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
  await getSignedFilm(deps, path)
  const init = await findInit(deps.db, path, renditionId)
  if (init) return init
  await awaitSegment(deps, path, renditionId, 0, signal) // the first segment brings it
  return (await findInit(deps.db, path, renditionId)) ?? Promise.reject(new PlaybackRefusal('busy'))
}

async function getSignedFilm(deps: SegmentDeps, path: MediaPath): Promise<Film> {
  if (!isSignedMediaPath(deps.mediaSecret, path, deps.nowS())) throw new PlaybackRefusal('not-allowed')
  const film = await deps.films.get(path.videoId, path.generation)
  if (!film) throw new PlaybackRefusal('video-gone')
  return film
}
