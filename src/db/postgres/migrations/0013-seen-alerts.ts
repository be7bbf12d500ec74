import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Up to which of its alerts an account has seen them.

export const seenAlerts: Migration = {
  async up(db: Kysely<unknown>) {
    await sql.raw('alter table account add column alerts_seen_id bigint not null default 0').execute(db)
  },
}
