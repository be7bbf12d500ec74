import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Counters, the search index and the change number are kept by triggers: no statement that changes a video can forget them.

const STATEMENTS = [
  `alter table account add column change_number integer not null default 0`,

  `create table tag (
    account_id text not null,
    name text not null,
    video_count integer not null,
    primary key (account_id, name)
  ) without rowid`,
  // In list order, so that a page of a tag's videos is a walk along the key. The ordinal keeps the order in which a video got its tags.
  `create table video_tag (
    account_id text not null,
    name text not null,
    position integer not null,
    ordinal integer not null,
    primary key (account_id, name, position)
  ) without rowid`,
  `create index video_tag_of_video on video_tag (position, ordinal)`,
  `create trigger video_tag_added after insert on video_tag begin
    insert into tag (account_id, name, video_count) values (new.account_id, new.name, 1)
      on conflict (account_id, name) do update set video_count = video_count + 1;
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  `create trigger video_tag_removed after delete on video_tag begin
    update tag set video_count = video_count - 1 where account_id = old.account_id and name = old.name;
    delete from tag where account_id = old.account_id and name = old.name and video_count = 0;
    update account set change_number = change_number + 1 where id = old.account_id;
  end`,

  // Folded by us (db/fold-case.ts), so that short texts, which no trigram finds, are compared in the same way.
  `create virtual table video_text using fts5 (id, title, file_name, tokenize = 'trigram case_sensitive 1')`,
  `insert into video_text (video_text, rank) values ('secure-delete', 1)`,
  `insert into video_text (rowid, id, title, file_name)
    select position, id, fold(title), fold(file_name) from video where deleted_at_s is null`,
  `create trigger video_added after insert on video begin
    insert into video_text (rowid, id, title, file_name) values (new.position, new.id, fold(new.title), fold(new.file_name));
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  `create trigger video_changed after update on video when new.deleted_at_s is null begin
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  `create trigger video_renamed after update of title, file_name on video when new.deleted_at_s is null begin
    update video_text set title = fold(new.title), file_name = fold(new.file_name) where rowid = new.position;
  end`,
  `create trigger video_deleted after update of deleted_at_s on video when new.deleted_at_s is not null begin
    delete from video_text where rowid = new.position;
    delete from video_tag where position = new.position;
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  `create trigger poster_added after insert on poster begin
    update account set change_number = change_number + 1
      where id = (select account_id from video where id = new.video_id);
  end`,
  `create trigger poster_removed after delete on poster begin
    update account set change_number = change_number + 1
      where id = (select account_id from video where id = old.video_id);
  end`,
]

export const tagsAndSearch: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
