import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Which videos a search may find or miss since an account's change number was lower.

/**
 * Other triggers of the same statement raise the change number, before or after this one: the row has at least the number that the
 * account has then.
 */
const RECORD = `insert or ignore into title_change (account_id, change_number, position)
  select id, change_number + 1, new.position from account where id = new.account_id`

const STATEMENTS = [
  `create table title_change (
    account_id text not null,
    change_number integer not null,
    position integer not null,
    primary key (account_id, change_number, position)
  ) without rowid`,
  `create trigger title_added after insert on video begin ${RECORD}; end`,
  `create trigger title_changed after update of title on video when new.title <> old.title begin ${RECORD}; end`,
  `create trigger title_removed_or_restored after update of deleted_at_s on video
    when (new.deleted_at_s is null) <> (old.deleted_at_s is null) begin ${RECORD}; end`,
]

export const titleChanges: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
