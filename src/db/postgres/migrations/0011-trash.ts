import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Deleted videos that can be restored. To every other table they are deleted videos, whose files and keys still exist.

const STATEMENTS = [
  `create table trashed_video (
    video_id text collate "C" primary key,
    account_id text collate "C" not null,
    trashed_at_s bigint not null,
    ends_at_s bigint not null,
    tags text not null
  )`,
  'create index trashed_video_in_order on trashed_video (account_id, trashed_at_s desc, video_id)',
  'create index trashed_video_end on trashed_video (ends_at_s)',
  'alter table account add column deletes_to_trash bigint not null default 0',
  `create function video_restored() returns trigger language plpgsql as $$ begin
    update account set change_number = change_number + 1 where id = new.account_id;
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
    insert into video_text (rowid, account_id, id, title, file_name)
      values (new.position, new.account_id, new.id, fold(new.title), fold(new.file_name));
    return null;
  end $$`,
  `create trigger video_restored after update of deleted_at_s on video for each row
    when (new.deleted_at_s is null and old.deleted_at_s is not null) execute function video_restored()`,
]

export const trash: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
