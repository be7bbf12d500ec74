import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// The same as SQLite's.

const STATEMENTS = [
  `create table server_key (
    id text collate "C" primary key,
    public_key bytea not null,
    wrapped_private_key bytea not null,
    created_at_s bigint not null
  )`,
  `alter table playback_session add column server_key_id text collate "C" not null default ''`,
]

export const serverKeys: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
