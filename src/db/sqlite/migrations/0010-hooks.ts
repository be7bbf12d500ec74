import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `create table hook (
    id text primary key,
    account_id text not null,
    url text not null,
    event text,
    wrapped_secret blob not null,
    older_wrapped_secret blob,
    older_secret_ends_at_s integer,
    created_at_s integer not null,
    last_sequence integer not null default 0,
    disabled_reason text,
    failures_in_row integer not null default 0,
    failing_since_s integer,
    rests_until_s integer not null default 0
  ) without rowid`,
  `create index hook_of_account on hook (account_id)`,
  `create table delivery (
    hook_id text not null,
    sequence integer not null,
    event text not null,
    body text not null,
    time_ms integer not null,
    state text not null,
    attempts integer not null default 0,
    due_at_s integer not null default 0,
    tried_at_s integer,
    status integer,
    problem text,
    finished_at_s integer,
    primary key (hook_id, sequence)
  ) without rowid`,
  // What is still to be sent is found however much lies finished beside it.
  `create index delivery_open on delivery (hook_id, due_at_s, sequence) where finished_at_s is null`,
  `create index delivery_finished on delivery (finished_at_s) where finished_at_s is not null`,
  `alter table otp add column reused_at_s integer`,
]

export const hooks: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
