import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  'alter table otp add column rules text',
  'alter table playback_session add column rules text',
  'alter table redeem_attempt add column rule text',
]

export const otpRules: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
