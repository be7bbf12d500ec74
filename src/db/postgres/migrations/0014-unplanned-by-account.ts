import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Sources that wait to be examined, by account: accounts take turns.

const STATEMENTS = [
  'drop index video_unplanned',
  `create index video_unplanned on video (account_id, position)
    where has_source = 1 and generation = 0 and status in ('Queued', 'Processing') and deleted_at_s is null`,
]

export const unplannedByAccount: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
