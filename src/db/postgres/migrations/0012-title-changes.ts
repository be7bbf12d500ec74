import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Which videos a search may find or miss since an account's change number was lower.

const STATEMENTS = [
  `create table title_change (
    account_id text collate "C" not null,
    change_number bigint not null,
    position bigint not null,
    primary key (account_id, change_number, position)
  )`,
  // Triggers of the statement raise the change number afterwards: the row has at least the number that the account has then.
  `create function record_title_change() returns trigger language plpgsql as $$ begin
    insert into title_change (account_id, change_number, position)
      select id, change_number + 1, new.position from account where id = new.account_id on conflict do nothing;
    return null;
  end $$`,
  `create trigger title_added after insert on video for each row execute function record_title_change()`,
  `create trigger title_changed after update of title on video for each row
    when (new.title <> old.title) execute function record_title_change()`,
  `create trigger title_removed_or_restored after update of deleted_at_s on video for each row
    when ((new.deleted_at_s is null) <> (old.deleted_at_s is null)) execute function record_title_change()`,
]

export const titleChanges: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
