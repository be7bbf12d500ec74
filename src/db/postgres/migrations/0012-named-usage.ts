import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// The counters of days that name a viewer, from which the name is removed after a while.

export const namedUsage: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw(`create index video_usage_named on video_usage (day) where user_id <> ''`).execute(db)
  },
}
