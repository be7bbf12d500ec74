import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import type { VideoUsage } from './usage-store.ts'

// Statements on PostgreSQL that count views of sessions which other servers change, too.

/**
 * Marks that views of sessions were counted, except of those that a request has locked.
 * @returns the ids of those that are marked now, and of those that were locked
 */
export async function markViewedTogether(tx: Db, ids: readonly string[], viewedAtS: number) {
  const marking = sql<{ id: string }>`update playback_session as session set viewed_at_s = ${viewedAtS}
    from (select id from playback_session where id = any(${ids}::text[]) and viewed_at_s is null
      order by id for update skip locked) as unviewed
    where session.id = unviewed.id returning session.id`.execute(tx)
  const finding = sql<{ id: string }>`select id from playback_session
    where id = any(${ids}::text[]) and viewed_at_s is null`.execute(tx)
  const [marked, locked] = await Promise.all([marking, finding])
  return { marked: marked.rows.map(({ id }) => id), locked: locked.rows.map(({ id }) => id) }
}

/** Adds views to the counters, whose rows are locked in one order. */
export async function addViewsTogether(tx: Db, views: readonly Omit<VideoUsage, 'sentBytes'>[]): Promise<void> {
  const added = sql`unnest(${views.map(({ day }) => day)}::text[], ${views.map(({ videoId }) => videoId)}::text[],
    ${views.map(({ userId }) => userId)}::text[], ${views.map(({ viewCount }) => viewCount)}::bigint[])
    as added (day, video_id, user_id, view_count) join video on video.id = added.video_id`
  const ofDays = sql`insert into video_usage (day, account_id, video_id, user_id, sent_bytes, view_count)
    select day, account_id, video_id, user_id, 0, view_count from ${added} order by day, account_id, video_id, user_id
    on conflict (day, account_id, video_id, user_id) do update set view_count = video_usage.view_count + excluded.view_count`
  const totals = sql`insert into view_total (video_id, view_count)
    select video_id, sum(view_count)::bigint from ${added} where deleted_at_s is null group by video_id order by video_id
    on conflict (video_id) do update set view_count = view_total.view_count + excluded.view_count`
  await Promise.all([ofDays.execute(tx), totals.execute(tx)])
}
