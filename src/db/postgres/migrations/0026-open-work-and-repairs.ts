import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Whether a video is complete is asked before each piece of work, however many chunks of it are done. And how often a segment was
// repaired whose file had other bytes, which is part of its address. And which videos an alert is about, with commas between their ids.

const STATEMENTS = [
  `create index chunk_open on chunk (video_id, generation) where state != 'done'`,
  'alter table segment add column repairs bigint not null default 0',
  'create index segment_repaired on segment (video_id, generation) where repairs > 0',
  `alter table alert add column video_ids text not null default ''`,
]

export const openWorkAndRepairs: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
