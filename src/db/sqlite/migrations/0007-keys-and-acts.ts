import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `alter table api_key add column expires_at_s integer`,
  `alter table api_key add column last_used_at_s integer`,
  `create table act (
    id integer primary key,
    at_s integer not null,
    account_id text,
    actor text not null,
    kind text not null,
    subject text not null,
    details text
  )`,
  `create index act_of_account on act (account_id, id)`,
  `create index act_time on act (at_s)`,
]

export const keysAndActs: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
