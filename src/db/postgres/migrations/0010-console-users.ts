import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// People who use the console, and how they sign in.

const STATEMENTS = [
  `create table console_user (
    id text collate "C" primary key,
    account_id text not null references account (id),
    name text not null,
    folded_name text collate "C" not null unique,
    role text not null,
    is_administrator bigint not null,
    wrapped_password_hash bytea,
    disabled bigint not null default 0,
    created_at_s bigint not null
  )`,
  'create index console_user_of_account on console_user (account_id)',
  `create table passkey (
    id text collate "C" primary key,
    console_user_id text collate "C" not null references console_user (id),
    name text not null,
    public_key bytea not null,
    sign_count bigint not null,
    transports text not null,
    created_at_s bigint not null,
    last_used_at_s bigint
  )`,
  'create index passkey_of_user on passkey (console_user_id)',
  `create table sign_in (
    id text collate "C" primary key,
    token_hash bytea not null unique,
    console_user_id text collate "C" not null references console_user (id),
    account_id text not null references account (id),
    method text not null,
    address text not null,
    user_agent text not null,
    created_at_s bigint not null,
    last_seen_at_s bigint not null,
    expires_at_s bigint not null
  )`,
  'create index sign_in_of_user on sign_in (console_user_id)',
  'create index sign_in_age on sign_in (expires_at_s)',
  `create table sign_in_link (
    hash bytea primary key,
    console_user_id text collate "C" not null references console_user (id),
    created_at_s bigint not null,
    expires_at_s bigint not null
  )`,
  'create index sign_in_link_of_user on sign_in_link (console_user_id)',
]

export const consoleUsers: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
