import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Deleted videos that can be restored. To every other table they are deleted videos, whose files and keys still exist.

const STATEMENTS = [
  `create table trashed_video (
    video_id text primary key,
    account_id text not null,
    trashed_at_s integer not null,
    ends_at_s integer not null,
    tags text not null
  ) without rowid`,
  'create index trashed_video_in_order on trashed_video (account_id, trashed_at_s desc, video_id)',
  'create index trashed_video_end on trashed_video (ends_at_s)',
  'alter table account add column deletes_to_trash integer not null default 0',
  // What is searched for may be missing: a move from PostgreSQL brings no texts of deleted videos.
  `create trigger video_restored after update of deleted_at_s on video when new.deleted_at_s is null and old.deleted_at_s is not null begin
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
    delete from video_text where rowid = new.position;
    insert into video_text (rowid, id, title, file_name) values (new.position, new.id, fold(new.title), fold(new.file_name));
  end`,
]

export const trash: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
