import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// For lists of those who watch now.

const STATEMENTS = [
  'drop index playback_session_of_account',
  'create index playback_session_of_account on playback_session (account_id, started_at_s) where ended_at_s is null',
  `create index playback_session_of_viewer on playback_session (account_id, user_id, started_at_s)
    where ended_at_s is null and user_id is not null`,
]

export const liveSessions: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
