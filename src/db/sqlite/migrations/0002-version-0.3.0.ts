import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { STATEMENTS } from '../../migrations/0002-version-0.3.0.ts'

const OWN_STATEMENTS = [
  `create trigger source_added after insert on source begin
    insert into file (video_id, type, created_at_s, source_number)
      select new.video_id, 'original', case new.number when 1 then upload_time_s else new.received_at_s end, new.number
      from video where id = new.video_id;
  end`,
  `create trigger source_arrived after insert on source begin
    update video set has_source = 1 where id = new.video_id and has_source = 0;
  end`,
  `create trigger source_removed after delete on source begin
    delete from file where video_id = old.video_id and type = 'original' and source_number = old.number;
  end`,
  // What is searched for may be missing: a move from PostgreSQL brings no texts of deleted videos.
  `create trigger video_restored after update of deleted_at_s on video when new.deleted_at_s is null and old.deleted_at_s is not null begin
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
    delete from video_text where rowid = new.position;
    insert into video_text (rowid, id, title, file_name) values (new.position, new.id, fold(new.title), fold(new.file_name));
  end`,
  `create trigger video_metadata_added after insert on video when new.metadata is not null begin
    insert into video_metadata (account_id, name, value, position)
      select new.account_id, key, value, new.position from json_each(new.metadata) where length(value) <= 255;
  end`,
  `create trigger video_metadata_changed after update of metadata, deleted_at_s on video
    when old.metadata is not null or new.metadata is not null begin
    delete from video_metadata where position = new.position;
    insert into video_metadata (account_id, name, value, position)
      select new.account_id, key, value, new.position from json_each(new.metadata)
      where length(value) <= 255 and new.deleted_at_s is null;
  end`,
  'create index video_by_title on video (account_id, title collate nocase, position) where deleted_at_s is null',
  // The sum of an account is asked for at every upload: SQLite reads it from an index alone only if the index has every column of the
  // query, that of the index's own condition, too.
  'create index video_by_size on video (account_id, total_size_bytes, position, deleted_at_s) where deleted_at_s is null',
]

export const version030: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of [...STATEMENTS, ...OWN_STATEMENTS]) await sql.raw(statement).execute(db)
  },
}
