import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  // One MP4 for each video, however many ask for it at once.
  `create unique index mp4_of_video on file (video_id) where type = 'mp4'`,
  `create index mp4_unmade on file (id) where type = 'mp4' and blob is null`,
]

export const mp4: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
