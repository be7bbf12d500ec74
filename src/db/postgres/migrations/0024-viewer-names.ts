import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// What owners call their viewers.

const STATEMENTS = [
  `create table viewer (
    account_id text collate "C" not null,
    user_id text collate "C" not null,
    name text,
    email text,
    named_at_s bigint not null,
    primary key (account_id, user_id)
  )`,
  'create index viewer_age on viewer (named_at_s)',
  'alter table otp add column viewer text',
]

export const viewerNames: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
