import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// What viewers have watched, and which keys a session was given.

const STATEMENTS = [
  `create table viewing (
    id integer primary key autoincrement,
    account_id text not null,
    user_id text not null,
    video_id text not null,
    intervals text not null,
    watched_s integer not null,
    position_s real not null,
    began_at_s integer not null,
    last_at_s integer not null,
    completed_at_s integer
  )`,
  'create unique index viewing_once on viewing (account_id, user_id, video_id)',
  'create index viewing_of_viewer on viewing (account_id, user_id, id)',
  'create index viewing_of_video on viewing (video_id, id)',
  'create index viewing_age on viewing (last_at_s)',
  `create table viewing_day (
    account_id text not null,
    day integer not null,
    video_id text not null,
    user_id text not null,
    intervals text not null,
    watched_s integer not null,
    primary key (account_id, day, video_id, user_id)
  )`,
  'create index viewing_day_of_viewer on viewing_day (account_id, user_id)',
  'create index viewing_day_of_video on viewing_day (video_id)',
  'create index viewing_day_age on viewing_day (day)',
  'alter table playback_session add column key_windows blob',
]

export const viewings: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
