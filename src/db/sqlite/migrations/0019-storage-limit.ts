import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// How much an account may store. The sum is asked for at every upload: SQLite reads it from an index alone only if the index has every
// column of the query, that of the index's own condition, too.

const STATEMENTS = [
  'alter table account add column storage_limit_bytes integer',
  'drop index video_by_size',
  'create index video_by_size on video (account_id, total_size_bytes, position, deleted_at_s) where deleted_at_s is null',
]

export const storageLimit: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
