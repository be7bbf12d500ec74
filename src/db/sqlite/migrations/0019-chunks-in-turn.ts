import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// The place of a chunk's video, so that the chunk that comes next is the first of an index, however many wait.
const STATEMENTS = [
  `alter table chunk add column position integer not null default 0`,
  `update chunk set position = (select position from video where video.id = chunk.video_id)`,
  `drop index chunk_waiting`,
  `create index chunk_waiting on chunk (priority, position) where state = 'waiting'`,
]

export const chunksInTurn: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
