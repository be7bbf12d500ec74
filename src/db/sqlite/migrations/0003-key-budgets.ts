import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `create table key_budget (
    account_id text not null,
    viewer text not null,
    video_id text not null,
    generation integer not null,
    level_s real not null,
    earned_at_s real not null,
    released blob not null,
    used_at_s integer not null,
    primary key (account_id, viewer, video_id, generation)
  ) without rowid`,
  'create index key_budget_age on key_budget (used_at_s)',
]

export const keyBudgets: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
