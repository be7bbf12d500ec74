import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Orders of a list of videos other than newest first.

const STATEMENTS = [
  `create index video_by_title on video (account_id, (lower(title collate "C") collate "C"), position)
    where deleted_at_s is null`,
  'create index video_by_upload_time on video (account_id, upload_time_s, position) where deleted_at_s is null',
  'create index video_by_length on video (account_id, duration_s, position) where deleted_at_s is null',
  'create index video_by_size on video (account_id, total_size_bytes, position) where deleted_at_s is null',
]

export const videoOrders: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
