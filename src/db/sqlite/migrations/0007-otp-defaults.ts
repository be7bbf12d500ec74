import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Options that the OTPs of an account or a video have unless their own say otherwise.

const STATEMENTS = [
  'alter table account add column otp_defaults text',
  'alter table account add column otp_defaults_removable integer not null default 0',
  'alter table video add column otp_defaults text',
]

export const otpDefaults: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
