import { createHash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import { isPostgres } from '../../src/db/dialect.ts'
import type { Tables } from '../../src/db/tables.ts'

// An installation as it is after some years, as far as its rows go: three accounts, one of them small.

const VIDEOS = 20_000
export const NOW_S = 2_000_000
/** The id, or the hash, that belongs to a number. */
export const idOf = (n: number) => createHash('md5').update(`${n}`).digest('hex')
export const hashOf = (n: number) => createHash('sha256').update(`${n}`).digest()
const [A, B, C] = ['a'.repeat(32), 'b'.repeat(32), 'c'.repeat(32)]
/** Three quarters of the videos are A's, a hundred C's. */
export const ACCOUNTS = { large: A, small: C }

const ownerOf = `case when n % 200 = 0 then '${C}' when n % 4 = 0 then '${B}' else '${A}' end`

/** Rows of each table; `n` counts, and a video's number is its position, too. */
const FILL: readonly (readonly [into: string, count: number, select: string])[] = [
  [
    'api_key (id, account_id, hash, prefix, name, permissions, created_at_s)',
    1_000,
    `id(n), ${ownerOf}, hash(n), 'p', 'n', '[]', 1`,
  ],
  [
    'console_user (id, account_id, name, folded_name, role, is_administrator, created_at_s)',
    40,
    `'user ' || n, ${ownerOf}, 'user ' || n, 'user ' || n, 'owner', 0, 1`,
  ],
  [
    'passkey (id, console_user_id, name, public_key, sign_count, transports, created_at_s)',
    1_000,
    `id(n), 'user ' || (1 + n % 40), 'n', hash(n), 0, '[]', 1`,
  ],
  [
    'sign_in (id, token_hash, console_user_id, account_id, method, address, user_agent, created_at_s, last_seen_at_s, expires_at_s)',
    2_000,
    `id(n), hash(n), 'user ' || (1 + n % 40), ${ownerOf}, 'password', '192.0.2.1', '', 1, 1, ${NOW_S} - n`,
  ],
  [
    'folder (account_id, id, parent_id, name, folded_name, created_at_s)',
    2_000,
    `'${A}', 'f' || n, case when n < 40 then 'root' else 'f' || (n / 40) end, 'Folder ' || n, 'folder ' || n, 1`,
  ],
  [
    'video (id, account_id, title, description, file_name, upload_time_s, status, generation, has_source, duration_s, folder_id, external_id, metadata)',
    VIDEOS,
    `id(n), ${ownerOf}, case n % 10 when 0 then 'Lecture ' else 'Video about something ' end || n, '', 'video-' || n || '.mp4', n,
      case when n % 500 = 0 then 'PRE-Upload' when n % 501 = 0 then 'Queued' else 'ready' end,
      case when n % 500 = 0 or n % 501 = 0 then 0 else 1 end, case when n % 501 = 0 then 1 else 0 end, 100,
      case when n % 4 in (1, 2) then 'f' || (n % 2000) else 'root' end, 'own ' || n, '{"all":"yes","rare":"' || (n % 3000) || '"}'`,
  ],
  [
    'replacement (video_id, account_id, kind, problem, requested_at_s)',
    2_000,
    `id(n), ${ownerOf}, 'replace', case when n % 100 > 0 then 'It is no video.' end, n`,
  ],
  [
    'lti_grade (id, platform_id, account_id, user_id, video_id, line_item, wrapped_subject, completed_at_tenths, tenths, launched_at_s)',
    5_000,
    `id(n), id(n % 3), ${ownerOf}, 'viewer ' || (n % 500), id(n), 'line item', hash(n), 9, 5, n`,
  ],
  ['trashed_video (video_id, account_id, trashed_at_s, ends_at_s, tags)', 2_000, `id(${VIDEOS} + n), ${ownerOf}, n, n, '[]'`],
  [
    'video_tag (account_id, name, position, ordinal)',
    3 * VIDEOS,
    `(select account_id from video where position = 1 + (n - 1) / 3), case n % 3 when 0 then 'all' when 1 then 'tag ' || (n % 30) else 'rare ' || (n % 3000) end,
      1 + (n - 1) / 3, n % 3`,
  ],
  [
    'upload_policy (key, account_id, video_id, expires_at_s, spent_at_s)',
    VIDEOS,
    `'orig/' || n, ${ownerOf}, id(n), n, case when n % 500 = 0 then null else n end`,
  ],
  [
    'import (video_id, account_id, position, host, wrapped_url, next_attempt_at_s)',
    1_000,
    `id(n), ${ownerOf}, n, 'host-' || (n % 20), '', case when n % 5 = 0 then 0 else ${NOW_S + 1000} end`,
  ],
  [
    'generation (video_id, number, plan, encoder, created_at_s, finished_at_s, storyboard_made_at_s)',
    VIDEOS,
    `id(n), 1, '{}', 'e', 1, case when n % 1000 = 0 then null else 2 end, case when n % 100 = 0 then null else 3 end`,
  ],
  [
    'chunk (video_id, generation, kind, first_segment, segment_count, decodes_from_start, state, priority, position)',
    2 * VIDEOS,
    `id(n / 2), 1, 'video', n % 2, 1, 0, case when n % 1000 = 0 then 'pending' when n % 1001 = 0 then 'running' else 'done' end, n % 7, n`,
  ],
  [
    'segment (video_id, generation, rendition_id, number, file, size_bytes, sha256)',
    4 * VIDEOS,
    `id(n / 4), 1, n % 2, n % 4 / 2, 's' || n, 1, hash(n)`,
  ],
  [
    'otp (hash, account_id, api_key_id, video_id, watermarks, issued_at_s, expires_at_s, spent_at_s)',
    VIDEOS,
    `hash(n), ${ownerOf}, id(1 + n % 1000), id(n), '[]', ${NOW_S} - n, ${NOW_S + 300} - n, case when n % 10 < 9 and n > 300 then ${NOW_S} - n + 5 end`,
  ],
  [
    'playback_session (id, otp_hash, account_id, video_id, generation, user_id, public_key, key_id, pages, watermarks, started_at_s, ends_at_s, last_seen_at_s, ended_at_s)',
    VIDEOS / 2,
    `id(n), hash(n), ${ownerOf}, id(n), 1, 'viewer ' || (n % 1000), hash(n), hash(n), '[]', '[]', ${NOW_S} - n, ${NOW_S + 9000} - n, 1,
      case when n > 300 then ${NOW_S} - n end`,
  ],
  [
    'redeem_attempt (account_id, otp_hash, at_s, key_id, address, user_agent, embedding_host, outcome)',
    VIDEOS,
    `${ownerOf}, hash(n), 1, hash(n), '192.0.2.1', 'browser', '-', case when n % 3 = 0 then 'otp-used' else 'opened' end`,
  ],
  [
    'stream_slot (account_id, user_id, n, session_id, taken_at_s, ends_at_s)',
    1_000,
    `${ownerOf}, 'viewer ' || n, 1, id(n), ${NOW_S} - n, ${NOW_S + 10} - n`,
  ],
  [
    'upload_token (id, account_id, hash, api_key_id, origin, folder_id, tags, max_files, created_at_s, expires_at_s)',
    5_000,
    `id(n), ${ownerOf}, hash(n), id(1 + n % 1000), 'https://' || n || '.example', 'root', '[]', 2, 1, ${NOW_S} - 2500 + n`,
  ],
  ['chapters (video_id, language, list)', VIDEOS, `id(n), 'en', '[]'`],
  ['audio_settings (video_id, source_number, list)', VIDEOS, `id(n), 1, '[]'`],
  [
    'dub (video_id, source_number, account_id, of_source, start_s, language, is_default, requested_at_s, encoded)',
    VIDEOS,
    `id(n), 2, ${ownerOf}, 1, 0, 'fr', 0, n, case when n % 900 = 0 then 0 else 1 end`,
  ],
  ['file (video_id, type, created_at_s)', 30, `id(n * 99), 'mp4', 1`],
  ['strike (scope, subject, budget, at_s)', 5_000, `'key', id(n % 500), 'reads', ${NOW_S} - n`],
  [
    'stored_response (account_id, idempotency_key, request_hash, wrapped_response, responded_at_s)',
    5_000,
    `${ownerOf}, id(n), hash(n), '', ${NOW_S} - n`,
  ],
  ['audit_event (at_s, account_id, actor, kind, subject)', VIDEOS, `n, ${ownerOf}, id(n), 'k', id(n)`],
  [
    'webhook (id, account_id, url, wrapped_secret, created_at_s, next_attempt_at_s)',
    40,
    `'h' || n, ${ownerOf}, 'https://a.example', '', 1, n`,
  ],
  [
    'delivery (webhook_id, sequence, event, body, time_ms, state, finished_at_s)',
    VIDEOS,
    `'h' || (1 + n % 40), n, 'video:ready', '{}', n, case when n % 1000 = 0 then 'waiting' when n % 77 = 0 then 'failed' else 'delivered' end,
      case when n % 1000 = 0 then null else n end`,
  ],
  [
    'video_usage (day, account_id, video_id, user_id, sent_bytes, view_count)',
    VIDEOS,
    `'2026-0' || (1 + n % 9) || '-01', ${ownerOf}, id(n), '', 1, 1`,
  ],
  [
    'key_budget (account_id, viewer, video_id, source_number, level_s, earned_at_s, released, released_of, used_at_s)',
    VIDEOS,
    `${ownerOf}, 'user viewer ' || (n % 1000), id(n), 1, 600, ${NOW_S} - n, hash(n), 1, ${NOW_S} - n`,
  ],
  [
    'alert (account_id, day, cause, subject, at_s, occurrence_count, session_id, user_id, video_id, numbers)',
    VIDEOS,
    `${ownerOf}, n / 100, case when n % 5 = 0 then 'keys-drawn' else 'rule-refused' end, 'subject ' || n, ${NOW_S} - n, 1, id(n),
      'viewer ' || (n % 1000), id(n), '{}'`,
  ],
  ['viewer (account_id, user_id, name, named_at_s)', VIDEOS, `${ownerOf}, 'viewer ' || n, 'Viewer ' || n, ${NOW_S} - n`],
  [
    'viewing (account_id, user_id, video_id, intervals, watched_s, position_s, began_at_s, last_at_s)',
    VIDEOS,
    `${ownerOf}, 'viewer ' || (n % 1000), id(n), '0 60', 60, 60, ${NOW_S} - n, ${NOW_S} - n`,
  ],
  [
    'viewing_day (account_id, day, video_id, user_id, intervals, watched_s)',
    VIDEOS,
    `${ownerOf}, 20000 + n % 90, id(n), 'viewer ' || (n % 1000), '0 60', 60`,
  ],
  ['view_total (video_id, view_count)', VIDEOS, 'id(n), 1'],
]

/** Those whose triggers change a video for each of their rows, which takes long for so many. */
const WITHOUT_TRIGGERS: typeof FILL = [
  ['source (video_id, file, size_bytes, sha256, iv, macs)', VIDEOS, `id(n), id(n) || '/' || n, 1000000, hash(n), '', ''`],
  ['rendition (video_id, generation, id, kind, init)', 2 * VIDEOS, `id(n / 2), 1, n % 2, 'video', hash(n)`],
  [
    'file (video_id, type, created_at_s, blob, size_bytes, token, generation, attachment_id, language)',
    VIDEOS,
    `id(n), case n % 3 when 0 then 'caption' else 'poster' end, 1, id(n) || '/' || n, 5, 'token' || n, 1, 'x', 'de'`,
  ],
]

/** On PostgreSQL by a superuser: autovacuum is off, so that the tables are as before the first VACUUM and ANALYZE. */
export async function fillLarge(db: Kysely<Tables>): Promise<void> {
  for (const id of [A, B, C])
    await sql`insert into account (id, name, created_at_s, may_upload, may_import) values (${id}, 'a', 1, 1, 1)`.execute(db)
  await (isPostgres(db) ? fillPostgres(db) : fillSqlite(db))
  await sql`update account set video_count = (select count(*) from video where account_id = account.id)`.execute(db)
}

async function fillPostgres(db: Kysely<Tables>): Promise<void> {
  for (const { name } of await db.introspection.getTables())
    await sql`alter table ${sql.table(name)} set (autovacuum_enabled = off)`.execute(db)
  const expand = (select: string) =>
    select.replaceAll(/\bid\(([^()]*)\)/g, 'md5(($1)::text)').replaceAll(/\bhash\(([^()]*)\)/g, 'sha256(($1)::text::bytea)')
  const fill = async (tables: typeof FILL) => {
    for (const [into, count, select] of tables)
      await sql
        .raw(`insert into ${into} select ${expand(select)} from generate_series(1, ${count}) as n on conflict do nothing`)
        .execute(db)
  }
  await fill(FILL)
  await sql`set session_replication_role = replica`.execute(db)
  await fill(WITHOUT_TRIGGERS)
  await sql`set session_replication_role = origin`.execute(db)
}

/** ANALYZE never runs on SQLite, so it plans for a few rows as for millions. */
const ROWS_IN_SQLITE = 2_000

/** The connection must have the functions `id` and `hash`. */
async function fillSqlite(db: Kysely<Tables>): Promise<void> {
  for (const [into, count, select] of [...FILL, ...WITHOUT_TRIGGERS])
    await sql
      .raw(
        `insert into ${into} with recursive counter (n) as (select 1 union all select n + 1 from counter where n < ${Math.min(count, ROWS_IN_SQLITE)})
          select ${select} from counter where true on conflict do nothing`,
      )
      .execute(db)
}
