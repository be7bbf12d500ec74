import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Refused attempts to redeem, newest first; and what was done to one thing.

const STATEMENTS = [
  `create index redeem_attempt_refused on redeem_attempt (id) where outcome not in ('opened', 'resumed')`,
  'create index audit_event_of_subject on audit_event (account_id, subject, id)',
]

export const refusals: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
