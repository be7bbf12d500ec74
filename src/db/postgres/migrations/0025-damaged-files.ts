import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Which originals, posters, captions and MP4s were found missing or changed.

const STATEMENTS = [
  'alter table file add column damaged bigint not null default 0',
  'create index file_damaged on file (id) where damaged = 1',
]

export const damagedFiles: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
