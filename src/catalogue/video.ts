import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { ReplacementRow, VideoRow } from '../db/tables.ts'
import { videoNotFound } from '../errors.ts'
import type { CatalogueDeps, ListDeps } from './catalogue-deps.ts'
import { getFolder } from './folder.ts'
import { assertExternalIdsFree, type OwnFields, parseOwnFields } from './own-fields.ts'
import { listEnabledPosters, type Poster } from './poster-store.ts'
import { listReplacements } from './replacement-store.ts'
import { findPositions, findSortedPositions, isSlowSearch, type VideoFilter, type VideoOrder } from './search-store.ts'
import { listTagsOfVideos } from './tag-store.ts'
import { parseDescription, parseTitle } from './title.ts'
import {
  findVideosByPosition,
  hasAddedAll,
  listExisting,
  listPositions,
  listSummaries,
  setFolder,
  updateVideo,
  type VideoChanges,
  type VideoSummary,
} from './video-store.ts'

/** A video as its owner sees it. */
export type Video = VideoRow & { posters: Poster[]; tags: string[]; replacement: ReplacementRow | undefined }

/** Skipping more rows than this on the way to a page may take milliseconds. */
const MAX_QUICK_OFFSET = 5_000

/** Counting up to more than this is as slow as an exact count. */
export const MAX_COUNT_UP_TO = 10_000

/** A page by its number, from 1, or the videos older than a position. */
export type PageRequest = { limit: number; countUpTo?: number } & ({ page: number } | { below: number })

/**
 * A page of the videos that match the filter, newest first, and the number of all matches, or `countUpTo` if there are more. The two
 * are read one after the other, so a video added or deleted in between may be in only one of them. A page after the last is empty and
 * costs nothing.
 * @returns `lastPosition` where more follow. Reading on from it yields each video once, even while others are added and deleted
 * @throws Failure `not-found` when the account has no such folder
 */
export async function findVideos(
  { db, slowQueryDb }: ListDeps,
  accountId: string,
  filter: VideoFilter,
  pageRequest: PageRequest,
): Promise<{ count: number; videos: Video[]; lastPosition: number | undefined }> {
  const { limit, countUpTo } = pageRequest
  if (filter.folderId !== undefined) await getFolder(db, accountId, filter.folderId)
  const start = 'page' in pageRequest ? { offset: (pageRequest.page - 1) * limit } : { offset: 0, below: pageRequest.below }
  const reader = isSlowSearch(filter) || start.offset > MAX_QUICK_OFFSET ? slowQueryDb : db
  // One more than the page, to know whether more follow.
  const { count, positions: found } = await findPositions(reader, accountId, filter, { limit: limit + 1, countUpTo, ...start })
  const positions = found.slice(0, limit)
  const videos = await readVideos(db, accountId, positions)
  return { count, videos, lastPosition: found.length > limit ? positions.at(-1) : undefined }
}

/**
 * A page of the same in another order.
 * @returns `hasMore` where a page follows
 * @throws Failure `not-found` when the account has no such folder
 */
export async function findSortedVideos(
  { db, slowQueryDb }: ListDeps,
  accountId: string,
  search: { filter: VideoFilter; order: VideoOrder },
  { page, limit }: { page: number; limit: number },
): Promise<{ count: number; videos: Video[]; hasMore: boolean }> {
  const { folderId } = search.filter
  if (folderId !== undefined) await getFolder(db, accountId, folderId)
  const offset = Math.min((page - 1) * limit, Number.MAX_SAFE_INTEGER)
  const { count, positions } = await findSortedPositions(slowQueryDb, accountId, search, { limit, offset })
  const videos = new Map((await readVideos(db, accountId, positions)).map((video) => [video.position, video]))
  const sorted = positions.map((position) => videos.get(position)).filter((video) => video !== undefined)
  return { count, videos: sorted, hasMore: offset + limit < count }
}

/** @throws Failure `not-found`, the same for an id that does not exist and for another account's */
export async function getVideo({ db }: Pick<CatalogueDeps, 'db'>, accountId: string, videoId: string): Promise<Video> {
  const [video] = await readVideos(db, accountId, await listPositions(db, accountId, [videoId]))
  if (!video) throw videoNotFound()
  return video
}

/** Whether a person has added these videos of the account, at least one and all of them. */
export async function haveAddedVideos(
  { db }: Pick<CatalogueDeps, 'db'>,
  { accountId, consoleUserId }: { accountId: string; consoleUserId: string },
  videoIds: readonly string[],
): Promise<boolean> {
  return hasAddedAll(db, accountId, consoleUserId, videoIds)
}

/** Those of the videos that exist, by their id. */
export async function findSummaries(
  { db }: Pick<CatalogueDeps, 'db'>,
  accountId: string,
  videoIds: readonly string[],
): Promise<ReadonlyMap<string, VideoSummary>> {
  const ids = [...new Set(videoIds)].filter((id) => id !== '')
  const rows = ids.length === 0 ? [] : await listSummaries(db, accountId, ids)
  return new Map(rows.map((row) => [row.id, row]))
}

type VideoEdit = Omit<VideoChanges, keyof OwnFields> & OwnFields

/** Changes only the given fields. @throws Failure `not-found`, also for the folder; `invalid` for an invalid text; `conflict` for another video's id */
export async function editVideo(
  { write, wallNowS }: Pick<CatalogueDeps, 'write' | 'wallNowS'>,
  {
    accountId,
    by,
    videoId,
    changes: { externalId, metadata, ...texts },
  }: { accountId: string; by: Actor; videoId: string; changes: VideoEdit },
): Promise<void> {
  if (texts.title !== undefined) parseTitle(texts.title)
  if (texts.description !== undefined) parseDescription(texts.description)
  const changes: VideoChanges = { ...texts, ...parseOwnFields({ externalId, metadata }) }
  const atS = wallNowS()
  await write(async (tx) => {
    if (changes.folderId !== undefined) await getFolder(tx, accountId, changes.folderId)
    await assertExternalIdsFree(tx, accountId, [changes.externalId], videoId)
    if (!(await updateVideo(tx, accountId, videoId, changes))) throw videoNotFound()
    const details = { changed: Object.keys(changes) }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:edited', subjects: [videoId], details })
  })
}

/** All or none. @returns how many. @throws Failure `not-found` for an unknown video or folder */
export async function moveVideos(
  { write, wallNowS }: Pick<CatalogueDeps, 'write' | 'wallNowS'>,
  { accountId, by, folderId, ...request }: { accountId: string; by: Actor; videoIds: readonly string[]; folderId: string },
): Promise<number> {
  const videoIds = [...new Set(request.videoIds)]
  if (videoIds.length === 0) return 0
  const atS = wallNowS()
  await write(async (tx) => {
    await getFolder(tx, accountId, folderId)
    if ((await setFolder(tx, accountId, videoIds, folderId)) < videoIds.length) throw videoNotFound()
    const details = { changed: ['folderId'] }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'video:edited', subjects: videoIds, details })
  })
  return videoIds.length
}

async function readVideos(db: Db, accountId: string, positions: readonly number[]): Promise<Video[]> {
  // Tags first: a video deleted in between is then missing, instead of listed without its tags.
  const tags = await listTagsOfVideos(db, positions)
  const rows = await findVideosByPosition(db, accountId, positions)
  const ids = rows.map((row) => row.id)
  const posters = await listEnabledPosters(db, ids)
  const replacements = await listReplacements(db, ids)
  const duplicateOf = rows.flatMap((row) => row.duplicateOf ?? [])
  const originals = duplicateOf.length === 0 ? [] : await listExisting(db, accountId, duplicateOf)
  return rows.map((row) => ({
    ...row,
    duplicateOf: originals.find((id) => id === row.duplicateOf) ?? null,
    posters: posters.get(row.id) ?? [],
    tags: tags.get(row.position) ?? [],
    replacement: replacements.get(row.id),
  }))
}
