import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Who added a video, so that a person with the role uploader may edit it.

const STATEMENTS = ['alter table video add column added_by text']

export const people: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
