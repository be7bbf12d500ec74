import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// One e-mail for each day and cause of alerts.

const STATEMENTS = [
  `create table alert_mail (
    day integer not null,
    cause text not null,
    due_at_s integer not null,
    attempts integer not null default 0,
    sent_at_s integer,
    problem text,
    primary key (day, cause)
  ) without rowid`,
]

export const alertMails: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
