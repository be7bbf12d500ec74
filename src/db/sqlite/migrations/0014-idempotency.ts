import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `create table kept_answer (
    account_id text not null,
    idempotency_key text not null,
    request_hash blob not null,
    wrapped_answer blob not null,
    answered_at_s integer not null,
    primary key (account_id, idempotency_key)
  ) without rowid`,
  'create index kept_answer_time on kept_answer (answered_at_s)',
]

export const idempotency: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
