import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// The root is a row like any other, made with its account: nothing that counts, lists or moves need know of it.

const STATEMENTS = [
  `create table folder (
    account_id text not null references account (id),
    id text not null,
    parent_id text,
    name text not null,
    folded_name text not null,
    created_at_s integer not null,
    video_count integer not null default 0,
    folder_count integer not null default 0,
    primary key (account_id, id)
  ) without rowid`,
  `create index folder_in_order on folder (account_id, parent_id, folded_name, id)`,
  `create index folder_by_name on folder (account_id, folded_name, id)`,
  `create index video_in_folder on video (account_id, folder_id, position desc) where deleted_at_s is null`,
  `alter table account add column folder_count integer not null default 0`,
  `insert into folder (account_id, id, parent_id, name, folded_name, created_at_s, video_count)
    select id, 'root', null, 'root', 'root', created_at_s,
      (select count(*) from video where account_id = account.id and deleted_at_s is null)
    from account`,

  `create trigger account_added after insert on account begin
    insert into folder (account_id, id, parent_id, name, folded_name, created_at_s)
      values (new.id, 'root', null, 'root', 'root', new.created_at_s);
  end`,
  `create trigger folder_added after insert on folder when new.parent_id is not null begin
    update folder set folder_count = folder_count + 1 where account_id = new.account_id and id = new.parent_id;
    update account set folder_count = folder_count + 1 where id = new.account_id;
  end`,
  `create trigger folder_moved after update of parent_id on folder when new.parent_id <> old.parent_id begin
    update folder set folder_count = folder_count - 1 where account_id = old.account_id and id = old.parent_id;
    update folder set folder_count = folder_count + 1 where account_id = new.account_id and id = new.parent_id;
  end`,
  // A list of its videos is refused from now on: what was answered before must not be answered again.
  `create trigger folder_removed after delete on folder begin
    update folder set folder_count = folder_count - 1 where account_id = old.account_id and id = old.parent_id;
    update account set folder_count = folder_count - 1, change_number = change_number + 1 where id = old.account_id;
  end`,

  `create trigger video_put_into_folder after insert on video begin
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
  end`,
  `create trigger video_moved after update of folder_id on video when new.folder_id <> old.folder_id and new.deleted_at_s is null begin
    update folder set video_count = video_count - 1 where account_id = old.account_id and id = old.folder_id;
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
  end`,
  `create trigger video_taken_from_folder after update of deleted_at_s on video
    when new.deleted_at_s is not null and old.deleted_at_s is null begin
    update folder set video_count = video_count - 1 where account_id = old.account_id and id = old.folder_id;
  end`,
]

export const folders: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
