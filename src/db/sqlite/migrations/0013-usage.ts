import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  // By day first: the owner asks for a day, and the sweep takes the oldest. Rows outlive their video.
  `create table video_usage (
    day text not null,
    account_id text not null,
    video_id text not null,
    viewer_label text not null,
    sent_bytes integer not null,
    view_count integer not null,
    primary key (day, account_id, video_id, viewer_label)
  ) without rowid`,
  // Beside the video, not in it: a view is no change that a kept list would have to show.
  `create table view_total (
    video_id text not null primary key,
    view_count integer not null
  ) without rowid`,
  'alter table playback_session add column viewed_at_s integer',
  // The few that still wait for their upload.
  'create index upload_policy_open on upload_policy (expires_at_s) where spent_at_s is null',
]

export const usage: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
