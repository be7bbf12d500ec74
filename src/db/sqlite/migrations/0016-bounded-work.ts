import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// What finds the next piece of work however much waits beside it, and what a piece leaves off at.

const STATEMENTS = [
  // A replay takes what failed from this number on, some at a time; null: there is none under way.
  'alter table hook add column replay_from integer',
  'create index hook_turn on hook (rests_until_s, id) where disabled_reason is null',
  `create index delivery_failed on delivery (hook_id, sequence) where state = 'failed'`,

  // Of its video, so that an account's imports are walked in their order.
  'alter table import add column position integer not null default 0',
  'update import set position = coalesce((select position from video where id = video_id), 0)',
  'create index import_turn on import (account_id, next_try_at_s, position, host)',
  'drop index import_of_account',

  'alter table video add column has_source integer not null default 0',
  'update video set has_source = 1 where id in (select video_id from source)',
  `create trigger source_arrived after insert on source begin
    update video set has_source = 1 where id = new.video_id and has_source = 0;
  end`,
  `create index video_unplanned on video (position)
    where has_source = 1 and generation = 0 and status in ('Queued', 'Processing') and deleted_at_s is null`,
  'drop index video_unfinished',

  // What is searched for goes with the row, not with the tombstone: overwriting the trigrams of one title takes milliseconds.
  'drop trigger video_deleted',
  `create trigger video_deleted after update of deleted_at_s on video when new.deleted_at_s is not null begin
    delete from video_tag where position = new.position;
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  `create trigger video_removed after delete on video begin
    delete from video_text where rowid = old.position;
  end`,

  'create index playback_session_of_account on playback_session (account_id) where ended_at_s is null',
]

export const boundedWork: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
