import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Whether a video is complete is asked before each piece of work, however many chunks of it are done.

const STATEMENTS = [
  `create index chunk_open on chunk (video_id, generation) where state != 'done'`,
  // The oldest video's chunk, which has a share of the encoder.
  `create index chunk_by_age on chunk (position, priority) where state = 'pending'`,
]

export const openWork: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
