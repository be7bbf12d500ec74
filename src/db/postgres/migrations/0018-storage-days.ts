import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// What an account's videos took on the disk, as last measured on each day. By day first: queries name days, and pruning takes the oldest.

const STATEMENTS = [
  `create table storage_day (
    day text not null,
    account_id text not null,
    size_bytes bigint not null,
    primary key (day, account_id)
  )`,
]

export const storageDays: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
