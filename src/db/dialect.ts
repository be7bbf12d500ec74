import { PostgresAdapter, type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

// The few places where a statement of a feature is written in two ways.

export function isPostgres(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter
}

/** A table of the entries of a list, in columns `value` and `place`, which counts from 1. */
export function entriesOf(db: Db, list: readonly number[] | readonly string[]): RawBuilder<unknown> {
  if (!isPostgres(db)) return sql`(select value, key + 1 as place from json_each(${JSON.stringify(list)}))`
  const type = sql.raw(typeof list[0] === 'number' ? 'bigint' : 'text')
  return sql`(select value, place from unnest(${list}::${type}[]) with ordinality as entry (value, place))`
}

/** A part of a text that is sought in some columns of `video_text`; both are folded. */
export type SoughtText = { columns: readonly ('id' | 'title' | 'file_name')[]; part: string }

/**
 * The videos in whose texts each part is found, as `video_text` joined with `video`; the index of texts is asked first, whatever
 * the planner thinks. Never a word of SQL or of a pattern language.
 */
export function videosWithTexts(db: Db, texts: readonly SoughtText[]): RawBuilder<unknown> {
  if (isPostgres(db)) {
    const found = sql`with found as materialized (select rowid from video_text where ${sql.join(texts.map(isLike), sql` and `)})`
    return sql`from (${found} select rowid from found) as video_text join video on video.position = video_text.rowid where true`
  }
  // A cross join is never turned round.
  return sql`from video_text cross join video on video.position = video_text.rowid where ${matchTexts(texts)}`
}

function isLike({ columns, part }: SoughtText): RawBuilder<unknown> {
  const pattern = `%${part.replaceAll(/[\\%_]/g, '\\$&')}%`
  const found = columns.map((column) => sql`${sql.ref(`video_text.${column}`)} like ${pattern}`)
  return sql`(${sql.join(found, sql` or `)})`
}

/** Shorter texts hold no trigram: they are looked for in every text of the index. */
const TRIGRAM = 3

function matchTexts(texts: readonly SoughtText[]): RawBuilder<unknown> {
  const [long, short] = [texts.filter(hasTrigram), texts.filter((text) => !hasTrigram(text))]
  const phrases = long.map(({ columns, part }) => `{${columns.join(' ')}} : "${part.replaceAll('"', '""')}"`)
  const compared = short.map(({ columns, part }) => {
    const found = columns.map((column) => sql`instr(${sql.ref(`video_text.${column}`)}, ${part}) > 0`)
    return sql`(${sql.join(found, sql` or `)})`
  })
  const matched = phrases.length > 0 ? [sql`video_text match ${phrases.join(' AND ')}`] : []
  return sql.join([...matched, ...compared], sql` and `)
}

function hasTrigram({ part }: SoughtText): boolean {
  return [...part].length >= TRIGRAM
}
