import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `create table import (
    video_id text primary key,
    account_id text not null,
    host text not null,
    wrapped_url blob not null,
    file text,
    wrapped_key blob,
    iv blob,
    etag text,
    received_bytes integer not null default 0,
    received_sha256 blob,
    furthest_bytes integer not null default 0,
    tries integer not null default 0,
    next_try_at_s integer not null,
    ends_at_s integer
  ) without rowid`,
  `create index import_of_account on import (account_id, next_try_at_s)`,
]

export const imports: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
