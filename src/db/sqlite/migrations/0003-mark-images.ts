import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const markImages: Migration = {
  async up(db: Kysely<unknown>) {
    await sql
      .raw(`create table mark_image (
        account_id text not null references account (id),
        url_hash blob not null,
        sealed blob,
        problem text,
        tried_at_s integer not null,
        primary key (account_id, url_hash)
      )`)
      .execute(db)
    await sql.raw('create index mark_image_age on mark_image (account_id, tried_at_s)').execute(db)
  },
}
