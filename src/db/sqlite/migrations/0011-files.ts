import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  // A row for every file of a video, whatever its kind, so that one sequence numbers them all and no number comes twice.
  `create table file (
    id integer primary key autoincrement,
    video_id text not null,
    type text not null,
    created_at_s integer not null,
    enabled integer not null default 1,
    addition text,
    generation integer,
    rendition_id integer,
    blob text,
    size_bytes integer not null default 0,
    width_px integer,
    height_px integer,
    token text unique,
    language text,
    wrapped_key blob,
    iv blob,
    macs blob
  )`,
  `insert into file (video_id, type, created_at_s)
    select video_id, 'original', upload_time_s from source join video on id = video_id order by position`,
  `insert into file (video_id, type, created_at_s, generation, rendition_id)
    select rendition.video_id, 'rendition', created_at_s, generation, id from rendition
    join generation on generation.video_id = rendition.video_id and generation.number = generation`,
  `insert into file (video_id, type, created_at_s, addition, generation, blob, size_bytes, width_px, height_px, token)
    select video_id, 'poster', created_at_s, 'drawn', generation, file, size_bytes, width_px, height_px, token
    from poster join video on video.id = video_id order by poster.id`,
  `drop table poster`,
  `create index file_of_video on file (video_id)`,
  // For lists: the posters that show, and nothing else.
  `create index poster_shown on file (video_id) where type = 'poster' and enabled = 1`,

  `create trigger source_added after insert on source begin
    insert into file (video_id, type, created_at_s)
      select new.video_id, 'original', upload_time_s from video where id = new.video_id;
  end`,
  `create trigger rendition_added after insert on rendition begin
    insert into file (video_id, type, created_at_s, generation, rendition_id)
      select new.video_id, 'rendition', created_at_s, new.generation, new.id from generation
      where video_id = new.video_id and number = new.generation;
  end`,
  // A change of the video raises its account's change number: lists show posters.
  `create trigger file_added after insert on file begin
    update video set total_size_bytes = total_size_bytes + new.size_bytes where id = new.video_id and deleted_at_s is null;
  end`,
  `create trigger file_changed after update of enabled, size_bytes on file begin
    update video set total_size_bytes = total_size_bytes + new.size_bytes - old.size_bytes
      where id = new.video_id and deleted_at_s is null;
  end`,
  `create trigger file_removed after delete on file begin
    update video set total_size_bytes = total_size_bytes - old.size_bytes where id = old.video_id and deleted_at_s is null;
  end`,
]

export const files: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
