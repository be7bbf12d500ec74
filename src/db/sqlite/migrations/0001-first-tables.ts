import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const STATEMENTS = [
  `create table setting (name text primary key, value text not null) without rowid`,

  `create table account (
    id text primary key,
    name text not null,
    created_at_s integer not null,
    may_upload integer not null,
    may_import integer not null,
    disabled integer not null default 0,
    page_max integer not null default 40,
    video_count integer not null default 0
  ) without rowid`,

  `create table api_key (
    id text primary key,
    account_id text not null references account (id),
    hash blob not null unique,
    prefix text not null,
    name text not null,
    permissions text not null,
    created_at_s integer not null,
    revoked_at_s integer
  ) without rowid`,
  `create index api_key_of_account on api_key (account_id)`,

  // The position is the rowid: AUTOINCREMENT never gives one out twice, so order and deletion cannot disagree.
  `create table video (
    position integer primary key autoincrement,
    id text not null unique,
    account_id text not null references account (id),
    title text not null,
    description text not null,
    file_name text not null,
    upload_time_s integer not null,
    status text not null,
    status_reason text,
    duration_s real not null default 0,
    aspect_ratio real,
    total_size_bytes integer not null default 0,
    public integer not null default 1,
    folder_id text not null default 'root',
    generation integer not null default 0,
    deleted_at_s integer
  )`,
  `create index video_in_order on video (account_id, position desc) where deleted_at_s is null`,
  `create index video_deleted on video (deleted_at_s) where deleted_at_s is not null`,
  `create index video_unfinished on video (status) where status in ('Queued', 'Processing')`,

  `create table upload_policy (
    key text primary key,
    account_id text not null,
    video_id text not null,
    expires_at_s integer not null,
    spent_at_s integer
  ) without rowid`,
  `create index upload_policy_of_video on upload_policy (video_id)`,

  `create table source (
    video_id text primary key,
    file text not null,
    size_bytes integer not null,
    sha256 blob not null,
    wrapped_key blob,
    iv blob not null,
    macs blob not null
  ) without rowid`,

  `create table generation (
    video_id text not null,
    number integer not null,
    wrapped_content_key blob,
    plan text not null,
    encoder text not null,
    created_at_s integer not null,
    posters_at_s integer,
    finished_at_s integer,
    primary key (video_id, number)
  ) without rowid`,
  `create index generation_unfinished on generation (video_id) where finished_at_s is null`,

  `create table rendition (
    video_id text not null,
    generation integer not null,
    id integer not null,
    kind text not null,
    init blob,
    primary key (video_id, generation, id)
  ) without rowid`,

  `create table chunk (
    video_id text not null,
    generation integer not null,
    kind text not null,
    first_segment integer not null,
    segment_count integer not null,
    from_start integer not null,
    state text not null,
    attempt integer not null default 0,
    priority integer not null,
    threads integer not null default 1,
    primary key (video_id, generation, kind, first_segment)
  ) without rowid`,
  `create index chunk_waiting on chunk (priority) where state = 'waiting'`,
  `create index chunk_running on chunk (state) where state = 'running'`,

  // One text for a segment, for ever: the primary key lets the first insert win.
  `create table segment (
    video_id text not null,
    generation integer not null,
    rendition_id integer not null,
    number integer not null,
    file text not null,
    size_bytes integer not null,
    sha256 blob not null,
    damaged integer not null default 0,
    primary key (video_id, generation, rendition_id, number)
  ) without rowid`,

  `create table poster (
    id integer primary key autoincrement,
    video_id text not null,
    width_px integer not null,
    height_px integer not null,
    size_bytes integer not null,
    token text not null unique,
    file text not null,
    created_at_s integer not null
  )`,
  `create index poster_of_video on poster (video_id)`,

  // Rows in the order they come, found by their hash: a table in the order of random hashes costs half as much again to write.
  `create table otp (
    hash blob primary key,
    account_id text not null,
    api_key_id text not null,
    video_id text not null,
    user_id text,
    marks text not null,
    forced_bitrate_kbps integer,
    license_rules text,
    issued_at_s integer not null,
    expires_at_s integer not null,
    spent_at_s integer
  )`,
  `create index otp_expiry on otp (expires_at_s)`,
  `create index otp_spent on otp (spent_at_s) where spent_at_s is not null`,

  // One OTP opens at most one session: the unique index is what settles a race.
  `create table playback_session (
    id text primary key,
    otp_hash blob not null unique,
    account_id text not null,
    video_id text not null,
    generation integer not null,
    user_id text,
    public_key blob not null,
    key_id blob not null,
    pages text not null,
    marks text not null,
    forced_bitrate_kbps integer,
    started_at_s integer not null,
    ends_at_s integer not null,
    last_seen_at_s integer not null,
    left_at_s integer,
    ended_at_s integer,
    end_reason text
  ) without rowid`,
  `create index playback_session_live on playback_session (video_id) where ended_at_s is null`,
  `create index playback_session_end on playback_session (ends_at_s)`,
  `create index playback_session_ended on playback_session (ended_at_s) where ended_at_s is not null`,

  `create table watch_position (
    account_id text not null,
    user_id text not null,
    video_id text not null,
    position_s real not null,
    saved_at_s integer not null,
    primary key (account_id, user_id, video_id)
  ) without rowid`,
  `create index watch_position_of_video on watch_position (video_id)`,
  `create index watch_position_age on watch_position (saved_at_s)`,

  `create table redeem_attempt (
    id integer primary key,
    otp_hash blob not null,
    at_s integer not null,
    key_id blob not null,
    address text not null,
    user_agent text not null,
    embedding_host text not null,
    outcome text not null,
    times integer not null default 1
  )`,
  `create index redeem_attempt_of_otp on redeem_attempt (otp_hash)`,
]

export const firstTables: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
