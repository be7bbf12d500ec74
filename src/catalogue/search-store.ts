import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../db/database.ts'
import {
  type Counted,
  countAndSlice,
  type IndexScan,
  isPostgres,
  type Slice,
  sliceInOrder,
  type TextTerm,
  textMatchScan,
} from '../db/dialect.ts'
import { foldCase } from '../db/fold-case.ts'
import { findFolder } from './folder-store.ts'
import type { Metadata } from './own-fields.ts'
import { listExternalIds } from './own-fields-store.ts'
import type { VideoStatus } from './status.ts'

/** Selects videos of an account that match all given fields. Texts match literally as substrings, compared as in db/fold-case.ts. */
export type VideoFilter = {
  /** Part of the id or of the title. */
  text?: string
  id?: string
  title?: string
  fileName?: string
  /** Exact names, without duplicates. */
  tags?: readonly string[]
  /** Directly in this folder. */
  folderId?: string
  /** Exact. */
  externalId?: string
  /** Pairs that a video must have, each with a value short enough for their index. */
  metadata?: Metadata
  /** In one of these states. */
  statuses?: readonly VideoStatus[]
}

/** Longer than any stored text, in UTF-16 units, so that nothing contains it. */
const MAX_TERM_LENGTH = 2000

/** Whether entries of an index must be looked at one by one: that may take milliseconds, so it runs in its own thread. */
export function isSlowSearch(filter: VideoFilter): boolean {
  const { tags = [], folderId, externalId } = filter
  const setCount = tags.length + [folderId, externalId].filter((one) => one !== undefined).length
  const isCounted = textTerms(filter).length > 0 || filter.statuses !== undefined || metadataPairs(filter).length > 0
  return isCounted || setCount > 1
}

/**
 * The number of an account's videos that match a filter, `countUpTo` at most, and the positions of a slice of them, newest first.
 * Only indexes are read; a slice after the last match costs nothing.
 */
export async function findPositions(db: Db, accountId: string, filter: VideoFilter, slice: Slice): Promise<Counted> {
  const sets = await findIndexedSets(db, accountId, filter)
  if (sets === undefined || matchesNothing(filter)) return { count: 0, positions: [] }
  const scan = planScan(db, accountId, filter, sets)
  if (isSlowSearch(filter)) return countAndSlice(db, scan, slice)
  const count = sets[0]?.videoCount ?? (await countVideos(db, accountId))
  const positions = slice.offset < count ? await sliceInOrder(db, scan, slice) : []
  return { count: Math.min(count, slice.countUpTo ?? count), positions }
}

/** Another order of a list than newest first. Videos that are equal in it are in the order in which they came, or for `descending` the other. */
export type VideoOrder = { by: 'title' | 'uploadTime' | 'length' | 'size' | 'views'; descending: boolean }

/**
 * The same in another order. Without a filter an index has it, except that of views; with one, all matches are sorted.
 * @param slice.offset how many to skip: there is no position to read on from
 */
export async function findSortedPositions(
  db: Db,
  accountId: string,
  { filter, order }: { filter: VideoFilter; order: VideoOrder },
  { limit, offset }: Pick<Slice, 'limit' | 'offset'>,
): Promise<Counted> {
  const { count } = await findPositions(db, accountId, filter, { limit: 1, offset: 0 })
  const sets = offset < count ? await findIndexedSets(db, accountId, filter) : undefined
  if (sets === undefined) return { count, positions: [] }
  const { position, from } = planScan(db, accountId, filter, sets)
  const isFiltered = sets.length > 0 || isSlowSearch(filter)
  const direction = sql.raw(order.descending ? 'desc' : 'asc')
  const { rows } = await sql<{ position: number }>`
    select video.position as position from video
    ${order.by === 'views' ? sql`left join view_total on view_total.video_id = video.id` : sql``}
    where video.account_id = ${accountId} and video.deleted_at_s is null
    ${isFiltered ? sql`and video.position in (select ${position} ${from})` : sql``}
    order by ${sortKey(db, order.by)} ${direction}, video.position ${direction} limit ${limit} offset ${offset}`.execute(db)
  return { count, positions: rows.map((row) => row.position) }
}

/** As the indexes have it. Titles without regard to the case of A to Z, the same on both databases. */
function sortKey(db: Db, by: VideoOrder['by']): RawBuilder<unknown> {
  if (by === 'title') return isPostgres(db) ? sql`lower(video.title collate "C") collate "C"` : sql`video.title collate nocase`
  return { uploadTime: sql`video.upload_time_s`, length: sql`video.duration_s`, size: sql`video.total_size_bytes`, views: VIEWS }[
    by
  ]
}
const VIEWS = sql`coalesce(view_total.view_count, 0)`

/** The account's videos with a tag, in a folder or with an own field, as entries of an index in list order, with their number. */
type IndexedSet = IndexScan & { videoCount: number; holds(position: RawBuilder<number>): RawBuilder<unknown> }

/** Scans the smallest suitable index in list order, and checks the other conditions for each entry. */
function planScan(db: Db, accountId: string, filter: VideoFilter, sets: readonly IndexedSet[]): IndexScan {
  const scan = planScanOfAnyStatus(db, accountId, filter, sets)
  const { position, from } = scan
  const { statuses } = filter
  if (statuses === undefined) return scan
  const isIn = sql`exists (select 1 from video as other where other.position = ${position} and other.status in (${sql.join(statuses)}))`
  return { ...scan, from: sql`${from} and ${isIn}` }
}

/** The same without the condition on the state. */
function planScanOfAnyStatus(db: Db, accountId: string, filter: VideoFilter, sets: readonly IndexedSet[]): IndexScan {
  const texts = textTerms(filter)
  if (texts.length > 0) {
    const scan = textMatchScan(db, accountId, texts)
    return { ...scan, from: sql`${scan.from} ${andIn(sets, scan.position)}` }
  }
  const [smallest, ...others] = sets
  if (smallest) {
    const { position, from } = smallest
    return { position, from: sql`${from} ${andIn(others, position)}` }
  }
  return {
    position: sql`video.position`,
    from: sql`from video where video.account_id = ${accountId} and video.deleted_at_s is null`,
  }
}

function andIn(sets: readonly IndexedSet[], position: RawBuilder<number>): RawBuilder<unknown> {
  const conditions = sets.map((set) => sql`and ${set.holds(position)}`)
  return sql.join(conditions, sql` `)
}

function tagSet(accountId: string, { name, videoCount }: { name: string; videoCount: number }): IndexedSet {
  return {
    videoCount,
    position: sql`video_tag.position`,
    from: sql`from video_tag where video_tag.account_id = ${accountId} and video_tag.name = ${name}`,
    holds: (position) => sql`exists (select 1 from video_tag as other
      where other.account_id = ${accountId} and other.name = ${name} and other.position = ${position})`,
  }
}

function folderSet(accountId: string, { id, videoCount }: { id: string; videoCount: number }): IndexedSet {
  return {
    videoCount,
    position: sql`video.position`,
    from: sql`from video where video.account_id = ${accountId} and video.folder_id = ${id} and video.deleted_at_s is null`,
    holds: (position) =>
      sql`exists (select 1 from video as other where other.position = ${position} and other.folder_id = ${id})`,
  }
}

function positionSet(one: number): IndexedSet {
  return {
    videoCount: 1,
    position: sql`video.position`,
    from: sql`from video where video.position = ${one}`,
    holds: (position) => sql`${position} = ${one}`,
  }
}

function metadataSet(accountId: string, { name, value, videoCount }: MetadataCount): IndexedSet {
  return {
    videoCount,
    position: sql`video_metadata.position`,
    from: sql`from video_metadata
      where video_metadata.account_id = ${accountId} and video_metadata.name = ${name} and video_metadata.value = ${value}`,
    // With an offset PostgreSQL looks at each position, where it could join all videos with the pair.
    holds: (position) => sql`exists (select 1 from video_metadata as other where other.account_id = ${accountId}
      and other.name = ${name} and other.value = ${value} and other.position = ${position} limit 1 offset 0)`,
  }
}

function textTerms({ text, id, title, fileName }: VideoFilter): TextTerm[] {
  const terms: (Pick<TextTerm, 'columns'> & { part: string | undefined })[] = [
    { columns: ['id', 'title'], part: text },
    { columns: ['id'], part: id },
    { columns: ['title'], part: title },
    { columns: ['file_name'], part: fileName },
  ]
  return terms.flatMap(({ columns, part }) => (part === undefined ? [] : [{ columns, part: foldCase(part) }]))
}

function matchesNothing(filter: VideoFilter): boolean {
  return textTerms(filter).some(({ part }) => part.length > MAX_TERM_LENGTH || part.includes('\0'))
}

async function countVideos(db: Db, accountId: string): Promise<number> {
  const account = await db.selectFrom('account').select('videoCount').where('id', '=', accountId).executeTakeFirst()
  return account?.videoCount ?? 0
}

/** The sets that a video must be in, smallest first. Undefined: one of the tags has no videos, or there is no such folder or id. */
async function findIndexedSets(db: Db, accountId: string, filter: VideoFilter) {
  const { tags = [], folderId, externalId } = filter
  const tagCounts = tags.length === 0 ? [] : await findTagCounts(db, accountId, tags)
  const folder = folderId === undefined ? undefined : await findFolder(db, accountId, folderId)
  if (tagCounts.length < tags.length || (folderId !== undefined && !folder)) return undefined
  const [named] = externalId === undefined ? [] : await listExternalIds(db, accountId, [externalId])
  if (externalId !== undefined && !named) return undefined
  const metadataCounts = await countMetadata(db, accountId, metadataPairs(filter))
  const sets = [
    ...tagCounts.map((tag) => tagSet(accountId, tag)),
    ...(folder ? [folderSet(accountId, folder)] : []),
    ...(named ? [positionSet(named.position)] : []),
    ...metadataCounts.map((pair) => metadataSet(accountId, pair)),
  ]
  return sets.toSorted((a, b) => a.videoCount - b.videoCount)
}

type MetadataPair = { name: string; value: string }
type MetadataCount = MetadataPair & { videoCount: number }

function metadataPairs({ metadata = {} }: VideoFilter): MetadataPair[] {
  return Object.entries(metadata).map(([name, value]) => ({ name, value }))
}

/** Counts no further than this to find the smallest set. */
const MAX_COMPARED_COUNT = 1_000

async function countMetadata(db: Db, accountId: string, pairs: readonly MetadataPair[]): Promise<MetadataCount[]> {
  const counts: MetadataCount[] = []
  for (const pair of pairs) {
    const rows = await db
      .selectFrom('videoMetadata')
      .select('position')
      .where(({ and }) => and({ accountId, ...pair }))
      .limit(MAX_COMPARED_COUNT)
      .execute()
    counts.push({ ...pair, videoCount: rows.length })
  }
  return counts
}

async function findTagCounts(db: Db, accountId: string, names: readonly string[]) {
  return db
    .selectFrom('tag')
    .select(['name', 'videoCount'])
    .where('accountId', '=', accountId)
    .where('name', 'in', names)
    .execute()
}
