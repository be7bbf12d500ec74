CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE FUNCTION public.account_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin insert into folder (account_id, id, parent_id, name, folded_name, created_at_s)
      values (new.id, 'root', null, 'root', 'root', new.created_at_s); return null; end $$;
CREATE FUNCTION public.file_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin update video set total_size_bytes = total_size_bytes + new.size_bytes where id = new.video_id and deleted_at_s is null; return null; end $$;
CREATE FUNCTION public.file_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin update video set total_size_bytes = total_size_bytes + new.size_bytes - old.size_bytes
      where id = new.video_id and deleted_at_s is null; return null; end $$;
CREATE FUNCTION public.file_removed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin update video set total_size_bytes = total_size_bytes - old.size_bytes where id = old.video_id and deleted_at_s is null; return null; end $$;
CREATE FUNCTION public.fold(text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN NORMALIZE(translate(lower((NORMALIZE($1, NFC) COLLATE "und-x-icu")), 'ς'::text, 'σ'::text), NFC);
CREATE FUNCTION public.folder_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin for part in select account_id, id, sum(n) as n from (select account_id, parent_id, 1 from added) as each (account_id, id, n)
      group by account_id, id having sum(n) <> 0 order by account_id, id loop update folder set folder_count = folder_count + part.n where account_id = part.account_id and id = part.id; end loop;
    for part in select id, sum(n) as n from (select account_id, 1 from added where parent_id is not null) as each (id, n) group by id order by id loop update account set folder_count = folder_count + part.n where id = part.id; end loop; return null; end $$;
CREATE FUNCTION public.folder_moved() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin for part in select account_id, id, sum(n) as n from (select account_id, parent_id, -1 from was union all select account_id, parent_id, 1 from became) as each (account_id, id, n)
      group by account_id, id having sum(n) <> 0 order by account_id, id loop update folder set folder_count = folder_count + part.n where account_id = part.account_id and id = part.id; end loop; return null; end $$;
CREATE FUNCTION public.folder_removed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin for part in select account_id, id, sum(n) as n from (select account_id, parent_id, -1 from removed) as each (account_id, id, n)
      group by account_id, id having sum(n) <> 0 order by account_id, id loop update folder set folder_count = folder_count + part.n where account_id = part.account_id and id = part.id; end loop;
    for part in select id, sum(n) as n from (select account_id, -1 from removed) as each (id, n) group by id order by id loop update account set folder_count = folder_count + part.n where id = part.id; end loop;
    update account set change_number = change_number + 1 where id = any (array (select account_id from removed)); return null; end $$;
CREATE FUNCTION public.rendition_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin insert into file (video_id, type, created_at_s, generation, rendition_id)
      select new.video_id, 'rendition', created_at_s, new.generation, new.id from generation
      where video_id = new.video_id and number = new.generation; return null; end $$;
CREATE FUNCTION public.source_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin insert into file (video_id, type, created_at_s)
      select new.video_id, 'original', upload_time_s from video where id = new.video_id;
    update video set has_source = 1 where id = new.video_id and has_source = 0; return null; end $$;
CREATE FUNCTION public.video_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin insert into video_text (rowid, account_id, id, title, file_name)
      select position, account_id, id, fold(title), fold(file_name) from added;
    for part in select account_id, id, sum(n) as n from (select account_id, folder_id, 1 from added) as each (account_id, id, n)
      group by account_id, id having sum(n) <> 0 order by account_id, id loop update folder set video_count = video_count + part.n where account_id = part.account_id and id = part.id; end loop;
    update account set change_number = change_number + 1 where id = any (array (select account_id from added)); return null; end $$;
CREATE FUNCTION public.video_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin update account set change_number = change_number + 1 where id = any (array (select account_id from was where deleted_at_s is null));
    if found and exists (select account_id, folder_id from was where deleted_at_s is null
      except all select account_id, folder_id from became where deleted_at_s is null) then
      for part in select account_id, id, sum(n) as n from (select account_id, folder_id, -1 from was where deleted_at_s is null
        union all select account_id, folder_id, 1 from became where deleted_at_s is null) as each (account_id, id, n)
      group by account_id, id having sum(n) <> 0 order by account_id, id loop update folder set video_count = video_count + part.n where account_id = part.account_id and id = part.id; end loop;
      delete from video_tag where position = any (array (select position from became where deleted_at_s is not null));
      delete from video_text where rowid = any (array (select position from became where deleted_at_s is not null));
    end if; return null; end $$;
CREATE FUNCTION public.video_renamed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin update video_text set title = fold(new.title), file_name = fold(new.file_name) where rowid = new.position; return null; end $$;
CREATE FUNCTION public.video_tag_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin insert into tag (account_id, name, video_count)
      select account_id, name, count(*) from added group by account_id, name order by account_id, name
      on conflict (account_id, name) do update set video_count = tag.video_count + excluded.video_count;
    update account set change_number = change_number + 1 where id = any (array (select account_id from added)); return null; end $$;
CREATE FUNCTION public.video_tag_removed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ declare part record; begin for part in select account_id, name, count(*) as n from removed group by account_id, name order by account_id, name loop update tag set video_count = video_count - part.n where account_id = part.account_id and name = part.name;
      delete from tag where account_id = part.account_id and name = part.name and video_count = 0; end loop;
    update account set change_number = change_number + 1 where id = any (array (select account_id from removed)); return null; end $$;
CREATE TABLE public.account (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    created_at_s bigint NOT NULL,
    may_upload bigint NOT NULL,
    may_import bigint NOT NULL,
    disabled bigint DEFAULT 0 NOT NULL,
    page_max bigint DEFAULT 40 NOT NULL,
    limit_factor bigint DEFAULT 1 NOT NULL,
    stream_limit bigint DEFAULT 0 NOT NULL,
    stream_limit_policy text DEFAULT 'refuse'::text NOT NULL COLLATE pg_catalog."C",
    video_count bigint DEFAULT 0 NOT NULL,
    folder_count bigint DEFAULT 0 NOT NULL,
    change_number bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.api_key (
    id text NOT NULL COLLATE pg_catalog."C",
    account_id text NOT NULL COLLATE pg_catalog."C",
    hash bytea NOT NULL,
    prefix text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    permissions text NOT NULL COLLATE pg_catalog."C",
    created_at_s bigint NOT NULL,
    revoked_at_s bigint,
    expires_at_s bigint,
    last_used_at_s bigint
);
CREATE TABLE public.audit_event (
    id bigint NOT NULL,
    at_s bigint NOT NULL,
    account_id text COLLATE pg_catalog."C",
    actor text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    details text COLLATE pg_catalog."C"
);
ALTER TABLE public.audit_event ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.audit_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.ban (
    scope text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    budget text NOT NULL COLLATE pg_catalog."C",
    began_at_s bigint NOT NULL,
    ends_at_s bigint NOT NULL
);
CREATE TABLE public.chunk (
    video_id text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    first_segment bigint NOT NULL,
    segment_count bigint NOT NULL,
    decodes_from_start bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    attempt bigint DEFAULT 0 NOT NULL,
    priority bigint NOT NULL,
    "position" bigint DEFAULT 0 NOT NULL,
    threads bigint DEFAULT 1 NOT NULL
);
CREATE TABLE public.delivery (
    webhook_id text NOT NULL COLLATE pg_catalog."C",
    sequence bigint NOT NULL,
    event text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL COLLATE pg_catalog."C",
    time_ms bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    attempts bigint DEFAULT 0 NOT NULL,
    due_at_s bigint DEFAULT 0 NOT NULL,
    tried_at_s bigint,
    status bigint,
    problem text COLLATE pg_catalog."C",
    finished_at_s bigint
);
CREATE TABLE public.file (
    id bigint NOT NULL,
    video_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    created_at_s bigint NOT NULL,
    enabled bigint DEFAULT 1 NOT NULL,
    attachment_id text COLLATE pg_catalog."C",
    generation bigint,
    rendition_id bigint,
    blob text COLLATE pg_catalog."C",
    size_bytes bigint DEFAULT 0 NOT NULL,
    width_px bigint,
    height_px bigint,
    token text COLLATE pg_catalog."C",
    language text COLLATE pg_catalog."C",
    wrapped_key bytea,
    iv bytea,
    macs bytea,
    attempts bigint DEFAULT 0 NOT NULL,
    problem text COLLATE pg_catalog."C"
);
ALTER TABLE public.file ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.file_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.folder (
    account_id text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    parent_id text COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    folded_name text NOT NULL COLLATE pg_catalog."C",
    created_at_s bigint NOT NULL,
    video_count bigint DEFAULT 0 NOT NULL,
    folder_count bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.generation (
    video_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    wrapped_content_key bytea,
    plan text NOT NULL COLLATE pg_catalog."C",
    encoder text NOT NULL COLLATE pg_catalog."C",
    created_at_s bigint NOT NULL,
    posters_extracted_at_s bigint,
    finished_at_s bigint
);
CREATE TABLE public.import (
    video_id text NOT NULL COLLATE pg_catalog."C",
    account_id text NOT NULL COLLATE pg_catalog."C",
    "position" bigint DEFAULT 0 NOT NULL,
    host text NOT NULL COLLATE pg_catalog."C",
    wrapped_url bytea NOT NULL,
    file text COLLATE pg_catalog."C",
    wrapped_key bytea,
    iv bytea,
    etag text COLLATE pg_catalog."C",
    received_bytes bigint DEFAULT 0 NOT NULL,
    received_sha256 bytea,
    max_received_bytes bigint DEFAULT 0 NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    next_attempt_at_s bigint NOT NULL,
    ends_at_s bigint
);
CREATE TABLE public.kysely_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.kysely_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.otp (
    hash bytea NOT NULL,
    account_id text NOT NULL COLLATE pg_catalog."C",
    api_key_id text NOT NULL COLLATE pg_catalog."C",
    video_id text NOT NULL COLLATE pg_catalog."C",
    user_id text COLLATE pg_catalog."C",
    watermarks text NOT NULL COLLATE pg_catalog."C",
    forced_bitrate_kbps bigint,
    license_rules text COLLATE pg_catalog."C",
    issued_at_s bigint NOT NULL,
    expires_at_s bigint NOT NULL,
    spent_at_s bigint,
    reused_at_s bigint,
    stream_limit bigint,
    rules text COLLATE pg_catalog."C"
);
CREATE TABLE public.playback_session (
    id text NOT NULL COLLATE pg_catalog."C",
    otp_hash bytea NOT NULL,
    account_id text NOT NULL COLLATE pg_catalog."C",
    video_id text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    user_id text COLLATE pg_catalog."C",
    public_key bytea NOT NULL,
    key_id bytea NOT NULL,
    pages text NOT NULL COLLATE pg_catalog."C",
    watermarks text NOT NULL COLLATE pg_catalog."C",
    forced_bitrate_kbps bigint,
    started_at_s bigint NOT NULL,
    ends_at_s bigint NOT NULL,
    last_seen_at_s bigint NOT NULL,
    left_at_s bigint,
    ended_at_s bigint,
    end_reason text COLLATE pg_catalog."C",
    stream_limit bigint,
    rules text COLLATE pg_catalog."C",
    viewed_at_s bigint
)
WITH (fillfactor='80');
CREATE TABLE public.redeem_attempt (
    id bigint NOT NULL,
    otp_hash bytea NOT NULL,
    at_s bigint NOT NULL,
    key_id bytea NOT NULL,
    address text NOT NULL COLLATE pg_catalog."C",
    user_agent text NOT NULL COLLATE pg_catalog."C",
    embedding_host text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL COLLATE pg_catalog."C",
    attempt_count bigint DEFAULT 1 NOT NULL,
    rule text COLLATE pg_catalog."C"
);
ALTER TABLE public.redeem_attempt ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.redeem_attempt_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.rendition (
    video_id text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    id bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    init bytea
);
CREATE TABLE public.segment (
    video_id text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    rendition_id bigint NOT NULL,
    number bigint NOT NULL,
    file text NOT NULL COLLATE pg_catalog."C",
    size_bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    damaged bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.setting (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.source (
    video_id text NOT NULL COLLATE pg_catalog."C",
    file text NOT NULL COLLATE pg_catalog."C",
    size_bytes bigint NOT NULL,
    sha256 bytea NOT NULL,
    wrapped_key bytea,
    iv bytea NOT NULL,
    macs bytea NOT NULL
);
CREATE TABLE public.stored_response (
    account_id text NOT NULL COLLATE pg_catalog."C",
    idempotency_key text NOT NULL COLLATE pg_catalog."C",
    request_hash bytea NOT NULL,
    wrapped_response bytea NOT NULL,
    responded_at_s bigint NOT NULL
);
CREATE TABLE public.stream_slot (
    account_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    n bigint NOT NULL,
    session_id text NOT NULL COLLATE pg_catalog."C",
    taken_at_s bigint NOT NULL,
    ends_at_s bigint NOT NULL
)
WITH (fillfactor='80');
CREATE TABLE public.strike (
    id bigint NOT NULL,
    scope text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    budget text NOT NULL COLLATE pg_catalog."C",
    at_s bigint NOT NULL
);
ALTER TABLE public.strike ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.strike_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.tag (
    account_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    video_count bigint NOT NULL
);
CREATE TABLE public.upload_policy (
    key text NOT NULL COLLATE pg_catalog."C",
    account_id text NOT NULL COLLATE pg_catalog."C",
    video_id text NOT NULL COLLATE pg_catalog."C",
    expires_at_s bigint NOT NULL,
    spent_at_s bigint
);
CREATE TABLE public.video (
    "position" bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    account_id text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL COLLATE pg_catalog."C",
    file_name text NOT NULL COLLATE pg_catalog."C",
    upload_time_s bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    status_reason text COLLATE pg_catalog."C",
    duration_s double precision DEFAULT 0 NOT NULL,
    aspect_ratio double precision,
    total_size_bytes bigint DEFAULT 0 NOT NULL,
    public bigint DEFAULT 1 NOT NULL,
    folder_id text DEFAULT 'root'::text NOT NULL COLLATE pg_catalog."C",
    generation bigint DEFAULT 0 NOT NULL,
    has_source bigint DEFAULT 0 NOT NULL,
    deleted_at_s bigint
)
WITH (fillfactor='80');
ALTER TABLE public.video ALTER COLUMN "position" ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.video_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.video_tag (
    account_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    ordinal bigint NOT NULL
);
CREATE TABLE public.video_text (
    rowid bigint NOT NULL,
    account_id text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL COLLATE pg_catalog."C",
    file_name text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.video_usage (
    day text NOT NULL COLLATE pg_catalog."C",
    account_id text NOT NULL COLLATE pg_catalog."C",
    video_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    sent_bytes bigint NOT NULL,
    view_count bigint NOT NULL
);
CREATE TABLE public.view_total (
    video_id text NOT NULL COLLATE pg_catalog."C",
    view_count bigint NOT NULL
);
CREATE TABLE public.watch_position (
    account_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    video_id text NOT NULL COLLATE pg_catalog."C",
    position_s double precision NOT NULL,
    saved_at_s bigint NOT NULL
)
WITH (fillfactor='80');
CREATE TABLE public.watermark_image (
    account_id text NOT NULL COLLATE pg_catalog."C",
    url_hash bytea NOT NULL,
    sealed bytea,
    problem text COLLATE pg_catalog."C",
    tried_at_s bigint NOT NULL
);
CREATE TABLE public.webhook (
    id text NOT NULL COLLATE pg_catalog."C",
    account_id text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL COLLATE pg_catalog."C",
    event text COLLATE pg_catalog."C",
    wrapped_secret bytea NOT NULL,
    previous_wrapped_secret bytea,
    previous_secret_expires_at_s bigint,
    created_at_s bigint NOT NULL,
    last_sequence bigint DEFAULT 0 NOT NULL,
    disabled_reason text COLLATE pg_catalog."C",
    consecutive_failures bigint DEFAULT 0 NOT NULL,
    failing_since_s bigint,
    next_attempt_at_s bigint DEFAULT 0 NOT NULL,
    replay_from_sequence bigint
)
WITH (fillfactor='50');
INSERT INTO public.account VALUES ('81830c97cf47b3a1e80ce352f1d01769', 'Second', 1795716928, 1, 1, 0, 40, 1, 0, 'refuse', 0, 0, 0);
INSERT INTO public.account VALUES ('f8b2bead6f6002b41eb3b314e38cfe70', 'owner', 1795716911, 1, 1, 0, 40, 1, 0, 'refuse', 1, 1, 15);
INSERT INTO public.api_key VALUES ('82f4727ae8786429f41cc52d636c7e74', 'f8b2bead6f6002b41eb3b314e38cfe70', '\x36f3887113afca0403b3e39459838d5f53241e96c91183b896d8eba503367968', '8xJ1JE', 'first key', '["viewer","downloader","otpCreator","uploader","editor"]', 1795716911, NULL, NULL, 1795716928);
INSERT INTO public.api_key VALUES ('9d2c81fb4a370b9d261bb44bec04b0ab', '81830c97cf47b3a1e80ce352f1d01769', '\x4c6e894d2b656118eec58b02a4e7f65a3adf7df9d60c1173c9a5eaf0dfcded8e', 'qmXEYT', 'first key', '["viewer","downloader","otpCreator","uploader","editor"]', 1795716928, NULL, NULL, NULL);
INSERT INTO public.audit_event VALUES (1, 1795716911, 'f8b2bead6f6002b41eb3b314e38cfe70', 'server', 'account:created', 'f8b2bead6f6002b41eb3b314e38cfe70', '{"name":"owner","mayUpload":true,"mayImport":true}');
INSERT INTO public.audit_event VALUES (2, 1795716928, 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', 'tags:added', '29659ce2ec9cef04dc26c7c2a2aacb9f', '{"tags":["physics","year 7"]}');
INSERT INTO public.audit_event VALUES (3, 1795716928, 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', 'folder:created', '855b6729badb341f9601a5bb7ec62d17', '{"name":"Course","parentId":"root"}');
INSERT INTO public.audit_event VALUES (4, 1795716928, 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', 'hook:created', '974f39a2c3b3b5d3cda16a29f7c7c05a', NULL);
INSERT INTO public.audit_event VALUES (5, 1795716928, '81830c97cf47b3a1e80ce352f1d01769', 'command-line', 'account:created', '81830c97cf47b3a1e80ce352f1d01769', '{"name":"Second","mayUpload":true,"mayImport":true}');
INSERT INTO public.chunk VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'video', 0, 1, 0, 'done', 1, 0, 1, 0);
INSERT INTO public.chunk VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'video', 1, 2, 0, 'done', 1, 1, 1, 0);
INSERT INTO public.chunk VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'video', 3, 5, 0, 'done', 1, 3, 1, 1);
INSERT INTO public.chunk VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'video', 8, 2, 0, 'done', 1, 8, 1, 0);
INSERT INTO public.file VALUES (1, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'original', 1795716912, 1, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.file VALUES (2, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'rendition', 1795716912, 1, NULL, 1, 1, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.file VALUES (3, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'poster', 1795716913, 1, 'drawn', 1, NULL, '29659ce2ec9cef04dc26c7c2a2aacb9f/rHRvjYovlhwknwZNO6EeWA.sealed', 247, 64, 64, 'rHRvjYovlhwknwZNO6EeWA', NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.file VALUES (4, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'poster', 1795716913, 1, 'drawn', 1, NULL, '29659ce2ec9cef04dc26c7c2a2aacb9f/QioL7sT3pvYz8g9xmRVBAA.sealed', 247, 64, 64, 'QioL7sT3pvYz8g9xmRVBAA', NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.folder VALUES ('81830c97cf47b3a1e80ce352f1d01769', 'root', NULL, 'root', 'root', 1795716928, 0, 0);
INSERT INTO public.folder VALUES ('f8b2bead6f6002b41eb3b314e38cfe70', '855b6729badb341f9601a5bb7ec62d17', 'root', 'Course', 'course', 1795716928, 0, 0);
INSERT INTO public.folder VALUES ('f8b2bead6f6002b41eb3b314e38cfe70', 'root', NULL, 'root', 'root', 1795716911, 1, 1);
INSERT INTO public.generation VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, '\x7f352ec981a4e5b3be129cc26b73324fb28631b12d2d5345ff19e1db920a9f04090e7273c69e05fc4f9896844dcd3cf24d813dbf3604b5a50ece82adda2a297a', '{"videoTrack":{"rateNum":5,"rateDen":1,"timescale":90000,"frameCount":200,"heldFrames":0,"gopFrames":20,"interlaced":false,"storedPx":{"widthPx":64,"heightPx":64},"hdr":false,"aspectRatio":1,"renditions":[{"id":1,"widthPx":64,"heightPx":64,"maxBitrateBps":400000,"level":21}]},"durationS":40,"isSeekable":true}', 'ffmpeg 5.1.9-0+deb12u1, arguments 3', 1795716912, 1795716913, 1795716914);
INSERT INTO public.kysely_migration VALUES ('0001-tables', '2026-11-26T18:15:42.195Z');
INSERT INTO public.kysely_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.otp VALUES ('\x68f36941c7cb91e97b5cb0699d0736db56fd70eb4f64ab88025524b3dfcbeefe', 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', '29659ce2ec9cef04dc26c7c2a2aacb9f', 'bob', '[]', NULL, NULL, 1795716928, 1795738528, 1795716928, NULL, NULL, NULL);
INSERT INTO public.otp VALUES ('\xdb6d89192681666fd620bfd63e3a053cadce072bafc899c66cb81d306fec7cf8', 'f8b2bead6f6002b41eb3b314e38cfe70', '82f4727ae8786429f41cc52d636c7e74', '29659ce2ec9cef04dc26c7c2a2aacb9f', 'ann', '[]', NULL, NULL, 1795716928, 1795720528, NULL, NULL, NULL, NULL);
INSERT INTO public.playback_session VALUES ('RZ_3s1Uz_IHMY-860ZR0SQ', '\x68f36941c7cb91e97b5cb0699d0736db56fd70eb4f64ab88025524b3dfcbeefe', 'f8b2bead6f6002b41eb3b314e38cfe70', '29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 'bob', '\x048be81a2db05a6f56c44d07e6355e36270143c41c5cd8e903a5307eef1294d7afc22ad6ab336bcd7aad10239502f0315ad1a9316b775d2b54349d42df293db80b', '\xe7ddeea7ebe378776439a40fe33cf8e4f56caa4a0b5218c92dff5dafb177eb7e', '["S4p1KYBiq3C7oZMzmgJqxg"]', '[]', NULL, 1795716928, 1795760128, 1795716928, NULL, NULL, NULL, NULL, NULL, 1795716929);
INSERT INTO public.redeem_attempt VALUES (1, '\x68f36941c7cb91e97b5cb0699d0736db56fd70eb4f64ab88025524b3dfcbeefe', 1795716928, '\xe7ddeea7ebe378776439a40fe33cf8e4f56caa4a0b5218c92dff5dafb177eb7e', '127.0.0.1', 'node', '-', 'opened', 1, NULL);
INSERT INTO public.rendition VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 'video', '\x0000001c6674797069736f360000020069736f36636d66636d703431000003006d6f6f760000006c6d766864000000000000000000000000000003e8000000000001000001000000000000000000000000010000000000000000000000000000000100000000000000000000000000004000000000000000000000000000000000000000000000000000000000000002000002027472616b0000005c746b68640000000300000000000000000000000100000000000000000000000000000000000000000000000000010000000000000000000000000000000100000000000000000000000000004000000000400000004000000000019e6d646961000000206d64686400000000000000000000000000015f900000000055c400000000002d68646c72000000000000000076696465000000000000000000000000566964656f48616e646c657200000001496d696e6600000014766d68640000000100000000000000000000002464696e660000001c6472656600000000000000010000000c75726c2000000001000001097374626c000000bd737473640000000000000001000000ad61766331000000000000000100000000000000000000000000000000004000400048000000480000000000000001154c61766335392e33372e313030206c696278323634000000000000000000000018ffff000000336176634301640015ffe1001867640015acd94426c044000003000400000300283c58b65801000468ef8fcbfdf8f800000000107061737000000001000000010000001462747274000186a000061a8000061a800000001073747473000000000000000000000010737473630000000000000000000000147374737a000000000000000000000000000000107374636f0000000000000000000000286d766578000000207472657800000000000000010000000100000000000000000000000000000062756474610000005a6d657461000000000000002168646c7200000000000000006d6469726170706c0000000000000000000000002d696c737400000025a9746f6f0000001d6461746100000001000000004c61766635392e32372e313030');
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 0, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/0.73b63ba73bba.m4s', 1328, '\x5470439dae0d4cb0ec0c168a8fa15d12227420e985b736bf35b78657a687d73e', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 1, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/1.18d4837cf04a.m4s', 1328, '\x7bc46bfa4c14b07dd6358c88fcb2d77169bbb6dffb04b67dbb24417b87c99691', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 2, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/2.cf05a538bd64.m4s', 576, '\x6a26e9ad1a1289f47813b98cbe624333430ec3c99b2084cdfb935f401dd0af31', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 3, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/3.3605d262a8d6.m4s', 1328, '\x21d028c15ffd78c48a7b60baf02f1319e669bf3f2051a41172664bed18a43a49', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 4, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/4.5d98f07e2119.m4s', 576, '\x7006c4cfc1265d6d9bf6b2a72274d4d2ccec310b7f2093c9749481f3a497a390', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 5, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/5.8d4f3c8835d3.m4s', 576, '\xc780473516676adc0a795bd0a2cd7a02bac9b0c9045839c77f80a283515f319a', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 6, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/6.9569b037aa9d.m4s', 576, '\x7139c4093e2522c829c030b92dfc05f4f9a1290bdfb48afaa95adbc5bed094ee', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 7, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/7.bb1e2b2dd501.m4s', 576, '\x6b236894f5a88d05d18fd33ae89d5954488bbf8d6f380787f2230ea58ac9180f', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 8, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/8.ddd36c0bd218.m4s', 1328, '\x8f196d020dd2d81dd4408ccd0537621d48efa9e35d45fcba9d34f2bbe2448192', 0);
INSERT INTO public.segment VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1, 1, 9, '29659ce2ec9cef04dc26c7c2a2aacb9f/1/1/9.fe01728a1d03.m4s', 576, '\x54c016733020b5198175937f132bd9269608b7ca09744986280e20de60878392', 0);
INSERT INTO public.setting VALUES ('master-key-id', '7f352ec9');
INSERT INTO public.setting VALUES ('playback-clock', '1795716929');
INSERT INTO public.source VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', '29659ce2ec9cef04dc26c7c2a2aacb9f/895b79cadd7c3ee5fdc6a3879571a6a4.sealed', 5440, '\x7634125192e5d7bffb1ed315cac8bf9f020809788de9c57c16fb6ec73a7c7c13', '\x7f352ec97aba654f250472cb634bc11cda034e5d01ade4bab7f9f125e209b62bda03129816d72c65a182a8a3199f090b', '\x7439952712ba42d08da2e3ab49971510', '\xaa2c7353be827eabbfb597b2b2c695aaba41db19cef0f96e1a2b7beebfabed7b');
INSERT INTO public.tag VALUES ('f8b2bead6f6002b41eb3b314e38cfe70', 'physics', 1);
INSERT INTO public.tag VALUES ('f8b2bead6f6002b41eb3b314e38cfe70', 'year 7', 1);
INSERT INTO public.upload_policy VALUES ('orig/29659ce2ec9cef04dc26c7c2a2aacb9f/bc0a5533d6ac0b4ecb681fb17ce56615', 'f8b2bead6f6002b41eb3b314e38cfe70', '29659ce2ec9cef04dc26c7c2a2aacb9f', 1795803311, 1795716911);
INSERT INTO public.video VALUES (1, '29659ce2ec9cef04dc26c7c2a2aacb9f', 'f8b2bead6f6002b41eb3b314e38cfe70', 'Lesson 1: Größe', '', 'video.mp4', 1795716912, 'ready', NULL, 40, 1, 14702, 1, 'root', 1, 1, NULL);
INSERT INTO public.video_tag VALUES ('f8b2bead6f6002b41eb3b314e38cfe70', 'physics', 1, 1);
INSERT INTO public.video_tag VALUES ('f8b2bead6f6002b41eb3b314e38cfe70', 'year 7', 1, 2);
INSERT INTO public.video_text VALUES (1, 'f8b2bead6f6002b41eb3b314e38cfe70', '29659ce2ec9cef04dc26c7c2a2aacb9f', 'lesson 1: größe', 'video.mp4');
INSERT INTO public.video_usage VALUES ('2026-11-26', 'f8b2bead6f6002b41eb3b314e38cfe70', '29659ce2ec9cef04dc26c7c2a2aacb9f', 'bob', 0, 1);
INSERT INTO public.view_total VALUES ('29659ce2ec9cef04dc26c7c2a2aacb9f', 1);
INSERT INTO public.watch_position VALUES ('f8b2bead6f6002b41eb3b314e38cfe70', 'ann', '29659ce2ec9cef04dc26c7c2a2aacb9f', 25.5, 1795716912);
INSERT INTO public.webhook VALUES ('974f39a2c3b3b5d3cda16a29f7c7c05a', 'f8b2bead6f6002b41eb3b314e38cfe70', 'https://hooks.example/reelgate', 'video:ready', '\x7f352ec943d8c4591ed5265fef026c379764412cd9e8fb5df13e6ec3f2c917e011ff49e40090aefbe5f5c7c174ab540e96535006b8aec5c27f163bbbb907624148650a8864c1e61735b92801414dd314c8b6', NULL, NULL, 1795716928, 0, NULL, 0, NULL, 0, NULL);
SELECT pg_catalog.setval('public.audit_event_id_seq', 5, true);
SELECT pg_catalog.setval('public.file_id_seq', 4, true);
SELECT pg_catalog.setval('public.redeem_attempt_id_seq', 1, true);
SELECT pg_catalog.setval('public.strike_id_seq', 1, false);
SELECT pg_catalog.setval('public.video_position_seq', 1, true);
ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_event
    ADD CONSTRAINT audit_event_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.ban
    ADD CONSTRAINT ban_pkey PRIMARY KEY (subject, scope, budget);
ALTER TABLE ONLY public.chunk
    ADD CONSTRAINT chunk_pkey PRIMARY KEY (video_id, generation, kind, first_segment);
ALTER TABLE ONLY public.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (webhook_id, sequence);
ALTER TABLE ONLY public.file
    ADD CONSTRAINT file_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.file
    ADD CONSTRAINT file_token_key UNIQUE (token);
ALTER TABLE ONLY public.folder
    ADD CONSTRAINT folder_pkey PRIMARY KEY (account_id, id);
ALTER TABLE ONLY public.generation
    ADD CONSTRAINT generation_pkey PRIMARY KEY (video_id, number);
ALTER TABLE ONLY public.import
    ADD CONSTRAINT import_pkey PRIMARY KEY (video_id);
ALTER TABLE ONLY public.kysely_migration_lock
    ADD CONSTRAINT kysely_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kysely_migration
    ADD CONSTRAINT kysely_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.otp
    ADD CONSTRAINT otp_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.playback_session
    ADD CONSTRAINT playback_session_otp_hash_key UNIQUE (otp_hash);
ALTER TABLE ONLY public.playback_session
    ADD CONSTRAINT playback_session_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.redeem_attempt
    ADD CONSTRAINT redeem_attempt_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.rendition
    ADD CONSTRAINT rendition_pkey PRIMARY KEY (video_id, generation, id);
ALTER TABLE ONLY public.segment
    ADD CONSTRAINT segment_pkey PRIMARY KEY (video_id, generation, rendition_id, number);
ALTER TABLE ONLY public.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.source
    ADD CONSTRAINT source_pkey PRIMARY KEY (video_id);
ALTER TABLE ONLY public.stored_response
    ADD CONSTRAINT stored_response_pkey PRIMARY KEY (account_id, idempotency_key);
ALTER TABLE ONLY public.stream_slot
    ADD CONSTRAINT stream_slot_pkey PRIMARY KEY (account_id, user_id, n);
ALTER TABLE ONLY public.stream_slot
    ADD CONSTRAINT stream_slot_session_id_key UNIQUE (session_id);
ALTER TABLE ONLY public.strike
    ADD CONSTRAINT strike_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tag
    ADD CONSTRAINT tag_pkey PRIMARY KEY (account_id, name);
ALTER TABLE ONLY public.upload_policy
    ADD CONSTRAINT upload_policy_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.video
    ADD CONSTRAINT video_id_key UNIQUE (id);
ALTER TABLE ONLY public.video
    ADD CONSTRAINT video_pkey PRIMARY KEY ("position");
ALTER TABLE ONLY public.video_tag
    ADD CONSTRAINT video_tag_pkey PRIMARY KEY (account_id, name, "position");
ALTER TABLE ONLY public.video_text
    ADD CONSTRAINT video_text_pkey PRIMARY KEY (rowid);
ALTER TABLE ONLY public.video_usage
    ADD CONSTRAINT video_usage_pkey PRIMARY KEY (day, account_id, video_id, user_id);
ALTER TABLE ONLY public.view_total
    ADD CONSTRAINT view_total_pkey PRIMARY KEY (video_id);
ALTER TABLE ONLY public.watch_position
    ADD CONSTRAINT watch_position_pkey PRIMARY KEY (account_id, user_id, video_id);
ALTER TABLE ONLY public.watermark_image
    ADD CONSTRAINT watermark_image_pkey PRIMARY KEY (account_id, url_hash);
ALTER TABLE ONLY public.webhook
    ADD CONSTRAINT webhook_pkey PRIMARY KEY (id);
CREATE INDEX api_key_of_account ON public.api_key USING btree (account_id);
CREATE INDEX audit_event_of_account ON public.audit_event USING btree (account_id, id);
CREATE INDEX audit_event_time ON public.audit_event USING btree (at_s);
CREATE INDEX chunk_pending ON public.chunk USING btree (priority, "position") WHERE (state = 'pending'::text);
CREATE INDEX chunk_running ON public.chunk USING btree (state) WHERE (state = 'running'::text);
CREATE INDEX delivery_failed ON public.delivery USING btree (webhook_id, sequence) WHERE (state = 'failed'::text);
CREATE INDEX delivery_finished ON public.delivery USING btree (finished_at_s) WHERE (finished_at_s IS NOT NULL);
CREATE INDEX delivery_open ON public.delivery USING btree (webhook_id, due_at_s, sequence) WHERE (finished_at_s IS NULL);
CREATE INDEX file_of_video ON public.file USING btree (video_id);
CREATE INDEX folder_by_name ON public.folder USING btree (account_id, folded_name, id);
CREATE INDEX folder_in_order ON public.folder USING btree (account_id, parent_id, folded_name, id);
CREATE INDEX generation_unfinished ON public.generation USING btree (video_id) WHERE (finished_at_s IS NULL);
CREATE INDEX import_turn ON public.import USING btree (account_id, next_attempt_at_s, "position", host);
CREATE UNIQUE INDEX mp4_of_video ON public.file USING btree (video_id) WHERE (type = 'mp4'::text);
CREATE INDEX mp4_unmade ON public.file USING btree (id) WHERE ((type = 'mp4'::text) AND (blob IS NULL));
CREATE INDEX otp_expiry ON public.otp USING btree (expires_at_s);
CREATE INDEX otp_spent ON public.otp USING btree (spent_at_s) WHERE (spent_at_s IS NOT NULL);
CREATE INDEX playback_session_end ON public.playback_session USING btree (ends_at_s);
CREATE INDEX playback_session_ended ON public.playback_session USING btree (ended_at_s) WHERE (ended_at_s IS NOT NULL);
CREATE INDEX playback_session_live ON public.playback_session USING btree (video_id) WHERE (ended_at_s IS NULL);
CREATE INDEX playback_session_of_account ON public.playback_session USING btree (account_id) WHERE (ended_at_s IS NULL);
CREATE INDEX poster_shown ON public.file USING btree (video_id) WHERE ((type = 'poster'::text) AND (enabled = 1));
CREATE INDEX redeem_attempt_of_otp ON public.redeem_attempt USING btree (otp_hash);
CREATE INDEX stored_response_time ON public.stored_response USING btree (responded_at_s);
CREATE INDEX stream_slot_end ON public.stream_slot USING btree (ends_at_s);
CREATE INDEX strike_of_subject ON public.strike USING btree (subject, at_s);
CREATE INDEX strike_time ON public.strike USING btree (at_s);
CREATE INDEX upload_policy_of_video ON public.upload_policy USING btree (video_id);
CREATE INDEX upload_policy_open ON public.upload_policy USING btree (expires_at_s) WHERE (spent_at_s IS NULL);
CREATE INDEX video_deleted ON public.video USING btree (deleted_at_s) WHERE (deleted_at_s IS NOT NULL);
CREATE INDEX video_in_folder ON public.video USING btree (account_id, folder_id, "position" DESC) WHERE (deleted_at_s IS NULL);
CREATE INDEX video_in_order ON public.video USING btree (account_id, "position" DESC) WHERE (deleted_at_s IS NULL);
CREATE INDEX video_tag_of_video ON public.video_tag USING btree ("position", ordinal);
CREATE INDEX video_text_trigrams ON public.video_text USING gin (id public.gin_trgm_ops, title public.gin_trgm_ops, file_name public.gin_trgm_ops);
CREATE INDEX video_unplanned ON public.video USING btree ("position") WHERE ((has_source = 1) AND (generation = 0) AND (status = ANY (ARRAY['Queued'::text, 'Processing'::text])) AND (deleted_at_s IS NULL));
CREATE INDEX watch_position_age ON public.watch_position USING btree (saved_at_s);
CREATE INDEX watch_position_of_video ON public.watch_position USING btree (video_id);
CREATE INDEX watermark_image_age ON public.watermark_image USING btree (account_id, tried_at_s);
CREATE INDEX webhook_of_account ON public.webhook USING btree (account_id);
CREATE INDEX webhook_turn ON public.webhook USING btree (next_attempt_at_s, id) WHERE (disabled_reason IS NULL);
CREATE TRIGGER account_added AFTER INSERT ON public.account FOR EACH ROW EXECUTE FUNCTION public.account_added();
CREATE TRIGGER file_added AFTER INSERT ON public.file FOR EACH ROW EXECUTE FUNCTION public.file_added();
CREATE TRIGGER file_changed AFTER UPDATE OF enabled, size_bytes ON public.file FOR EACH ROW EXECUTE FUNCTION public.file_changed();
CREATE TRIGGER file_removed AFTER DELETE ON public.file FOR EACH ROW EXECUTE FUNCTION public.file_removed();
CREATE TRIGGER folder_added AFTER INSERT ON public.folder REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.folder_added();
CREATE TRIGGER folder_moved AFTER UPDATE ON public.folder REFERENCING OLD TABLE AS was NEW TABLE AS became FOR EACH STATEMENT WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION public.folder_moved();
CREATE TRIGGER folder_removed AFTER DELETE ON public.folder REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION public.folder_removed();
CREATE TRIGGER rendition_added AFTER INSERT ON public.rendition FOR EACH ROW EXECUTE FUNCTION public.rendition_added();
CREATE TRIGGER source_added AFTER INSERT ON public.source FOR EACH ROW EXECUTE FUNCTION public.source_added();
CREATE TRIGGER video_added AFTER INSERT ON public.video REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.video_added();
CREATE TRIGGER video_changed AFTER UPDATE ON public.video REFERENCING OLD TABLE AS was NEW TABLE AS became FOR EACH STATEMENT EXECUTE FUNCTION public.video_changed();
CREATE TRIGGER video_renamed AFTER UPDATE OF title, file_name ON public.video FOR EACH ROW WHEN (((new.deleted_at_s IS NULL) AND ((new.title <> old.title) OR (new.file_name <> old.file_name)))) EXECUTE FUNCTION public.video_renamed();
CREATE TRIGGER video_tag_added AFTER INSERT ON public.video_tag REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.video_tag_added();
CREATE TRIGGER video_tag_removed AFTER DELETE ON public.video_tag REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION public.video_tag_removed();
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.folder
    ADD CONSTRAINT folder_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.video
    ADD CONSTRAINT video_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
ALTER TABLE ONLY public.watermark_image
    ADD CONSTRAINT watermark_image_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.account(id);
SELECT pg_catalog.set_config('search_path', 'public', false);
