/**
 * What version 0.3.0 adds to the tables of 0.2.0, on both databases, as SQLite has it; each adds a few statements of its own.
 * In SQLite a table without `rowid` is its primary key's index.
 */
export const STATEMENTS: readonly string[] = [
  // Keys that the server proves itself with. Sessions from before have none: their viewers reload the page they came from.
  `create table server_key (
    id text primary key,
    public_key blob not null,
    wrapped_private_key blob not null,
    created_at_s integer not null
  ) without rowid`,
  `alter table playback_session add column server_key_id text not null default ''`,

  // How much of a video a viewer may still be given keys for.
  `create table key_budget (
    account_id text not null,
    viewer text not null,
    video_id text not null,
    source_number integer not null,
    level_s real not null,
    earned_at_s real not null,
    released blob not null,
    released_of integer not null,
    earning text,
    used_at_s integer not null,
    version integer not null default 0,
    primary key (account_id, viewer, video_id, source_number)
  ) without rowid`,
  'create index key_budget_age on key_budget (used_at_s)',

  // Lists of those who watch now.
  'drop index playback_session_of_account',
  'create index playback_session_of_account on playback_session (account_id, started_at_s) where ended_at_s is null',
  `create index playback_session_of_viewer on playback_session (account_id, user_id, started_at_s)
    where ended_at_s is null and user_id is not null`,

  // Alerts; `video_ids`: those that one is about, with commas between them.
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
    numbers text not null,
    video_ids text not null default ''
  )`,
  'create unique index alert_once_a_day on alert (account_id, day, cause, subject)',
  'create index alert_of_account on alert (account_id, id)',
  'create index alert_of_cause on alert (account_id, cause, id)',
  'create index alert_of_viewer on alert (account_id, user_id, id) where user_id is not null',
  'create index alert_age on alert (at_s)',
  'alter table account add column alerts_seen_id integer not null default 0',

  // Mails: about the alerts of a day and cause, and to people who use the console.
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
  'create index mail_of_day on mail (day)',

  // Who works on what. Work that 0.2.0 was doing has no claim, so it is pending again.
  `create table claim (
    kind text not null,
    subject text not null,
    id text,
    server text,
    ends_at_s integer not null,
    failures integer not null default 0,
    primary key (kind, subject)
  ) without rowid`,
  `update chunk set state = 'pending' where state = 'running'`,
  `update delivery set state = 'waiting', due_at_s = 0 where finished_at_s is null and state = 'sending'`,

  // What viewers have watched, and which keys a session was given.
  `create table viewing (
    id integer primary key autoincrement,
    account_id text not null,
    user_id text not null,
    video_id text not null,
    intervals text not null,
    watched_s integer not null,
    position_s real not null,
    began_at_s integer not null,
    last_at_s integer not null,
    completed_at_s integer,
    version integer not null default 0
  )`,
  'create unique index viewing_once on viewing (account_id, user_id, video_id)',
  'create index viewing_of_viewer on viewing (account_id, user_id, id)',
  'create index viewing_of_video on viewing (video_id, id)',
  'create index viewing_age on viewing (last_at_s)',
  `create table viewing_day (
    account_id text not null,
    day integer not null,
    video_id text not null,
    user_id text not null,
    intervals text not null,
    watched_s integer not null,
    primary key (account_id, day, video_id, user_id)
  )`,
  'create index viewing_day_of_viewer on viewing_day (account_id, user_id)',
  'create index viewing_day_of_video on viewing_day (video_id)',
  'create index viewing_day_age on viewing_day (day)',
  'alter table playback_session add column key_windows blob',
  'alter table playback_session add column version integer not null default 0',
  'alter table playback_session add column seq_highest integer not null default 0',
  'alter table playback_session add column seq_seen integer not null default 0',
  'alter table playback_session add column live text',
  // A viewer resumes behind the last second that was watched, which `viewing` has. Positions from before seconds were counted are kept.
  `insert into viewing (account_id, user_id, video_id, intervals, watched_s, position_s, began_at_s, last_at_s)
    select account_id, user_id, video_id, '', 0, position_s, saved_at_s, saved_at_s from watch_position`,
  'drop table watch_position',

  // What owners call their viewers.
  `create table viewer (
    account_id text not null,
    user_id text not null,
    name text,
    email text,
    named_at_s integer not null,
    primary key (account_id, user_id)
  )`,
  'create index viewer_age on viewer (named_at_s)',
  'alter table otp add column viewer text',
  // The counters of days that name a viewer, from which the name is removed after a while.
  `create index video_usage_named on video_usage (day) where user_id <> ''`,

  // Options that the OTPs of an account or a video have unless their own say otherwise.
  'alter table account add column otp_defaults text',
  'alter table account add column otp_defaults_removable integer not null default 0',
  'alter table video add column otp_defaults text',

  // People who use the console, and how they sign in.
  `create table console_user (
    id text primary key,
    account_id text not null references account (id),
    name text not null,
    folded_name text not null unique,
    role text not null,
    is_administrator integer not null,
    wrapped_password_hash blob,
    disabled integer not null default 0,
    created_at_s integer not null,
    email text
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
  // Who added a video, so that a person with the role uploader may edit it.
  'alter table video add column added_by text',

  // Deleted videos that can be restored. To every other table they are deleted videos, whose files and keys still exist.
  `create table trashed_video (
    video_id text primary key,
    account_id text not null,
    trashed_at_s integer not null,
    ends_at_s integer not null,
    tags text not null
  ) without rowid`,
  'create index trashed_video_in_order on trashed_video (account_id, trashed_at_s desc, video_id)',
  'create index trashed_video_end on trashed_video (ends_at_s)',
  'alter table account add column deletes_to_trash integer not null default 0',

  // Sound at one loudness: not of accounts from before, whose videos would differ from each other.
  'alter table account add column normalizes_loudness integer not null default 0',
  'alter table rendition add column gain_db real',

  // Sources that wait to be examined, by account: accounts take turns.
  'drop index video_unplanned',
  `create index video_unplanned on video (account_id, position)
    where has_source = 1 and generation = 0 and status in ('Queued', 'Processing') and deleted_at_s is null`,
  // Whether a video is complete is asked before each piece of work, however many chunks of it are done.
  `create index chunk_open on chunk (video_id, generation) where state != 'done'`,
  // The oldest video's chunk, which has a share of the encoder.
  `create index chunk_by_age on chunk (position, priority) where state = 'pending'`,

  // Refused attempts to redeem, newest first; and what was done to one thing.
  'alter table redeem_attempt add column account_id text',
  'update redeem_attempt set account_id = (select account_id from otp where otp.hash = redeem_attempt.otp_hash)',
  `create index redeem_attempt_refused on redeem_attempt (account_id, id) where outcome not in ('opened', 'resumed')`,
  'create index audit_event_of_subject on audit_event (account_id, subject, id)',

  // Orders of a list of videos other than newest first.
  'create index video_by_upload_time on video (account_id, upload_time_s, position) where deleted_at_s is null',
  'create index video_by_length on video (account_id, duration_s, position) where deleted_at_s is null',

  // What an account's videos took on the disk, as last measured on each day, and how much it may store. By day first: queries name days,
  // and pruning takes the oldest.
  `create table storage_day (
    day text not null,
    account_id text not null,
    size_bytes integer not null,
    primary key (day, account_id)
  ) without rowid`,
  'alter table account add column storage_limit_bytes integer',

  // How videos played, by page of a session. By account and day: reports name days.
  `create table view_quality (
    session_id text not null,
    page_id text not null,
    day text not null,
    account_id text not null,
    video_id text not null,
    country text not null,
    browser text not null,
    network text not null,
    measured_ms integer not null,
    start_ms integer,
    wait_count integer not null,
    waited_ms integer not null,
    played_ms integer not null,
    frame_count integer not null,
    dropped_frame_count integer not null,
    error text,
    rungs text not null,
    primary key (session_id, page_id)
  ) without rowid`,
  'create index view_quality_of_account on view_quality (account_id, day)',
  'create index view_quality_of_video on view_quality (video_id, day)',
  'create index view_quality_age on view_quality (day)',

  // Which originals, posters, captions and MP4s were found missing or changed.
  'alter table file add column damaged integer not null default 0',
  'create index file_damaged on file (id) where damaged = 1',
  // Captions inside of uploaded files, which viewers do not get before their owner shows them.
  'alter table file add column hidden integer not null default 0',
  'alter table file add column stream_index integer',
  'alter table file add column stream_title text',
  // Captions that a program makes of speech, until their owner has looked at them.
  'alter table file add column automatic integer not null default 0',
  'alter table file add column progress real not null default 0',
  'alter table account add column transcribe_language text',
  // Where viewers watch, for pages that anyone may see.
  'alter table account add column watch_url text',
  // What the player says, in the owner's words.
  'alter table account add column player_sentences text',
  `create index caption_unmade on file (id) where type = 'caption' and (blob) is null and problem is null`,
  // How often a segment was repaired whose file had other bytes, which is part of its address.
  'alter table segment add column repairs integer not null default 0',
  'create index segment_repaired on segment (video_id, generation) where repairs > 0',

  // Owners' own fields of videos; deleted videos have given up their ids.
  'alter table video add column external_id text',
  'alter table video add column metadata text',
  `create unique index video_by_external_id on video (external_id, account_id)
    where external_id is not null and deleted_at_s is null`,
  `create table video_metadata (
    account_id text not null,
    name text not null,
    value text not null,
    position integer not null,
    primary key (account_id, name, value, position)
  ) without rowid`,
  'create index video_metadata_of_video on video_metadata (position)',
  // Which video had the same bytes when a video's source arrived.
  'alter table video add column duplicate_of text',

  // Chapters of a video; `list`: JSON.
  `create table chapters (
    video_id text primary key,
    language text,
    list text not null
  )`,

  // What an owner has set of the audio tracks of a file; `list`: JSON.
  `create table audio_settings (
    video_id text not null,
    source_number integer not null,
    list text not null,
    primary key (video_id, source_number)
  ) without rowid`,
  // Audio tracks that were added as files of their own.
  `create table dub (
    video_id text not null,
    source_number integer not null,
    account_id text not null,
    of_source integer not null,
    start_s real not null,
    language text not null,
    name text,
    is_default integer not null,
    requested_at_s integer not null,
    attempts integer not null default 0,
    progress real not null default 0,
    encoded integer not null default 0,
    difference_s real,
    problem text,
    primary key (video_id, source_number)
  ) without rowid`,
  'create index dub_waiting on dub (account_id, requested_at_s) where encoded = 0 and problem is null',

  // What continues an import in any process. Those of 0.2.0 that were interrupted start again.
  'alter table import drop column received_sha256',
  'alter table import add column received_state blob',

  // What is in the new place while files move from one to another.
  'create table moved_blob (name text primary key) without rowid',

  // Which video of another server a video was copied from: what moves in is made once, however often the move is begun.
  `create table moved_video (
    account_id text not null,
    origin text not null,
    origin_id text not null,
    video_id text not null,
    has_files integer not null default 0,
    primary key (account_id, origin, origin_id)
  ) without rowid`,

  // Files that arrive in parts, over any number of connections, and those that arrived lately.
  `create table resumable_upload (
    id text primary key,
    video_id text not null,
    account_id text not null,
    metadata text not null,
    file_name text not null,
    length_bytes integer,
    received_bytes integer not null default 0,
    received_state blob,
    file text not null,
    wrapped_key blob,
    iv blob not null,
    upload_token_id text,
    expires_at_s integer not null,
    finished_at_s integer,
    replaces integer not null default 0
  ) without rowid`,
  'create index resumable_upload_of_video on resumable_upload (video_id)',
  'create index resumable_upload_of_account on resumable_upload (account_id) where finished_at_s is null',
  'create index resumable_upload_expiry on resumable_upload (expires_at_s)',

  // What the pages of owners upload with; and which videos came that way, with what the owner calls their sender.
  `create table upload_token (
    position integer primary key autoincrement,
    id text not null unique,
    account_id text not null,
    hash blob not null unique,
    api_key_id text,
    console_user_id text,
    origin text not null,
    title text,
    title_pattern text,
    folder_id text not null,
    tags text not null,
    max_size_bytes integer,
    max_files integer not null,
    files integer not null default 0,
    reference text,
    video_id text,
    created_at_s integer not null,
    expires_at_s integer not null,
    revoked_at_s integer
  )`,
  'create index upload_token_of_account on upload_token (account_id, position)',
  'create index upload_token_of_origin on upload_token (origin, expires_at_s) where revoked_at_s is null',
  'create index upload_token_age on upload_token (expires_at_s)',
  'alter table video add column upload_token_id text',
  'alter table video add column upload_reference text',
  `create index video_of_upload_token on video (upload_token_id)
    where upload_token_id is not null and status = 'PRE-Upload' and deleted_at_s is null`,

  // A video has several files while one is to replace another, and while those that were replaced are kept.
  `create table next_source (
    video_id text not null,
    number integer not null default 1,
    file text not null,
    file_name text not null default '',
    received_at_s integer not null default 0,
    timeline_start_s real not null default 0,
    size_bytes integer not null,
    sha256 blob not null,
    wrapped_key blob,
    iv blob not null,
    macs blob not null,
    primary key (video_id, number)
  ) without rowid`,
  `insert into next_source (video_id, file, file_name, size_bytes, sha256, wrapped_key, iv, macs)
    select video_id, file, coalesce((select file_name from video where id = video_id), ''), size_bytes, sha256, wrapped_key, iv, macs
    from source`,
  'drop table source',
  'alter table next_source rename to source',
  'create index source_by_sha256 on source (sha256)',
  'alter table file add column source_number integer',
  `update file set source_number = 1 where type = 'original'`,
  'alter table video add column source_number integer not null default 1',
  'alter table video add column last_number integer not null default 0',
  'alter table video add column timeline_start_s real not null default 0',
  'alter table generation add column source_number integer not null default 1',
  'alter table generation add column segment_bytes integer not null default 0',
  'alter table generation add column reason text',
  'alter table generation add column kept_until_s integer',
  'alter table generation add column kept_by text',
  'create index generation_kept on generation (kept_until_s) where kept_until_s is not null',
  // Small pictures of the whole video, in rows of `file`; videos from before get theirs, too.
  'alter table generation add column storyboard_made_at_s integer',
  'alter table generation add column storyboard_attempts integer not null default 0',
  `create index generation_without_storyboard on generation (finished_at_s)
    where storyboard_made_at_s is null and finished_at_s is not null`,
  'alter table file add column time_s real',
  `create table replacement (
    video_id text primary key,
    account_id text not null,
    kind text not null,
    source_number integer,
    file_name text not null default '',
    generation integer,
    start_s real,
    end_s real,
    problem text,
    requested_at_s integer not null
  ) without rowid`,
  'create index replacement_unplanned on replacement (requested_at_s) where generation is null and problem is null',
  'alter table upload_policy add column replaces integer not null default 0',
  'alter table import add column replaces integer not null default 0',

  // Encoders on other machines, and which of them encoded a chunk.
  `create table worker (
    id text primary key,
    name text not null unique,
    hash blob not null unique,
    trusted integer not null default 0,
    created_at_s integer not null,
    last_seen_at_s integer,
    encoder text,
    jobs integer not null default 1,
    kinds text not null default 'video,audio',
    speed real,
    drained integer not null default 0,
    suspended_reason text
  ) without rowid`,
  'alter table chunk add column worker_id text',
  'alter table chunk add column compared integer not null default 0',

  // Learning platforms (LTI 1.3): their registrations, courses, launches that were used, and grades on their way.
  `create table lti_platform (
    id text primary key,
    account_id text not null,
    name text not null,
    issuer text not null,
    client_id text not null,
    authorization_url text not null,
    token_url text not null,
    keys_url text not null,
    deployment_ids text not null,
    wrapped_private_key blob not null,
    public_key text not null,
    folder_id text,
    shows_names integer not null default 0,
    may_upload integer not null default 0,
    created_at_s integer not null,
    confirmed_at_s integer,
    last_launch_at_s integer,
    last_error text,
    last_error_at_s integer
  ) without rowid`,
  'create index lti_platform_of_account on lti_platform (account_id, created_at_s)',
  `create table lti_registration (
    hash blob primary key,
    account_id text not null,
    created_at_s integer not null,
    expires_at_s integer not null
  ) without rowid`,
  `create table lti_course (
    platform_id text not null,
    course_id text not null,
    account_id text not null,
    title text not null,
    folder_id text,
    last_launch_at_s integer not null,
    primary key (platform_id, course_id)
  ) without rowid`,
  `create table lti_nonce (
    hash blob primary key,
    expires_at_s integer not null
  ) without rowid`,
  'create index lti_nonce_age on lti_nonce (expires_at_s)',
  `create table lti_grade (
    id text primary key,
    platform_id text not null,
    account_id text not null,
    user_id text not null,
    video_id text not null,
    line_item text not null,
    wrapped_subject blob not null,
    completed_at_tenths integer not null,
    tenths integer not null,
    sent_tenths integer not null default 0,
    sent_at_ms integer not null default 0,
    launched_at_s integer not null,
    due_at_s integer,
    attempts integer not null default 0,
    problem text
  ) without rowid`,
  'create unique index lti_grade_of_viewer on lti_grade (account_id, user_id, video_id, platform_id, line_item)',
  'create index lti_grade_of_platform on lti_grade (platform_id)',
  'create index lti_grade_of_video on lti_grade (video_id)',
  'create index lti_grade_due on lti_grade (due_at_s) where due_at_s is not null',
  'create index lti_grade_age on lti_grade (launched_at_s)',
  // The servers that use this database.
  `create table server (
    id text primary key,
    run text not null,
    name text not null,
    version text not null,
    state text not null,
    started_at_s integer not null,
    beat_at_s real not null,
    knows text not null default '',
    backend text,
    drained integer not null default 0,
    sessions integer not null default 0,
    load real not null default 0,
    encoder text,
    encoder_slots integer not null default 0
  ) without rowid`,
]
