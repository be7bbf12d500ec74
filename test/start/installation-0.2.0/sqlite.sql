CREATE TABLE "kysely_migration" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null);
CREATE TABLE "kysely_migration_lock" ("id" varchar(255) not null primary key, "is_locked" integer default 0 not null);
CREATE TABLE setting (
    name text primary key,
    value text not null
  ) without rowid;
CREATE TABLE account (
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
  ) without rowid;
CREATE TABLE api_key (
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
  ) without rowid;
CREATE TABLE video (
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
  );
CREATE TABLE upload_policy (
    key text primary key,
    account_id text not null,
    video_id text not null,
    expires_at_s integer not null,
    spent_at_s integer
  ) without rowid;
CREATE TABLE source (
    video_id text primary key,
    file text not null,
    size_bytes integer not null,
    sha256 blob not null,
    wrapped_key blob,
    iv blob not null,
    macs blob not null
  ) without rowid;
CREATE TABLE generation (
    video_id text not null,
    number integer not null,
    wrapped_content_key blob,
    plan text not null,
    encoder text not null,
    created_at_s integer not null,
    posters_extracted_at_s integer,
    finished_at_s integer,
    primary key (video_id, number)
  ) without rowid;
CREATE TABLE rendition (
    video_id text not null,
    generation integer not null,
    id integer not null,
    kind text not null,
    init blob,
    primary key (video_id, generation, id)
  ) without rowid;
CREATE TABLE chunk (
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
  ) without rowid;
CREATE TABLE segment (
    video_id text not null,
    generation integer not null,
    rendition_id integer not null,
    number integer not null,
    file text not null,
    size_bytes integer not null,
    sha256 blob not null,
    damaged integer not null default 0,
    primary key (video_id, generation, rendition_id, number)
  ) without rowid;
CREATE TABLE otp (
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
  );
CREATE TABLE playback_session (
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
  ) without rowid;
CREATE TABLE watch_position (
    account_id text not null,
    user_id text not null,
    video_id text not null,
    position_s real not null,
    saved_at_s integer not null,
    primary key (account_id, user_id, video_id)
  ) without rowid;
CREATE TABLE redeem_attempt (
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
  );
CREATE TABLE tag (
    account_id text not null,
    name text not null,
    video_count integer not null,
    primary key (account_id, name)
  ) without rowid;
CREATE TABLE video_tag (
    account_id text not null,
    name text not null,
    position integer not null,
    ordinal integer not null,
    primary key (account_id, name, position)
  ) without rowid;
CREATE VIRTUAL TABLE video_text using fts5 (id, title, file_name, tokenize = 'trigram case_sensitive 1');
CREATE TABLE watermark_image (
    account_id text not null references account (id),
    url_hash blob not null,
    sealed blob,
    problem text,
    tried_at_s integer not null,
    primary key (account_id, url_hash)
  );
CREATE TABLE stream_slot (
    account_id text not null,
    user_id text not null,
    n integer not null,
    session_id text not null unique,
    taken_at_s integer not null,
    ends_at_s integer not null,
    primary key (account_id, user_id, n)
  ) without rowid;
CREATE TABLE strike (
    id integer primary key,
    scope text not null,
    subject text not null,
    budget text not null,
    at_s integer not null
  );
CREATE TABLE ban (
    scope text not null,
    subject text not null,
    budget text not null,
    began_at_s integer not null,
    ends_at_s integer not null,
    primary key (subject, scope, budget)
  ) without rowid;
CREATE TABLE audit_event (
    id integer primary key,
    at_s integer not null,
    account_id text,
    actor text not null,
    kind text not null,
    subject text not null,
    details text
  );
CREATE TABLE folder (
    account_id text not null references account (id),
    id text not null,
    parent_id text,
    name text not null,
    folded_name text not null,
    created_at_s integer not null,
    video_count integer not null default 0,
    folder_count integer not null default 0,
    primary key (account_id, id)
  ) without rowid;
CREATE TABLE import (
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
  ) without rowid;
CREATE TABLE webhook (
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
  ) without rowid;
CREATE TABLE delivery (
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
  ) without rowid;
CREATE TABLE file (
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
  );
CREATE TABLE video_usage (
    day text not null,
    account_id text not null,
    video_id text not null,
    user_id text not null,
    sent_bytes integer not null,
    view_count integer not null,
    primary key (day, account_id, video_id, user_id)
  ) without rowid;
CREATE TABLE view_total (
    video_id text not null primary key,
    view_count integer not null
  ) without rowid;
CREATE TABLE stored_response (
    account_id text not null,
    idempotency_key text not null,
    request_hash blob not null,
    wrapped_response blob not null,
    responded_at_s integer not null,
    primary key (account_id, idempotency_key)
  ) without rowid;
insert into kysely_migration ("name", "timestamp") values ('0001-tables', '2026-11-26T18:15:10.854Z');
insert into kysely_migration_lock ("id", "is_locked") values ('migration_lock', 0);
insert into setting ("name", "value") values ('master-key-id', '7f352ec9');
insert into setting ("name", "value") values ('playback-clock', '1795716928');
insert into account ("id", "name", "created_at_s", "may_upload", "may_import", "disabled", "page_max", "video_count", "change_number", "stream_limit", "stream_limit_policy", "limit_factor", "folder_count") values ('81830c97cf47b3a1e80ce352f1d01769', 'Second', 1795716928, 1, 1, 0, 40, 0, 0, 0, 'refuse', 1, 0);
insert into account ("id", "name", "created_at_s", "may_upload", "may_import", "disabled", "page_max", "video_count", "change_number", "stream_limit", "stream_limit_policy", "limit_factor", "folder_count") values ('f8b2bead6f6002b41eb3b314e38cfe70', 'owner', 1795716911, 1, 1, 0, 40, 1, 15, 0, 'refuse', 1, 1);
insert into api_key ("id", "account_id", "hash", "prefix", "name", "permissions", "created_at_s", "revoked_at_s", "expires_at_s", "last_used_at_s") values ('82f4727ae8786429f41cc52d636c7e74', 'f8b2bead6f6002b41eb3b314e38cfe70', X'36f3887113afca0403b3e39459838d5f53241e96c91183b896d8eba503367968', '8xJ1JE', 'first key', '["viewer","downloader","otpCreator","uploader","editor"]', 1795716911, NULL, NULL, 1795716928);
insert into api_key ("id", "account_id", "hash", "prefix", "name", "permissions", "created_at_s", "revoked_at_s", "expires_at_s", "last_used_at_s") values ('9d2c81fb4a370b9d261bb44bec04b0ab', '81830c97cf47b3a1e80ce352f1d01769', X'4c6e894d2b656118eec58b02a4e7f65a3adf7df9d60c1173c9a5eaf0dfcded8e', 'qmXEYT', 'first key', '["viewer","downloader","otpCreator","uploader","editor"]', 1795716928, NULL, NULL, NULL);
insert into video ("position", "id", "account_id", "title", "description", "file_name", "upload_time_s", "status", "status_reason", "duration_s", "aspect_ratio", "total_size_bytes", "public", "folder_id", "generation", "deleted_at_s", "has_source") values (1, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'f8b2bead6f6002b41eb3b314e38cfe70', 'Lesson 1: Größe', '', 'video.mp4', 1795716912, 'ready', NULL, 40, 1, 14702, 1, 'root', 1, NULL, 1);
insert into upload_policy ("key", "account_id", "video_id", "expires_at_s", "spent_at_s") values ('orig/29659ce2ec9cef04dc26c7c2a2aacb9f/bc0a5533d6ac0b4ecb681fb17ce56615', 'f8b2bead6f6002b41eb3b314e38cfe70', '29659ce2ec9cef04dc26c7c2a2aacb9f', 1795803311, 1795716911);
insert into source ("video_id", "file", "size_bytes", "sha256", "wrapped_key", "iv", "macs") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', '29659ce2ec9cef04dc26c7c2a2aacb9f/895b79cadd7c3ee5fdc6a3879571a6a4.sealed', 5440, X'7634125192e5d7bffb1ed315cac8bf9f020809788de9c57c16fb6ec73a7c7c13', X'7f352ec97aba654f250472cb634bc11cda034e5d01ade4bab7f9f125e209b62bda03129816d72c65a182a8a3199f090b', X'7439952712ba42d08da2e3ab49971510', X'aa2c7353be827eabbfb597b2b2c695aaba41db19cef0f96e1a2b7beebfabed7b');
insert into generation ("video_id", "number", "wrapped_content_key", "plan", "encoder", "created_at_s", "posters_extracted_at_s", "finished_at_s") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, X'7f352ec981a4e5b3be129cc26b73324fb28631b12d2d5345ff19e1db920a9f04090e7273c69e05fc4f9896844dcd3cf24d813dbf3604b5a50ece82adda2a297a', '{"videoTrack":{"rateNum":5,"rateDen":1,"timescale":90000,"frameCount":200,"heldFrames":0,"gopFrames":20,"interlaced":false,"storedPx":{"widthPx":64,"heightPx":64},"hdr":false,"aspectRatio":1,"renditions":[{"id":1,"widthPx":64,"heightPx":64,"maxBitrateBps":400000,"level":21}]},"durationS":40,"isSeekable":true}', 'ffmpeg 5.1.9-0+deb12u1, arguments 3', 1795716912, 1795716913, 1795716914);
insert into rendition ("video_id", "generation", "id", "kind", "init") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 'video', X'0000001c6674797069736f360000020069736f36636d66636d703431000003006d6f6f760000006c6d766864000000000000000000000000000003e8000000000001000001000000000000000000000000010000000000000000000000000000000100000000000000000000000000004000000000000000000000000000000000000000000000000000000000000002000002027472616b0000005c746b68640000000300000000000000000000000100000000000000000000000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000004000000000400000004000000000019e6d646961000000206d64686400000000000000000000000000015f900000000055c400000000002d68646c72000000000000000076696465000000000000000000000000566964656f48616e646c657200000001496d696e6600000014766d68640000000100000000000000000000002464696e660000001c6472656600000000000000010000000c75726c2000000001000001097374626c000000bd737473640000000000000001000000ad61766331000000000000000100000000000000000000000000000000004000400048000000480000000000000001154c61766335392e33372e313030206c696278323634000000000000000000000018ffff000000336176634301640015ffe1001867640015acd94426c044000003000400000300283c58b65801000468ef8fcbfdf8f800000000107061737000000001000000010000001462747274000186a000061a8000061a800000001073747473000000000000000000000010737473630000000000000000000000147374737a000000000000000000000000000000107374636f0000000000000000000000286d766578000000207472657800000000000000010000000100000000000000000000000000000062756474610000005a6d657461000000000000002168646c7200000000000000006d6469726170706c0000000000000000000000002d696c737400000025a9746f6f0000001d6461746100000001000000004c61766635392e32372e313030');
insert into chunk ("video_id", "generation", "kind", "first_segment", "segment_count", "decodes_from_start", "state", "attempt", "priority", "threads", "position") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'video', 0, 1, 0, 'done', 1, 0, 0, 1);
insert into chunk ("video_id", "generation", "kind", "first_segment", "segment_count", "decodes_from_start", "state", "attempt", "priority", "threads", "position") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'video', 1, 2, 0, 'done', 1, 1, 0, 1);
insert into chunk ("video_id", "generation", "kind", "first_segment", "segment_count", "decodes_from_start", "state", "attempt", "priority", "threads", "position") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'video', 3, 5, 0, 'done', 1, 3, 1, 1);
insert into chunk ("video_id", "generation", "kind", "first_segment", "segment_count", "decodes_from_start", "state", "attempt", "priority", "threads", "position") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'video', 8, 2, 0, 'done', 1, 8, 0, 1);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 0, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/0.73b63ba73bba.m4s', 1328, X'5470439dae0d4cb0ec0c168a8fa15d12227420e985b736bf35b78657a687d73e', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 1, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/1.18d4837cf04a.m4s', 1328, X'7bc46bfa4c14b07dd6358c88fcb2d77169bbb6dffb04b67dbb24417b87c99691', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 2, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/2.cf05a538bd64.m4s', 576, X'6a26e9ad1a1289f47813b98cbe624333430ec3c99b2084cdfb935f401dd0af31', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 3, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/3.3605d262a8d6.m4s', 1328, X'21d028c15ffd78c48a7b60baf02f1319e669bf3f2051a41172664bed18a43a49', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 4, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/4.5d98f07e2119.m4s', 576, X'7006c4cfc1265d6d9bf6b2a72274d4d2ccec310b7f2093c9749481f3a497a390', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 5, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/5.8d4f3c8835d3.m4s', 576, X'c780473516676adc0a795bd0a2cd7a02bac9b0c9045839c77f80a283515f319a', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 6, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/6.9569b037aa9d.m4s', 576, X'7139c4093e2522c829c030b92dfc05f4f9a1290bdfb48afaa95adbc5bed094ee', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 7, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/7.bb1e2b2dd501.m4s', 576, X'6b236894f5a88d05d18fd33ae89d5954488bbf8d6f380787f2230ea58ac9180f', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 8, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/8.ddd36c0bd218.m4s', 1328, X'8f196d020dd2d81dd4408ccd0537621d48efa9e35d45fcba9d34f2bbe2448192', 0);
insert into segment ("video_id", "generation", "rendition_id", "number", "file", "size_bytes", "sha256", "damaged") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 9, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/9.fe01728a1d03.m4s', 576, X'54c016733020b5198175937f132bd9269608b7ca09744986280e20de60878392', 0);
insert into otp ("hash", "account_id", "api_key_id", "video_id", "user_id", "watermarks", "forced_bitrate_kbps", "license_rules", "issued_at_s", "expires_at_s", "spent_at_s", "stream_limit", "reused_at_s", "rules") values (X'db6d89192681666fd620bfd63e3a053cadce072bafc899c66cb81d306fec7cf8', 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', '29659ce2ec9cef04dc26c7c2a2aacb9f', 'ann', '[]', NULL, NULL, 1795716928, 1795720528, NULL, NULL, NULL, NULL);
insert into otp ("hash", "account_id", "api_key_id", "video_id", "user_id", "watermarks", "forced_bitrate_kbps", "license_rules", "issued_at_s", "expires_at_s", "spent_at_s", "stream_limit", "reused_at_s", "rules") values (X'68f36941c7cb91e97b5cb0699d0736db56fd70eb4f64ab88025524b3dfcbeefe', 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', '29659ce2ec9cef04dc26c7c2a2aacb9f', 'bob', '[]', NULL, NULL, 1795716928, 1795738528, 1795716928, NULL, NULL, NULL);
insert into playback_session ("id", "otp_hash", "account_id", "video_id", "generation", "user_id", "public_key", "key_id", "pages", "watermarks", "forced_bitrate_kbps", "started_at_s", "ends_at_s", "last_seen_at_s", "left_at_s", "ended_at_s", "end_reason", "stream_limit", "rules", "viewed_at_s") values ('RZ_3s1Uz_IHMY-860ZR0SQ', X'68f36941c7cb91e97b5cb0699d0736db56fd70eb4f64ab88025524b3dfcbeefe', 'f8b2bead6f6002b41eb3b314e38cfe70', '29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'bob', X'048be81a2db05a6f56c44d07e6355e36270143c41c5cd8e903a5307eef1294d7afc22ad6ab336bcd7aad10239502f0315ad1a9316b775d2b54349d42df293db80b', X'e7ddeea7ebe378776439a40fe33cf8e4f56caa4a0b5218c92dff5dafb177eb7e', '["S4p1KYBiq3C7oZMzmgJqxg"]', '[]', NULL, 1795716928, 1795760128, 1795716928, NULL, NULL, NULL, NULL, NULL, 1795716929);
insert into watch_position ("account_id", "user_id", "video_id", "position_s", "saved_at_s") values ('f8b2bead6f6002b41eb3b314e38cfe70', 'ann', '29659ce2ec9cef04dc26c7c2a2aacb9f', 25.5, 1795716912);
insert into redeem_attempt ("id", "otp_hash", "at_s", "key_id", "address", "user_agent", "embedding_host", "outcome", "attempt_count", "rule") values (1, X'68f36941c7cb91e97b5cb0699d0736db56fd70eb4f64ab88025524b3dfcbeefe', 1795716928, X'e7ddeea7ebe378776439a40fe33cf8e4f56caa4a0b5218c92dff5dafb177eb7e', '127.0.0.1', 'node', '-', 'opened', 1, NULL);
insert into tag ("account_id", "name", "video_count") values ('f8b2bead6f6002b41eb3b314e38cfe70', 'physics', 1);
insert into tag ("account_id", "name", "video_count") values ('f8b2bead6f6002b41eb3b314e38cfe70', 'year 7', 1);
insert into video_tag ("account_id", "name", "position", "ordinal") values ('f8b2bead6f6002b41eb3b314e38cfe70', 'physics', 1, 1);
insert into video_tag ("account_id", "name", "position", "ordinal") values ('f8b2bead6f6002b41eb3b314e38cfe70', 'year 7', 1, 2);
insert into video_text ("rowid", "id", "title", "file_name") values (1, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'lesson 1: größe', 'video.mp4');
insert into audit_event ("id", "at_s", "account_id", "actor", "kind", "subject", "details") values (1, 1795716911, 'f8b2bead6f6002b41eb3b314e38cfe70', 'server', 'account:created', 'f8b2bead6f6002b41eb3b314e38cfe70', '{"name":"owner","mayUpload":true,"mayImport":true}');
insert into audit_event ("id", "at_s", "account_id", "actor", "kind", "subject", "details") values (2, 1795716928, 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', 'tags:added', '29659ce2ec9cef04dc26c7c2a2aacb9f', '{"tags":["physics","year 7"]}');
insert into audit_event ("id", "at_s", "account_id", "actor", "kind", "subject", "details") values (3, 1795716928, 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', 'folder:created', '855b6729badb341f9601a5bb7ec62d17', '{"name":"Course","parentId":"root"}');
insert into audit_event ("id", "at_s", "account_id", "actor", "kind", "subject", "details") values (4, 1795716928, 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', 'hook:created', '974f39a2c3b3b5d3cda16a29f7c7c05a', NULL);
insert into audit_event ("id", "at_s", "account_id", "actor", "kind", "subject", "details") values (5, 1795716928, '81830c97cf47b3a1e80ce352f1d01769', 'command-line', 'account:created', '81830c97cf47b3a1e80ce352f1d01769', '{"name":"Second","mayUpload":true,"mayImport":true}');
insert into folder ("account_id", "id", "parent_id", "name", "folded_name", "created_at_s", "video_count", "folder_count") values ('81830c97cf47b3a1e80ce352f1d01769', 'root', NULL, 'root', 'root', 1795716928, 0, 0);
insert into folder ("account_id", "id", "parent_id", "name", "folded_name", "created_at_s", "video_count", "folder_count") values ('f8b2bead6f6002b41eb3b314e38cfe70', '855b6729badb341f9601a5bb7ec62d17', 'root', 'Course', 'course', 1795716928, 0, 0);
insert into folder ("account_id", "id", "parent_id", "name", "folded_name", "created_at_s", "video_count", "folder_count") values ('f8b2bead6f6002b41eb3b314e38cfe70', 'root', NULL, 'root', 'root', 1795716911, 1, 1);
insert into webhook ("id", "account_id", "url", "event", "wrapped_secret", "previous_wrapped_secret", "previous_secret_expires_at_s", "created_at_s", "last_sequence", "disabled_reason", "consecutive_failures", "failing_since_s", "next_attempt_at_s", "replay_from_sequence") values ('974f39a2c3b3b5d3cda16a29f7c7c05a', 'f8b2bead6f6002b41eb3b314e38cfe70', 'https://hooks.example/reelgate', 'video:ready', X'7f352ec943d8c4591ed5265fef026c379764412cd9e8fb5df13e6ec3f2c917e011ff49e40090aefbe5f5c7c174ab540e96535006b8aec5c27f163bbbb907624148650a8864c1e61735b92801414dd314c8b6', NULL, NULL, 1795716928, 0, NULL, 0, NULL, 0, NULL);
insert into file ("id", "video_id", "type", "created_at_s", "enabled", "attachment_id", "generation", "rendition_id", "blob", "size_bytes", "width_px", "height_px", "token", "language", "wrapped_key", "iv", "macs", "attempts", "problem") values (1, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'original', 1795716912, 1, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL);
insert into file ("id", "video_id", "type", "created_at_s", "enabled", "attachment_id", "generation", "rendition_id", "blob", "size_bytes", "width_px", "height_px", "token", "language", "wrapped_key", "iv", "macs", "attempts", "problem") values (2, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'rendition', 1795716912, 1, NULL, 1, 1, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL);
insert into file ("id", "video_id", "type", "created_at_s", "enabled", "attachment_id", "generation", "rendition_id", "blob", "size_bytes", "width_px", "height_px", "token", "language", "wrapped_key", "iv", "macs", "attempts", "problem") values (3, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'poster', 1795716913, 1, 'drawn', 1, NULL, '29659ce2ec9cef04dc26c7c2a2aacb9f/rHRvjYovlhwknwZNO6EeWA.sealed', 247, 64, 64, 'rHRvjYovlhwknwZNO6EeWA', NULL, NULL, NULL, NULL, 0, NULL);
insert into file ("id", "video_id", "type", "created_at_s", "enabled", "attachment_id", "generation", "rendition_id", "blob", "size_bytes", "width_px", "height_px", "token", "language", "wrapped_key", "iv", "macs", "attempts", "problem") values (4, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'poster', 1795716913, 1, 'drawn', 1, NULL, '29659ce2ec9cef04dc26c7c2a2aacb9f/QioL7sT3pvYz8g9xmRVBAA.sealed', 247, 64, 64, 'QioL7sT3pvYz8g9xmRVBAA', NULL, NULL, NULL, NULL, 0, NULL);
insert into video_usage ("day", "account_id", "video_id", "user_id", "sent_bytes", "view_count") values ('2026-11-26', 'f8b2bead6f6002b41eb3b314e38cfe70', '29659ce2ec9cef04dc26c7c2a2aacb9f', 'bob', 0, 1);
insert into view_total ("video_id", "view_count") values ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1);
CREATE INDEX api_key_of_account on api_key (account_id);
CREATE INDEX video_in_order on video (account_id, position desc) where deleted_at_s is null;
CREATE INDEX video_deleted on video (deleted_at_s) where deleted_at_s is not null;
CREATE INDEX video_in_folder on video (account_id, folder_id, position desc) where deleted_at_s is null;
CREATE INDEX video_unplanned on video (position)
    where has_source = 1 and generation = 0 and status in ('Queued', 'Processing') and deleted_at_s is null;
CREATE INDEX upload_policy_of_video on upload_policy (video_id);
CREATE INDEX upload_policy_open on upload_policy (expires_at_s) where spent_at_s is null;
CREATE INDEX generation_unfinished on generation (video_id) where finished_at_s is null;
CREATE INDEX chunk_pending on chunk (priority, position) where state = 'pending';
CREATE INDEX chunk_running on chunk (state) where state = 'running';
CREATE INDEX otp_expiry on otp (expires_at_s);
CREATE INDEX otp_spent on otp (spent_at_s) where spent_at_s is not null;
CREATE INDEX playback_session_live on playback_session (video_id) where ended_at_s is null;
CREATE INDEX playback_session_end on playback_session (ends_at_s);
CREATE INDEX playback_session_ended on playback_session (ended_at_s) where ended_at_s is not null;
CREATE INDEX playback_session_of_account on playback_session (account_id) where ended_at_s is null;
CREATE INDEX watch_position_of_video on watch_position (video_id);
CREATE INDEX watch_position_age on watch_position (saved_at_s);
CREATE INDEX redeem_attempt_of_otp on redeem_attempt (otp_hash);
CREATE INDEX video_tag_of_video on video_tag (position, ordinal);
CREATE INDEX watermark_image_age on watermark_image (account_id, tried_at_s);
CREATE INDEX stream_slot_end on stream_slot (ends_at_s);
CREATE INDEX strike_of_subject on strike (subject, at_s);
CREATE INDEX strike_time on strike (at_s);
CREATE INDEX audit_event_of_account on audit_event (account_id, id);
CREATE INDEX audit_event_time on audit_event (at_s);
CREATE INDEX folder_in_order on folder (account_id, parent_id, folded_name, id);
CREATE INDEX folder_by_name on folder (account_id, folded_name, id);
CREATE INDEX import_turn on import (account_id, next_attempt_at_s, position, host);
CREATE INDEX webhook_of_account on webhook (account_id);
CREATE INDEX webhook_turn on webhook (next_attempt_at_s, id) where disabled_reason is null;
CREATE INDEX delivery_open on delivery (webhook_id, due_at_s, sequence) where finished_at_s is null;
CREATE INDEX delivery_finished on delivery (finished_at_s) where finished_at_s is not null;
CREATE INDEX delivery_failed on delivery (webhook_id, sequence) where state = 'failed';
CREATE INDEX file_of_video on file (video_id);
CREATE INDEX poster_shown on file (video_id) where type = 'poster' and enabled = 1;
CREATE UNIQUE INDEX mp4_of_video on file (video_id) where type = 'mp4';
CREATE INDEX mp4_unmade on file (id) where type = 'mp4' and blob is null;
CREATE INDEX stored_response_time on stored_response (responded_at_s);
CREATE TRIGGER video_tag_added after insert on video_tag begin
    insert into tag (account_id, name, video_count) values (new.account_id, new.name, 1)
      on conflict (account_id, name) do update set video_count = video_count + 1;
    update account set change_number = change_number + 1 where id = new.account_id;
  end;
CREATE TRIGGER video_tag_removed after delete on video_tag begin
    update tag set video_count = video_count - 1 where account_id = old.account_id and name = old.name;
    delete from tag where account_id = old.account_id and name = old.name and video_count = 0;
    update account set change_number = change_number + 1 where id = old.account_id;
  end;
CREATE TRIGGER video_added after insert on video begin
    insert into video_text (rowid, id, title, file_name) values (new.position, new.id, fold(new.title), fold(new.file_name));
    update account set change_number = change_number + 1 where id = new.account_id;
  end;
CREATE TRIGGER video_changed after update on video when new.deleted_at_s is null begin
    update account set change_number = change_number + 1 where id = new.account_id;
  end;
CREATE TRIGGER video_renamed after update of title, file_name on video when new.deleted_at_s is null begin
    update video_text set title = fold(new.title), file_name = fold(new.file_name) where rowid = new.position;
  end;
CREATE TRIGGER account_added after insert on account begin
    insert into folder (account_id, id, parent_id, name, folded_name, created_at_s)
      values (new.id, 'root', null, 'root', 'root', new.created_at_s);
  end;
CREATE TRIGGER folder_added after insert on folder when new.parent_id is not null begin
    update folder set folder_count = folder_count + 1 where account_id = new.account_id and id = new.parent_id;
    update account set folder_count = folder_count + 1 where id = new.account_id;
  end;
CREATE TRIGGER folder_moved after update of parent_id on folder when new.parent_id <> old.parent_id begin
    update folder set folder_count = folder_count - 1 where account_id = old.account_id and id = old.parent_id;
    update folder set folder_count = folder_count + 1 where account_id = new.account_id and id = new.parent_id;
  end;
CREATE TRIGGER folder_removed after delete on folder begin
    update folder set folder_count = folder_count - 1 where account_id = old.account_id and id = old.parent_id;
    update account set folder_count = folder_count - 1, change_number = change_number + 1 where id = old.account_id;
  end;
CREATE TRIGGER video_put_into_folder after insert on video begin
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
  end;
CREATE TRIGGER video_moved after update of folder_id on video when new.folder_id <> old.folder_id and new.deleted_at_s is null begin
    update folder set video_count = video_count - 1 where account_id = old.account_id and id = old.folder_id;
    update folder set video_count = video_count + 1 where account_id = new.account_id and id = new.folder_id;
  end;
CREATE TRIGGER video_taken_from_folder after update of deleted_at_s on video
    when new.deleted_at_s is not null and old.deleted_at_s is null begin
    update folder set video_count = video_count - 1 where account_id = old.account_id and id = old.folder_id;
  end;
CREATE TRIGGER source_added after insert on source begin
    insert into file (video_id, type, created_at_s)
      select new.video_id, 'original', upload_time_s from video where id = new.video_id;
  end;
CREATE TRIGGER rendition_added after insert on rendition begin
    insert into file (video_id, type, created_at_s, generation, rendition_id)
      select new.video_id, 'rendition', created_at_s, new.generation, new.id from generation
      where video_id = new.video_id and number = new.generation;
  end;
CREATE TRIGGER file_added after insert on file begin
    update video set total_size_bytes = total_size_bytes + new.size_bytes where id = new.video_id and deleted_at_s is null;
  end;
CREATE TRIGGER file_changed after update of enabled, size_bytes on file begin
    update video set total_size_bytes = total_size_bytes + new.size_bytes - old.size_bytes
      where id = new.video_id and deleted_at_s is null;
  end;
CREATE TRIGGER file_removed after delete on file begin
    update video set total_size_bytes = total_size_bytes - old.size_bytes where id = old.video_id and deleted_at_s is null;
  end;
CREATE TRIGGER source_arrived after insert on source begin
    update video set has_source = 1 where id = new.video_id and has_source = 0;
  end;
CREATE TRIGGER video_deleted after update of deleted_at_s on video when new.deleted_at_s is not null begin
    delete from video_tag where position = new.position;
    update account set change_number = change_number + 1 where id = new.account_id;
  end;
CREATE TRIGGER video_removed after delete on video begin
    delete from video_text where rowid = old.position;
  end;
