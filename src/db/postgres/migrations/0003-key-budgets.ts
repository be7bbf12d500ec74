import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// The same as SQLite's, with space in each page for the next version of a row: each is rewritten every few seconds.

const STATEMENTS = [
  `create table key_budget (
    account_id text collate "C" not null,
    viewer text collate "C" not null,
    video_id text collate "C" not null,
    generation bigint not null,
    level_s double precision not null,
    earned_at_s double precision not null,
    released bytea not null,
    used_at_s bigint not null,
    primary key (account_id, viewer, video_id, generation)
  ) with (fillfactor = 50)`,
  'create index key_budget_age on key_budget (used_at_s)',
]

export const keyBudgets: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
