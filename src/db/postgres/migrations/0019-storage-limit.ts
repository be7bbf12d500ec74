import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// How much an account may store.

const STATEMENTS = ['alter table account add column storage_limit_bytes bigint']

export const storageLimit: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
