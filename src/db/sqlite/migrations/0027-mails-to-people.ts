import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// E-mail addresses of people who use the console, and mails to them in the table of those about alerts.

const STATEMENTS = [
  'alter table console_user add column email text',
  `create table mail (
    id text primary key,
    day integer not null,
    cause text not null,
    recipient text,
    subject text,
    text text,
    due_at_s integer not null,
    attempts integer not null default 0,
    sent_at_s integer,
    problem text
  ) without rowid`,
  `insert into mail (id, day, cause, due_at_s, attempts, sent_at_s, problem)
   select day || ' ' || cause, day, cause, due_at_s, attempts, sent_at_s, problem from alert_mail`,
  'drop table alert_mail',
  'create index mail_of_day on mail (day)',
]

export const mailsToPeople: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
