import { PostgresAdapter, type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

// The few places where a statement of a feature is written in two ways.

export function isPostgres(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter
}

/** A table of the entries of a list, in columns `value` and `place`, which counts from 1. */
export function jsonEntries(db: Db, list: readonly number[] | readonly string[]): RawBuilder<unknown> {
  if (!isPostgres(db)) return sql`(select value, key + 1 as place from json_each(${JSON.stringify(list)}))`
  const type = sql.raw(typeof list[0] === 'number' ? 'bigint' : 'text')
  return sql`(select value, place from unnest(${list}::${type}[]) with ordinality as entry (value, place))`
}

/** A part of a text that is sought in some columns of `video_text`; both are folded. */
export type TextTerm = { columns: readonly ('id' | 'title' | 'file_name')[]; part: string }

/** Entries of an index in list order. */
export type IndexScan = { position: RawBuilder<number>; from: RawBuilder<unknown> }

/** Part of a walk, newest first; `below`: of what is older than that position. */
export type Slice = { limit: number; offset: number; below?: number }

export type Counted = { count: number; positions: number[] }

/**
 * The videos of an account in whose texts each part is found; the index of texts leads, whatever the planner thinks.
 * Never a word of SQL or of a pattern language.
 */
export function textMatchScan(db: Db, accountId: string, texts: readonly TextTerm[]): IndexScan {
  const position = sql<number>`video_text.rowid`
  if (isPostgres(db))
    return { position, from: sql`from video_text where account_id = ${accountId} and ${sql.join(texts.map(isLike), sql` and `)}` }
  // A cross join is never turned round.
  const from = sql`from video_text cross join video on video.position = video_text.rowid
    where ${matchTexts(texts)} and video.account_id = ${accountId} and video.deleted_at_s is null`
  return { position, from }
}

/** How long a walk is, and a slice of it. To walk is most of the work, and SQLite counts faster than it keeps what it has found. */
export async function countAndSlice(db: Db, walk: IndexScan, slice: Slice): Promise<Counted> {
  if (isPostgres(db)) return countWhileSlicing(db, walk, slice)
  const { rows } = await sql<{ count: number }>`select count(*) as count ${walk.from}`.execute(db)
  const count = rows[0]?.count ?? 0
  return { count, positions: slice.offset < count ? await sliceInOrder(db, walk, slice) : [] }
}

export async function sliceInOrder(db: Db, { position, from }: IndexScan, { limit, offset, below }: Slice): Promise<number[]> {
  const older = below === undefined ? sql`` : sql`and ${position} < ${below}`
  const { rows } = await sql<{ position: number }>`
    select ${position} as position ${from} ${older} order by ${position} desc limit ${limit} offset ${offset}`.execute(db)
  return rows.map((row) => row.position)
}

async function countWhileSlicing(db: Db, { position, from }: IndexScan, { limit, offset, below }: Slice): Promise<Counted> {
  const skipped = Math.min(offset, Number.MAX_SAFE_INTEGER) // a page number has any number of digits, an offset 64 bits
  const older = below === undefined ? sql`` : sql`where position < ${below}`
  const { rows } = await sql<{ count: number; position: number | null }>`
    with found as materialized (select ${position} as position ${from})
    select total.count, slice.position from (select count(*) as count from found) as total
    left join (select position from found ${older} order by position desc limit ${limit} offset ${skipped}) as slice on true
    order by slice.position desc`.execute(db)
  return { count: rows[0]?.count ?? 0, positions: rows.flatMap((row) => row.position ?? []) }
}

function isLike({ columns, part }: TextTerm): RawBuilder<unknown> {
  const pattern = `%${part.replaceAll(/[\\%_]/g, '\\$&')}%`
  const found = columns.map((column) => sql`${sql.ref(`video_text.${column}`)} like ${pattern}`)
  return sql`(${sql.join(found, sql` or `)})`
}

/** Shorter texts hold no trigram: they are looked for in every text of the index. */
const TRIGRAM = 3

function matchTexts(texts: readonly TextTerm[]): RawBuilder<unknown> {
  const [long, short] = [texts.filter(hasTrigram), texts.filter((text) => !hasTrigram(text))]
  const phrases = long.map(({ columns, part }) => `{${columns.join(' ')}} : "${part.replaceAll('"', '""')}"`)
  const compared = short.map(({ columns, part }) => {
    const found = columns.map((column) => sql`instr(${sql.ref(`video_text.${column}`)}, ${part}) > 0`)
    return sql`(${sql.join(found, sql` or `)})`
  })
  const matched = phrases.length > 0 ? [sql`video_text match ${phrases.join(' AND ')}`] : []
  return sql.join([...matched, ...compared], sql` and `)
}

function hasTrigram({ part }: TextTerm): boolean {
  return [...part].length >= TRIGRAM
}
