import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// The account of an attempt to redeem, so that its refused ones are found without those of all others.

const STATEMENTS = [
  'alter table redeem_attempt add column account_id text',
  `update redeem_attempt set account_id = (select account_id from otp where otp.hash = redeem_attempt.otp_hash)`,
  'drop index redeem_attempt_refused',
  `create index redeem_attempt_refused on redeem_attempt (account_id, id) where outcome not in ('opened', 'resumed')`,
]

export const accountOfAttempts: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
