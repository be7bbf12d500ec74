import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// People who use the console, and how they sign in.

const STATEMENTS = [
  `create table console_user (
    id text primary key,
    account_id text not null references account (id),
    name text not null,
    folded_name text not null unique,
    role text not null,
    is_administrator integer not null,
    wrapped_password_hash blob,
    disabled integer not null default 0,
    created_at_s integer not null
  ) without rowid`,
  'create index console_user_of_account on console_user (account_id)',
  `create table passkey (
    id text primary key,
    console_user_id text not null references console_user (id),
    name text not null,
    public_key blob not null,
    sign_count integer not null,
    transports text not null,
    created_at_s integer not null,
    last_used_at_s integer
  ) without rowid`,
  'create index passkey_of_user on passkey (console_user_id)',
  `create table sign_in (
    id text primary key,
    token_hash blob not null unique,
    console_user_id text not null references console_user (id),
    account_id text not null references account (id),
    method text not null,
    address text not null,
    user_agent text not null,
    created_at_s integer not null,
    last_seen_at_s integer not null,
    expires_at_s integer not null
  ) without rowid`,
  'create index sign_in_of_user on sign_in (console_user_id)',
  'create index sign_in_age on sign_in (expires_at_s)',
  `create table sign_in_link (
    hash blob primary key,
    console_user_id text not null references console_user (id),
    created_at_s integer not null,
    expires_at_s integer not null
  ) without rowid`,
  'create index sign_in_link_of_user on sign_in_link (console_user_id)',
]

export const consoleUsers: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
