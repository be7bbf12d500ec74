import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

// Booleans are 0/1, times Unix seconds (`…_s`), lists and records JSON text. Counters, the search index and the change number
// are kept by triggers: no statement that changes a video can forget them.

const STATEMENTS = [
  `create table setting (
    name text primary key,
    value text not null
  ) without rowid`,

  `create table account (
    id text primary key,
    name text not null,
    created_at_s integer not null,
    may_upload integer not null,
    may_import integer not null,
    disabled integer not null default 0,
    page_max integer not null default 40,
    video_count integer not null default 0,
    change_number integer not null default 0,
    stream_limit integer not null default 0,
    stream_limit_policy text not null default 'refuse',
    limit_factor integer not null default 1,
    folder_count integer not null default 0
  ) without rowid`,

  `create table api_key (
    id text primary key,
    account_id text not null references account (id),
    hash blob not null unique,
    prefix text not null,
    name text not null,
    permissions text not null,
    created_at_s integer not null,
    revoked_at_s integer,
    expires_at_s integer,
    last_used_at_s integer
  ) without rowid`,
  'create index api_key_of_account on api_key (account_id)',

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
    deleted_at_s integer,
    has_source integer not null default 0
  )`,
  'create index video_in_order on video (account_id, position desc) where deleted_at_s is null',
  'create index video_deleted on video (deleted_at_s) where deleted_at_s is not null',
  'create index video_in_folder on video (account_id, folder_id, position desc) where deleted_at_s is null',
  `create index video_unplanned on video (position)
    where has_source = 1 and generation = 0 and status in ('Queued', 'Processing') and deleted_at_s is null`,

  `create table upload_policy (
    key text primary key,
    account_id text not null,
    video_id text not null,
    expires_at_s integer not null,
    spent_at_s integer
  ) without rowid`,
  'create index upload_policy_of_video on upload_policy (video_id)',
  // The few that still wait for their upload.
  'create index upload_policy_open on upload_policy (expires_at_s) where spent_at_s is null',

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
    posters_extracted_at_s integer,
    finished_at_s integer,
    primary key (video_id, number)
  ) without rowid`,
  'create index generation_unfinished on generation (video_id) where finished_at_s is null',

  `create table rendition (
    video_id text not null,
    generation integer not null,
    id integer not null,
    kind text not null,
    init blob,
    primary key (video_id, generation, id)
  ) without rowid`,

  // The position is the video's, so that the next chunk is the first of an index, however many wait.
  `create table chunk (
    video_id text not null,
    generation integer not null,
    kind text not null,
    first_segment integer not null,
    segment_count integer not null,
    decodes_from_start integer not null,
    state text not null,
    attempt integer not null default 0,
    priority integer not null,
    threads integer not null default 1,
    position integer not null default 0,
    primary key (video_id, generation, kind, first_segment)
  ) without rowid`,
  `create index chunk_pending on chunk (priority, position) where state = 'pending'`,
  `create index chunk_running on chunk (state) where state = 'running'`,

  // One file for a segment, for ever: with the primary key the first insert wins.
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

  // Rows in the order in which they come, found by their hash: a table in the order of random hashes costs half as much again
  // to write.
  `create table otp (
    hash blob primary key,
    account_id text not null,
    api_key_id text not null,
    video_id text not null,
    user_id text,
    watermarks text not null,
    forced_bitrate_kbps integer,
    license_rules text,
    issued_at_s integer not null,
    expires_at_s integer not null,
    spent_at_s integer,
    stream_limit integer,
    reused_at_s integer,
    rules text
  )`,
  'create index otp_expiry on otp (expires_at_s)',
  'create index otp_spent on otp (spent_at_s) where spent_at_s is not null',

  // One OTP opens at most one session: the unique index settles a race.
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
    watermarks text not null,
    forced_bitrate_kbps integer,
    started_at_s integer not null,
    ends_at_s integer not null,
    last_seen_at_s integer not null,
    left_at_s integer,
    ended_at_s integer,
    end_reason text,
    stream_limit integer,
    rules text,
    viewed_at_s integer
  ) without rowid`,
  'create index playback_session_live on playback_session (video_id) where ended_at_s is null',
  'create index playback_session_end on playback_session (ends_at_s)',
  'create index playback_session_ended on playback_session (ended_at_s) where ended_at_s is not null',
  'create index playback_session_of_account on playback_session (account_id) where ended_at_s is null',

  `create table watch_position (
    account_id text not null,
    user_id text not null,
    video_id text not null,
    position_s real not null,
    saved_at_s integer not null,
    primary key (account_id, user_id, video_id)
  ) without rowid`,
  'create index watch_position_of_video on watch_position (video_id)',
  'create index watch_position_age on watch_position (saved_at_s)',

  `create table redeem_attempt (
    id integer primary key,
    otp_hash blob not null,
    at_s integer not null,
    key_id blob not null,
    address text not null,
    user_agent text not null,
    embedding_host text not null,
    outcome text not null,
    attempt_count integer not null default 1,
    rule text
  )`,
  'create index redeem_attempt_of_otp on redeem_attempt (otp_hash)',

  `create table tag (
    account_id text not null,
    name text not null,
    video_count integer not null,
    primary key (account_id, name)
  ) without rowid`,

  // In list order, so that a page of a tag's videos is a scan of the key. The ordinal keeps the order in which a video got its
  // tags.
  `create table video_tag (
    account_id text not null,
    name text not null,
    position integer not null,
    ordinal integer not null,
    primary key (account_id, name, position)
  ) without rowid`,
  'create index video_tag_of_video on video_tag (position, ordinal)',

  // Folded by db/fold-case.ts, so that short texts, which no trigram finds, are compared in the same way.
  `create virtual table video_text using fts5 (id, title, file_name, tokenize = 'trigram case_sensitive 1')`,
  `insert into video_text (video_text, rank) values ('secure-delete', 1)`,

  `create table watermark_image (
    account_id text not null references account (id),
    url_hash blob not null,
    sealed blob,
    problem text,
    tried_at_s integer not null,
    primary key (account_id, url_hash)
  )`,
  'create index watermark_image_age on watermark_image (account_id, tried_at_s)',

  // Numbered slots: more streams than slots cannot be stored, and a session has at most one of them.
  `create table stream_slot (
    account_id text not null,
    user_id text not null,
    n integer not null,
    session_id text not null unique,
    taken_at_s integer not null,
    ends_at_s integer not null,
    primary key (account_id, user_id, n)
  ) without rowid`,
  'create index stream_slot_end on stream_slot (ends_at_s)',

  `create table strike (
    id integer primary key,
    scope text not null,
    subject text not null,
    budget text not null,
    at_s integer not null
  )`,
  'create index strike_of_subject on strike (subject, at_s)',
  'create index strike_time on strike (at_s)',

  `create table ban (
    scope text not null,
    subject text not null,
    budget text not null,
    began_at_s integer not null,
    ends_at_s integer not null,
    primary key (subject, scope, budget)
  ) without rowid`,

  `create table audit_event (
    id integer primary key,
    at_s integer not null,
    account_id text,
    actor text not null,
    kind text not null,
    subject text not null,
    details text
  )`,
  'create index audit_event_of_account on audit_event (account_id, id)',
  'create index audit_event_time on audit_event (at_s)',

  `create table folder (
    account_id text not null references account (id),
    id text not null,
    parent_id text,
    name text not null,
    folded_name text not null,
    created_at_s integer not null,
    video_count integer not null default 0,
    folder_count integer not null default 0,
    primary key (account_id, id)
  ) without rowid`,
  'create index folder_in_order on folder (account_id, parent_id, folded_name, id)',
  'create index folder_by_name on folder (account_id, folded_name, id)',

  // The position is the video's, so that an account's imports are scanned in their order.
  `create table import (
    video_id text primary key,
    account_id text not null,
    host text not null,
    wrapped_url blob not null,
    file text,
    wrapped_key blob,
    iv blob,
    etag text,
    received_bytes integer not null default 0,
    received_sha256 blob,
    max_received_bytes integer not null default 0,
    attempts integer not null default 0,
    next_attempt_at_s integer not null,
    ends_at_s integer,
    position integer not null default 0
  ) without rowid`,
  'create index import_turn on import (account_id, next_attempt_at_s, position, host)',

  // A replay sends again what failed from `replay_from_sequence` on, in batches; null: none is under way.
  `create table webhook (
    id text primary key,
    account_id text not null,
    url text not null,
    event text,
    wrapped_secret blob not null,
    previous_wrapped_secret blob,
    previous_secret_expires_at_s integer,
    created_at_s integer not null,
    last_sequence integer not null default 0,
    disabled_reason text,
    consecutive_failures integer not null default 0,
    failing_since_s integer,
    next_attempt_at_s integer not null default 0,
    replay_from_sequence integer
  ) without rowid`,
  'create index webhook_of_account on webhook (account_id)',
  'create index webhook_turn on webhook (next_attempt_at_s, id) where disabled_reason is null',

  `create table delivery (
    webhook_id text not null,
    sequence integer not null,
    event text not null,
    body text not null,
    time_ms integer not null,
    state text not null,
    attempts integer not null default 0,
    due_at_s integer not null default 0,
    tried_at_s integer,
    status integer,
    problem text,
    finished_at_s integer,
    primary key (webhook_id, sequence)
  ) without rowid`,
  // Finds what is still to be sent, however many finished deliveries there are.
  'create index delivery_open on delivery (webhook_id, due_at_s, sequence) where finished_at_s is null',
  'create index delivery_finished on delivery (finished_at_s) where finished_at_s is not null',
  `create index delivery_failed on delivery (webhook_id, sequence) where state = 'failed'`,

  // A row for every file of a video, whatever its kind, so that one sequence numbers them all and no number comes twice.
  `create table file (
    id integer primary key autoincrement,
    video_id text not null,
    type text not null,
    created_at_s integer not null,
    enabled integer not null default 1,
    attachment_id text,
    generation integer,
    rendition_id integer,
    blob text,
    size_bytes integer not null default 0,
    width_px integer,
    height_px integer,
    token text unique,
    language text,
    wrapped_key blob,
    iv blob,
    macs blob,
    attempts integer not null default 0,
    problem text
  )`,
  'create index file_of_video on file (video_id)',
  // For lists: the posters that show, and nothing else.
  `create index poster_shown on file (video_id) where type = 'poster' and enabled = 1`,
  // One MP4 for each video, however many clients request it concurrently.
  `create unique index mp4_of_video on file (video_id) where type = 'mp4'`,
  `create index mp4_unmade on file (id) where type = 'mp4' and blob is null`,

  // By day first: queries name a day, and pruning takes the oldest. Rows outlive their video.
  `create table video_usage (
    day text not null,
    account_id text not null,
    video_id text not null,
    user_id text not null,
    sent_bytes integer not null,
    view_count integer not null,
    primary key (day, account_id, video_id, user_id)
  ) without rowid`,

  // Not a column of the video: a view is no change that a cached list would have to show.
  `create table view_total (
    video_id text not null primary key,
    view_count integer not null
  ) without rowid`,

  `create table stored_response (
    account_id text not null,
    idempotency_key text not null,
    request_hash blob not null,
    wrapped_response blob not null,
    responded_at_s integer not null,
    primary key (account_id, idempotency_key)
  ) without rowid`,
  'create index stored_response_time on stored_response (responded_at_s)',

  `create trigger video_tag_added after insert on video_tag begin
    insert into tag (account_id, name, video_count) values (new.account_id, new.name, 1)
      on conflict (account_id, name) do update set video_count = video_count + 1;
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  `create trigger video_tag_removed after delete on video_tag begin
    update tag set video_count = video_count - 1 where account_id = old.account_id and name = old.name;
    delete from tag where account_id = old.account_id and name = old.name and video_count = 0;
    update account set change_number = change_number + 1 where id = old.account_id;
  end`,
  `create trigger video_added after insert on video begin
    insert into video_text (rowid, id, title, file_name) values (new.position, new.id, fold(new.title), fold(new.file_name));
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  `create trigger video_changed after update on video when new.deleted_at_s is null begin
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  `create trigger video_renamed after update of title, file_name on video when new.deleted_at_s is null begin
    update video_text set title = fold(new.title), file_name = fold(new.file_name) where rowid = new.position;
  end`,
  // The root is a row like any other, made with its account: what counts, lists and moves needs no special case.
  `create trigger account_added after insert on account begin
    insert into folder (account_id, id, parent_id, name, folded_name, created_at_s)
      values (new.id, 'root', null, 'root', 'root', new.created_at_s);
  end`,
  `create trigger folder_added after insert on folder when new.parent_id is not null begin
    update folder set folder_count = folder_count + 1 where account_id = new.account_id and id = new.parent_id;
    update account set folder_count = folder_count + 1 where id = new.account_id;
  end`,
  `create trigger folder_moved after update of parent_id on folder when new.parent_id <> old.parent_id begin
    update folder set folder_count = folder_count - 1 where account_id = old.account_id and id = old.parent_id;
    update folder set folder_count = folder_count + 1 where account_id = new.account_id and id = new.parent_id;
  end`,
  // A list of its videos is an error from now on: a cached response must not be sent again.
  `create trigger folder_removed after delete on folder begin
    update folder set folder_count = folder_count - 1 where account_id = old.account_id and id = old.parent_id;
    update account set folder_count = folder_count - 1, change_number = change_number + 1 where id = old.account_id;
  end`,
  `create trigger video_put_into_folder after insert on video begin
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
  end`,
  `create trigger video_moved after update of folder_id on video when new.folder_id <> old.folder_id and new.deleted_at_s is null begin
    update folder set video_count = video_count - 1 where account_id = old.account_id and id = old.folder_id;
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
  end`,
  `create trigger video_taken_from_folder after update of deleted_at_s on video
    when new.deleted_at_s is not null and old.deleted_at_s is null begin
    update folder set video_count = video_count - 1 where account_id = old.account_id and id = old.folder_id;
  end`,
  `create trigger source_added after insert on source begin
    insert into file (video_id, type, created_at_s)
      select new.video_id, 'original', upload_time_s from video where id = new.video_id;
  end`,
  `create trigger rendition_added after insert on rendition begin
    insert into file (video_id, type, created_at_s, generation, rendition_id)
      select new.video_id, 'rendition', created_at_s, new.generation, new.id from generation
      where video_id = new.video_id and number = new.generation;
  end`,
  // A change of the video raises its account's change number: lists show posters.
  `create trigger file_added after insert on file begin
    update video set total_size_bytes = total_size_bytes + new.size_bytes where id = new.video_id and deleted_at_s is null;
  end`,
  `create trigger file_changed after update of enabled, size_bytes on file begin
    update video set total_size_bytes = total_size_bytes + new.size_bytes - old.size_bytes
      where id = new.video_id and deleted_at_s is null;
  end`,
  `create trigger file_removed after delete on file begin
    update video set total_size_bytes = total_size_bytes - old.size_bytes where id = old.video_id and deleted_at_s is null;
  end`,
  `create trigger source_arrived after insert on source begin
    update video set has_source = 1 where id = new.video_id and has_source = 0;
  end`,
  `create trigger video_deleted after update of deleted_at_s on video when new.deleted_at_s is not null begin
    delete from video_tag where position = new.position;
    update account set change_number = change_number + 1 where id = new.account_id;
  end`,
  // What is searched for is removed with the row, not with the tombstone: overwriting the trigrams of one title takes
  // milliseconds.
  `create trigger video_removed after delete on video begin
    delete from video_text where rowid = old.position;
  end`,
]

export const tables: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
