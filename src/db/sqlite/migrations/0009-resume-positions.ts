import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// A viewer resumes behind the last second that was watched, which `viewing` has. Positions from before seconds were counted are kept.

const STATEMENTS = [
  `insert or ignore into viewing (account_id, user_id, video_id, intervals, watched_s, position_s, began_at_s, last_at_s)
    select account_id, user_id, video_id, '', 0, position_s, saved_at_s, saved_at_s from watch_position`,
  'drop table watch_position',
]

export const resumePositions: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
