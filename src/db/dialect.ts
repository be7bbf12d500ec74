import { PostgresAdapter, type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

// Statements of features that the two databases need written differently.

export function isPostgres(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter
}

/** A list as a table with the columns `value` and `place`, which counts from 1. */
export function jsonEntries(db: Db, list: readonly number[] | readonly string[]): RawBuilder<unknown> {
  if (!isPostgres(db)) return sql`(select value, key + 1 as place from json_each(${JSON.stringify(list)}))`
  const type = sql.raw(typeof list[0] === 'number' ? 'bigint' : 'text')
  return sql`(select value, place from unnest(${list}::${type}[]) with ordinality as entry (value, place))`
}

/** Records as a table with a column for each of their properties, which are named and typed by `columns`. */
export function recordsTable(
  db: Db,
  alias: string,
  columns: Readonly<Record<string, 'text' | 'bigint' | 'bytea'>>,
  records: readonly Readonly<Record<string, string | number | Buffer>>[],
): RawBuilder<unknown> {
  const names = Object.keys(columns)
  if (isPostgres(db)) {
    const lists = names.map((name) => sql`${records.map((record) => record[name])}::${sql.raw(columns[name] ?? '')}[]`)
    return sql`unnest(${sql.join(lists)}) as ${sql.ref(alias)} (${sql.join(names.map((name) => sql.ref(name)))})`
  }
  // One value for all: SQLite allows 32 766 in a statement, and JSON is read faster than they are bound.
  const toJson = (value: string | number | Buffer | undefined) => (Buffer.isBuffer(value) ? value.toString('hex') : value)
  const list = JSON.stringify(records.map((record) => names.map((name) => toJson(record[name]))))
  const entries = names.map((name, place) => {
    const value = sql`value ->> ${sql.lit(place)}`
    return sql`${columns[name] === 'bytea' ? sql`unhex(${value})` : value} as ${sql.ref(name)}`
  })
  return sql`(select ${sql.join(entries)} from json_each(${list})) as ${sql.ref(alias)}`
}

/** A search for a part of a text in some columns of `video_text`; both are folded (fold-case.ts). */
export type TextTerm = { columns: readonly ('id' | 'title' | 'file_name')[]; part: string }

/** Entries of an index in list order. `isCompared`: it compares every text, since none of those searched for has a trigram. */
export type IndexScan = { position: RawBuilder<number>; from: RawBuilder<unknown>; isCompared?: boolean }

/** Part of a scan, newest first. `below`: only videos older than that position. `countUpTo`: where counting may end. */
export type Slice = { limit: number; offset: number; below?: number; countUpTo?: number }

export type Counted = { count: number; positions: number[] }

/**
 * The videos of an account whose texts contain each part. The statement makes the planner start from the index of texts.
 * Parts are matched literally, never as SQL or as a pattern.
 */
export function textMatchScan(db: Db, accountId: string, texts: readonly TextTerm[]): IndexScan {
  const position = sql<number>`video_text.rowid`
  if (isPostgres(db))
    return {
      position,
      from: sql`from video_text where account_id = ${accountId} and ${sql.join(texts.map(toLikeCondition), sql` and `)}`,
      isCompared: !texts.some(hasTrigram),
    }
  return { position, from: sql`from video_text where ${matchTexts(texts)} and ${isVideoOf(accountId)}` }
}

/**
 * Texts of all accounts are in one index, and those of deleted videos for a while. Where no other account has videos, as in most
 * installations, a list of the deleted ones saves a look at each video.
 */
function isVideoOf(accountId: string): RawBuilder<boolean> {
  return sql`case
    when exists (select 1 from account where id <> ${accountId} and video_count > 0) then exists (
      select 1 from video where position = video_text.rowid and account_id = ${accountId} and deleted_at_s is null)
    else video_text.rowid not in (select position from video where deleted_at_s is not null) end`
}

/** More positions than this are not read to count them. */
const MAX_COUNTED_POSITIONS = 10_000

/**
 * The length of a scan, or `countUpTo` if it is longer, and a slice of it. With `countUpTo` one scan yields both, and ends early.
 * PostgreSQL finds trigrams in no order: all matches are read and sorted anyway, and a limit could mislead its planner into comparing
 * every text.
 */
export async function countAndSlice(db: Db, scan: IndexScan, slice: Slice): Promise<Counted> {
  const { limit, offset, below, countUpTo = Number.POSITIVE_INFINITY } = slice
  const end = Math.max(offset + limit, countUpTo)
  if (below === undefined && end <= MAX_COUNTED_POSITIONS && (scan.isCompared || !isPostgres(db))) {
    const positions = await sliceInOrder(db, scan, { limit: end, offset: 0 })
    return { count: Math.min(positions.length, countUpTo), positions: positions.slice(offset, offset + limit) }
  }
  const { count, positions } = await (isPostgres(db) ? countWhileSlicing : countThenSlice)(db, scan, slice)
  return { count: Math.min(count, countUpTo), positions }
}

/**
 * Scanning is most of the work, and SQLite counts faster than it materializes. A slice that holds the whole scan is its count, too, which
 * spares what is rarely found a second look at everything.
 */
async function countThenSlice(db: Db, scan: IndexScan, slice: Slice): Promise<Counted> {
  const first = slice.offset === 0 && slice.below === undefined ? await sliceInOrder(db, scan, slice) : undefined
  if (first && first.length < slice.limit) return { count: first.length, positions: first }
  const { rows } = await sql<{ count: number }>`select count(*) as count ${scan.from}`.execute(db)
  const count = rows[0]?.count ?? 0
  return { count, positions: first ?? (slice.offset < count ? await sliceInOrder(db, scan, slice) : []) }
}

export async function sliceInOrder(db: Db, { position, from }: IndexScan, { limit, offset, below }: Slice): Promise<number[]> {
  const older = below === undefined ? sql`` : sql`and ${position} < ${below}`
  const { rows } = await sql<{ position: number }>`
    select ${position} as position ${from} ${older} order by ${position} desc limit ${limit} offset ${offset}`.execute(db)
  return rows.map((row) => row.position)
}

async function countWhileSlicing(db: Db, { position, from }: IndexScan, { limit, offset, below }: Slice): Promise<Counted> {
  const skipped = Math.min(offset, Number.MAX_SAFE_INTEGER) // a page number may have any number of digits, an offset has 64 bits
  const older = below === undefined ? sql`` : sql`where position < ${below}`
  const { rows } = await sql<{ count: number; position: number | null }>`
    with found as materialized (select ${position} as position ${from})
    select total.count, slice.position from (select count(*) as count from found) as total
    left join (select position from found ${older} order by position desc limit ${limit} offset ${skipped}) as slice on true
    order by slice.position desc`.execute(db)
  return { count: rows[0]?.count ?? 0, positions: rows.flatMap((row) => row.position ?? []) }
}

function toLikeCondition({ columns, part }: TextTerm): RawBuilder<unknown> {
  const pattern = `%${part.replaceAll(/[\\%_]/g, '\\$&')}%`
  const found = columns.map((column) => sql`${sql.ref(`video_text.${column}`)} like ${pattern}`)
  return sql`(${sql.join(found, sql` or `)})`
}

/** Shorter texts contain no trigram: they are compared with every text of the index. */
const TRIGRAM_CHARS = 3

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
  return [...part].length >= TRIGRAM_CHARS
}
