import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `alter table account add column stream_limit integer not null default 0`,
  `alter table account add column when_full text not null default 'refuse'`,
  'alter table otp add column stream_limit integer',
  'alter table playback_session add column stream_limit integer',
  // Numbered places: more streams than places cannot be written down, and a session has at most one of them.
  `create table stream_slot (
    account_id text not null,
    user_id text not null,
    n integer not null,
    session_id text not null unique,
    taken_at_s integer not null,
    ends_at_s integer not null,
    primary key (account_id, user_id, n)
  ) without rowid`,
  'create index stream_slot_end on stream_slot (ends_at_s)',
]

export const streamSlots: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
