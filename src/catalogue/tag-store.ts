import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { jsonEntries } from '../db/dialect.ts'
import { ACCOUNT_ID_UNINDEXED } from './video-store.ts'

/** Names of all tags of the account's videos, in code point order. */
export async function listTagRows(db: Db, accountId: string): Promise<string[]> {
  const rows = await db.selectFrom('tag').select('name').where('accountId', '=', accountId).orderBy('name').execute()
  return rows.map((row) => row.name)
}

/** The tags of each of the videos, in the order in which they were added. */
export async function listTagsOfVideos(db: Db, positions: readonly number[]): Promise<Map<number, string[]>> {
  if (positions.length === 0) return new Map()
  const rows = await db
    .selectFrom('videoTag')
    .select(['position', 'name'])
    .where('position', 'in', positions)
    .orderBy('position')
    .orderBy('ordinal')
    .execute()
  const byPosition = Map.groupBy(rows, (row) => row.position)
  return new Map([...byPosition].map(([position, tags]) => [position, tags.map((tag) => tag.name)]))
}

/** Adds the pairs that do not exist yet, in one statement. */
export async function insertTags(tx: Db, accountId: string, positions: readonly number[], names: readonly string[]) {
  if (positions.length === 0) return
  await sql`
    insert into video_tag (account_id, name, position, ordinal)
    select ${accountId}, tag.value, video.value,
      tag.place + coalesce((select max(ordinal) from video_tag where position = video.value), 0)
    from ${jsonEntries(tx, positions)} as video cross join ${jsonEntries(tx, names)} as tag
    where true
    on conflict do nothing`.execute(tx)
}

/** The highest number of tags that any of the videos has. */
export async function maxTagCount(tx: Db, positions: readonly number[]): Promise<number> {
  const row = await tx
    .selectFrom('videoTag')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('position', 'in', positions)
    .groupBy('position')
    .orderBy('count', 'desc')
    .limit(1)
    .executeTakeFirst()
  return Number(row?.count ?? 0)
}

/** Removes these pairs; without names, all tags of the videos. */
export async function removeVideoTags(tx: Db, accountId: string, positions: readonly number[], names?: readonly string[]) {
  await tx
    .deleteFrom('videoTag')
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .where('position', 'in', positions)
    .$if(names !== undefined, (pairs) => pairs.where('name', 'in', names ?? []))
    .execute()
}
