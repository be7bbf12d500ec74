import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../db/database.ts'
import {
  type Counted,
  countAndSlice,
  type IndexScan,
  type Slice,
  sliceInOrder,
  type TextTerm,
  textMatchScan,
} from '../db/dialect.ts'
import { foldCase } from '../db/fold-case.ts'
import { findFolder } from './folder-store.ts'
import type { VideoStatus } from './status.ts'

/** Which of an account's videos: all that is given must hold. Texts are parts, taken literally, compared as db/fold-case.ts says. */
export type VideoFilter = {
  /** Part of the id or the title. */
  text?: string
  id?: string
  title?: string
  fileName?: string
  /** Exact names, each once. */
  tags?: readonly string[]
  /** Directly in this folder. */
  folderId?: string
  /** In one of these states. */
  statuses?: readonly VideoStatus[]
}

/** More UTF-16 units than any text has that is kept: nothing contains it. */
const LONGER_THAN_ANY = 2000

/** True when finding these may take milliseconds: such a read belongs into a thread of its own. */
export function isSlowSearch(filter: VideoFilter): boolean {
  const shelves = (filter.tags ?? []).length + (filter.folderId === undefined ? 0 : 1)
  return textsOf(filter).length > 0 || shelves > 1 || filter.statuses !== undefined
}

/**
 * What a filter finds among an account's videos: how many, and the positions of a slice of them, newest first.
 * Indexes are walked, no more; a slice behind the last costs nothing.
 */
export async function findPositions(db: Db, accountId: string, filter: VideoFilter, slice: Slice): Promise<Counted> {
  const shelves = await smallestFirst(db, accountId, filter)
  if (shelves === undefined || isBeyondAny(filter)) return { count: 0, positions: [] }
  const walk = indexOf(db, accountId, filter, shelves)
  if (textsOf(filter).length > 0 || shelves.length > 1 || filter.statuses !== undefined) return countAndSlice(db, walk, slice)
  const count = shelves[0]?.videoCount ?? (await countVideos(db, accountId))
  return { count, positions: slice.offset < count ? await sliceInOrder(db, walk, slice) : [] }
}

/** Entries of an index in list order, and how many there are: the account's videos with a tag, or in a folder. */
type Shelf = IndexScan & { videoCount: number; holds(position: RawBuilder<number>): RawBuilder<unknown> }

/** The smallest index that knows the answer, walked in list order; the rest is asked of each of its entries. */
function indexOf(db: Db, accountId: string, filter: VideoFilter, shelves: readonly Shelf[]): IndexScan {
  const { position, from } = indexOfAny(db, accountId, filter, shelves)
  const { statuses } = filter
  if (statuses === undefined) return { position, from }
  const isIn = sql`exists (select 1 from video as stated where stated.position = ${position} and stated.status in (${sql.join(statuses)}))`
  return { position, from: sql`${from} and ${isIn}` }
}

/** The same for videos in any state. */
function indexOfAny(db: Db, accountId: string, filter: VideoFilter, shelves: readonly Shelf[]): IndexScan {
  const texts = textsOf(filter)
  if (texts.length > 0) {
    const { position, from } = textMatchScan(db, accountId, texts)
    return { position, from: sql`${from} ${alsoOn(shelves, position)}` }
  }
  const [smallest, ...others] = shelves
  if (smallest) {
    const { position, from } = smallest
    return { position, from: sql`${from} ${alsoOn(others, position)}` }
  }
  return {
    position: sql`video.position`,
    from: sql`from video where video.account_id = ${accountId} and video.deleted_at_s is null`,
  }
}

function alsoOn(shelves: readonly Shelf[], position: RawBuilder<number>): RawBuilder<unknown> {
  const conditions = shelves.map((shelf) => sql`and ${shelf.holds(position)}`)
  return sql.join(conditions, sql` `)
}

function tagShelf(accountId: string, { name, videoCount }: { name: string; videoCount: number }): Shelf {
  return {
    videoCount,
    position: sql`video_tag.position`,
    from: sql`from video_tag where video_tag.account_id = ${accountId} and video_tag.name = ${name}`,
    holds: (position) => sql`exists (select 1 from video_tag as other
      where other.account_id = ${accountId} and other.name = ${name} and other.position = ${position})`,
  }
}

function folderShelf(accountId: string, { id, videoCount }: { id: string; videoCount: number }): Shelf {
  return {
    videoCount,
    position: sql`video.position`,
    from: sql`from video where video.account_id = ${accountId} and video.folder_id = ${id} and video.deleted_at_s is null`,
    holds: (position) =>
      sql`exists (select 1 from video as other where other.position = ${position} and other.folder_id = ${id})`,
  }
}

function textsOf({ text, id, title, fileName }: VideoFilter): TextTerm[] {
  const sought: (Pick<TextTerm, 'columns'> & { part: string | undefined })[] = [
    { columns: ['id', 'title'], part: text },
    { columns: ['id'], part: id },
    { columns: ['title'], part: title },
    { columns: ['file_name'], part: fileName },
  ]
  return sought.flatMap(({ columns, part }) => (part === undefined ? [] : [{ columns, part: foldCase(part) }]))
}

function isBeyondAny(filter: VideoFilter): boolean {
  return textsOf(filter).some(({ part }) => part.length > LONGER_THAN_ANY || part.includes('\0'))
}

async function countVideos(db: Db, accountId: string): Promise<number> {
  const account = await db.selectFrom('account').select('videoCount').where('id', '=', accountId).executeTakeFirst()
  return account?.videoCount ?? 0
}

/** Undefined: no video carries one of the tags, or there is no such folder. */
async function smallestFirst(db: Db, accountId: string, { tags = [], folderId }: VideoFilter): Promise<Shelf[] | undefined> {
  const counted = tags.length === 0 ? [] : await countedTags(db, accountId, tags)
  const folder = folderId === undefined ? undefined : await findFolder(db, accountId, folderId)
  if (counted.length < tags.length || (folderId !== undefined && !folder)) return undefined
  const shelves = [...counted.map((tag) => tagShelf(accountId, tag)), ...(folder ? [folderShelf(accountId, folder)] : [])]
  return shelves.toSorted((a, b) => a.videoCount - b.videoCount)
}

async function countedTags(db: Db, accountId: string, names: readonly string[]) {
  return db
    .selectFrom('tag')
    .select(['name', 'videoCount'])
    .where('accountId', '=', accountId)
    .where('name', 'in', names)
    .execute()
}
