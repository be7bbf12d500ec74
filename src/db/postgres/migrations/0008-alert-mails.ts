import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// One e-mail for each day and cause of alerts.

const STATEMENTS = [
  `create table alert_mail (
    day bigint not null,
    cause text collate "C" not null,
    due_at_s bigint not null,
    attempts bigint not null default 0,
    sent_at_s bigint,
    problem text,
    primary key (day, cause)
  )`,
]

export const alertMails: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
