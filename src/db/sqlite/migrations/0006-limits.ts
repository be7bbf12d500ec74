import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `alter table account add column limit_factor integer not null default 1`,
  `create table strike (
    id integer primary key,
    scope text not null,
    subject text not null,
    budget text not null,
    at_s integer not null
  )`,
  `create index strike_of_subject on strike (subject, at_s)`,
  `create index strike_time on strike (at_s)`,
  `create table ban (
    scope text not null,
    subject text not null,
    budget text not null,
    began_at_s integer not null,
    ends_at_s integer not null,
    primary key (subject, scope, budget)
  ) without rowid`,
]

export const limits: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
