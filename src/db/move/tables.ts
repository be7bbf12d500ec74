import type { Tables } from '../tables.ts'

type Snake<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Uppercase<First> ? `_${Lowercase<First>}` : First}${Snake<Rest>}`
  : ''

export type TableName = Snake<keyof Tables & string>

/**
 * Every table and the key that orders its rows, the same on both databases. Accounts come first, because other tables refer to
 * them.
 */
export const KEYS = {
  account: ['id'],
  api_key: ['id'],
  console_user: ['id'],
  passkey: ['id'],
  sign_in: ['id'],
  sign_in_link: ['hash'],
  audit_event: ['id'],
  folder: ['account_id', 'id'],
  video: ['position'],
  trashed_video: ['video_id'],
  tag: ['account_id', 'name'],
  video_tag: ['account_id', 'name', 'position'],
  video_metadata: ['account_id', 'name', 'value', 'position'],
  moved_video: ['account_id', 'origin', 'origin_id'],
  moved_blob: ['name'],
  video_text: ['rowid'],
  upload_policy: ['key'],
  import: ['video_id'],
  resumable_upload: ['id'],
  upload_token: ['position'],
  source: ['video_id', 'number'],
  generation: ['video_id', 'number'],
  replacement: ['video_id'],
  rendition: ['video_id', 'generation', 'id'],
  chunk: ['video_id', 'generation', 'kind', 'first_segment'],
  segment: ['video_id', 'generation', 'rendition_id', 'number'],
  file: ['id'],
  chapters: ['video_id'],
  audio_settings: ['video_id', 'source_number'],
  dub: ['video_id', 'source_number'],
  otp: ['hash'],
  server_key: ['id'],
  playback_session: ['id'],
  viewer: ['account_id', 'user_id'],
  viewing: ['id'],
  viewing_day: ['account_id', 'day', 'video_id', 'user_id'],
  redeem_attempt: ['id'],
  alert: ['id'],
  mail: ['id'],
  claim: ['kind', 'subject'],
  key_budget: ['account_id', 'viewer', 'video_id', 'source_number'],
  stream_slot: ['account_id', 'user_id', 'n'],
  watermark_image: ['account_id', 'url_hash'],
  strike: ['id'],
  ban: ['subject', 'scope', 'budget'],
  stored_response: ['account_id', 'idempotency_key'],
  webhook: ['id'],
  delivery: ['webhook_id', 'sequence'],
  video_usage: ['day', 'account_id', 'video_id', 'user_id'],
  view_total: ['video_id'],
  storage_day: ['day', 'account_id'],
  view_quality: ['session_id', 'page_id'],
  worker: ['id'],
  lti_platform: ['id'],
  lti_registration: ['hash'],
  lti_course: ['platform_id', 'course_id'],
  lti_nonce: ['hash'],
  lti_grade: ['id'],
  server: ['id'],
  setting: ['name'],
} as const satisfies Record<TableName, readonly string[]>

export const TABLE_NAMES = Object.keys(KEYS) as TableName[]

export type Value = string | number | Buffer | null

/** A row by the names of its columns, which are the same on both databases. */
export type Row = Record<string, Value>

export function rowSizeBytes(row: Row): number {
  let sizeBytes = 0
  for (const name in row) {
    const value = row[name]
    sizeBytes += typeof value === 'number' ? 8 : (value?.length ?? 0)
  }
  return sizeBytes
}

/** The columns of a table in PostgreSQL. */
export type Columns = readonly { name: string; type: string }[]

export const quoteNames = (names: readonly string[]) => names.map((name) => `"${name}"`).join(', ')
