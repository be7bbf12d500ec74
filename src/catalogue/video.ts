import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { VideoRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { videoNotFound } from '../errors.ts'
import { getFolder } from './folder.ts'
import { listPosters, type Poster } from './poster-store.ts'
import { findPositions, isSlowSearch, type VideoFilter } from './search-store.ts'
import { listTagsOfVideos } from './tag-store.ts'
import { parseDescription, parseTitle } from './title.ts'
import { findVideosByPosition, listPositions, updateVideo, type VideoChanges } from './video-store.ts'

export type CatalogueDeps = {
  db: Db
  write: Write
  /** The wall clock, for what owners read as a time. */
  wallNowS: () => number
}
/** What lists are read with: quick reads, and slow ones in a thread of their own. */
export type ListDeps = { db: Db; slowDb: Db }

/** A video as its owner sees it. */
export type Video = VideoRow & { posters: Poster[]; tags: string[] }

/** Rows passed over on the way to a page: more may take milliseconds. */
const FEW_ROWS = 5_000

/** Which page: by its number from 1, or what is older than a position. */
export type PageRequest = { limit: number } & ({ page: number } | { below: number })

/**
 * A page of the videos that the filter finds, newest first, and how many it finds in all. Both are read one after the other:
 * what comes or goes meanwhile may be in one of them only. A page behind the last is empty and costs nothing.
 * @returns `lastPosition` where more follow: what is older than it, read page by page, has each video once, whatever comes and goes
 * @throws Failure `not-found` when the account has no such folder
 */
export async function findVideos(
  { db, slowDb }: ListDeps,
  accountId: string,
  filter: VideoFilter,
  wanted: PageRequest,
): Promise<{ count: number; videos: Video[]; lastPosition: number | undefined }> {
  const { limit } = wanted
  if (filter.folderId !== undefined) await getFolder(db, accountId, filter.folderId)
  const place = 'page' in wanted ? { offset: (wanted.page - 1) * limit } : { offset: 0, below: wanted.below }
  const reader = isSlowSearch(filter) || place.offset > FEW_ROWS ? slowDb : db
  // One more than a page shows whether anything follows.
  const { count, positions: found } = await findPositions(reader, accountId, filter, { limit: limit + 1, ...place })
  const positions = found.slice(0, limit)
  const videos = await readVideos(db, accountId, positions)
  return { count, videos, lastPosition: found.length > limit ? positions.at(-1) : undefined }
}

/** @throws Failure `not-found`, the same for an id that does not exist and for another account's */
export async function getVideo({ db }: Pick<CatalogueDeps, 'db'>, accountId: string, videoId: string): Promise<Video> {
  const [video] = await readVideos(db, accountId, await listPositions(db, accountId, [videoId]))
  if (!video) throw videoNotFound()
  return video
}

/** Changes what is given and nothing else. @throws Failure `not-found`, of the folder too; `invalid` for a text that cannot be kept */
export async function editVideo(
  { write, wallNowS }: Pick<CatalogueDeps, 'write' | 'wallNowS'>,
  accountId: string,
  by: Actor,
  videoId: string,
  changes: VideoChanges,
): Promise<void> {
  if (changes.title !== undefined) parseTitle(changes.title)
  if (changes.description !== undefined) parseDescription(changes.description)
  const atS = wallNowS()
  await write(async (tx) => {
    if (changes.folderId !== undefined) await getFolder(tx, accountId, changes.folderId)
    if (!(await updateVideo(tx, accountId, videoId, changes))) throw videoNotFound()
    const details = { changed: Object.keys(changes) }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:edited', subjects: [videoId], details })
  })
}

async function readVideos(db: Db, accountId: string, positions: readonly number[]): Promise<Video[]> {
  // First what goes with a video, then the video: one that is deleted meanwhile is missing, and never seen without its tags.
  const tags = await listTagsOfVideos(db, positions)
  const rows = await findVideosByPosition(db, accountId, positions)
  const posters = await listPosters(
    db,
    rows.map((row) => row.id),
  )
  return rows.map((row) => ({ ...row, posters: posters.get(row.id) ?? [], tags: tags.get(row.position) ?? [] }))
}
