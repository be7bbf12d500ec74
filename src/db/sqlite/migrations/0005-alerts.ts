import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `create table alert (
    id integer primary key autoincrement,
    account_id text not null,
    day integer not null,
    cause text not null,
    subject text not null,
    at_s integer not null,
    occurrence_count integer not null,
    session_id text,
    user_id text,
    video_id text not null,
    numbers text not null
  )`,
  'create unique index alert_once_a_day on alert (account_id, day, cause, subject)',
  'create index alert_of_account on alert (account_id, id)',
  'create index alert_of_cause on alert (account_id, cause, id)',
  'create index alert_of_viewer on alert (account_id, user_id, id) where user_id is not null',
  'create index alert_age on alert (at_s)',
]

export const alerts: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
