import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Sessions of before have keys of another kind and no server key: their viewers reload the page they came from.

const STATEMENTS = [
  `create table server_key (
    id text primary key,
    public_key blob not null,
    wrapped_private_key blob not null,
    created_at_s integer not null
  ) without rowid`,
  `alter table playback_session add column server_key_id text not null default ''`,
]

export const serverKeys: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
