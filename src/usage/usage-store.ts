import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'

export type VideoUsage = { day: string; videoId: string; userId: string; sentBytes: number; viewCount: number }

/** Adds to a video's row of that day and label; nothing where there is no such video any more. */
export const addVideoUsage = prepared<VideoUsage>()((db, value) =>
  db
    .insertInto('videoUsage')
    .columns(['day', 'accountId', 'videoId', 'userId', 'sentBytes', 'viewCount'])
    .expression((from) =>
      from
        .selectFrom('video')
        .select([
          value('day').as('day'),
          'video.accountId',
          'video.id as videoId',
          value('userId').as('userId'),
          value('sentBytes').as('sentBytes'),
          value('viewCount').as('viewCount'),
        ])
        .where('video.id', '=', value('videoId')),
    )
    .onConflict((conflict) =>
      conflict.columns(['day', 'accountId', 'videoId', 'userId']).doUpdateSet((row) => ({
        sentBytes: row('videoUsage.sentBytes', '+', row.ref('excluded.sentBytes')),
        viewCount: row('videoUsage.viewCount', '+', row.ref('excluded.viewCount')),
      })),
    ),
)

export const addViews = prepared<{ videoId: string; viewCount: number }>()((db, value) =>
  db
    .insertInto('viewTotal')
    .columns(['videoId', 'viewCount'])
    .expression((from) =>
      from
        .selectFrom('video')
        .select(['video.id as videoId', value('viewCount').as('viewCount')])
        .where('video.id', '=', value('videoId'))
        .where('video.deletedAtS', 'is', null),
    )
    .onConflict((conflict) =>
      conflict
        .column('videoId')
        .doUpdateSet((row) => ({ viewCount: row('viewTotal.viewCount', '+', row.ref('excluded.viewCount')) })),
    ),
)

/** How often each of the account's videos was viewed; one that never was is missing. */
export async function listViewTotals(db: Db, accountId: string, videoIds: readonly string[]) {
  if (videoIds.length === 0) return []
  return db
    .selectFrom('viewTotal')
    .innerJoin('video', 'video.id', 'viewTotal.videoId')
    .select(['viewTotal.videoId', 'viewTotal.viewCount'])
    .where('viewTotal.videoId', 'in', videoIds)
    .where('video.accountId', '=', accountId)
    .execute()
}

/** What was sent of each of the account's videos on a day. */
export async function listSentBytes(db: Db, accountId: string, day: string) {
  return db
    .selectFrom('videoUsage')
    .select(['videoId', ({ fn }) => fn.sum<number>('sentBytes').as('sentBytes')])
    .where(({ and }) => and({ day, accountId }))
    .groupBy('videoId')
    .having((row) => row(row.fn.sum<number>('sentBytes'), '>', 0))
    .orderBy('videoId')
    .execute()
}

/** Days are few, and named one by one: the primary key begins with them. */
export type UsagePeriod = { days: readonly string[]; videoId?: string }

/** The sums of each day that has any, of the account or of one of its videos. */
export async function listUsageOfDays(db: Db, accountId: string, { days, videoId }: UsagePeriod) {
  const rows = await db
    .selectFrom('videoUsage')
    .select(({ fn }) => ['day', fn.sum<number>('sentBytes').as('sentBytes'), fn.sum<number>('viewCount').as('viewCount')])
    .where('day', 'in', days)
    .where('accountId', '=', accountId)
    .$if(videoId !== undefined, (usage) => usage.where('videoId', '=', videoId ?? ''))
    .groupBy('day')
    .execute()
  return rows.map(toNumbers)
}

/** The videos with the most views in these days; without a title where a video is deleted. */
export async function listMostViewed(db: Db, accountId: string, days: readonly string[], limit: number) {
  const rows = await db
    .selectFrom('videoUsage')
    .leftJoin('video', (join) => join.onRef('video.id', '=', 'videoUsage.videoId').on('video.deletedAtS', 'is', null))
    .select(({ fn }) => [
      'videoUsage.videoId',
      fn.max('video.title').as('title'),
      fn.sum<number>('sentBytes').as('sentBytes'),
      fn.sum<number>('viewCount').as('viewCount'),
    ])
    .where('day', 'in', days)
    .where('videoUsage.accountId', '=', accountId)
    .groupBy('videoUsage.videoId')
    .orderBy('viewCount', 'desc')
    .orderBy('sentBytes', 'desc')
    .orderBy('videoUsage.videoId')
    .limit(limit)
    .execute()
  return rows.map(toNumbers)
}

/** PostgreSQL returns sums as texts. */
function toNumbers<Row extends { sentBytes: number; viewCount: number }>(row: Row): Row {
  return { ...row, sentBytes: Number(row.sentBytes), viewCount: Number(row.viewCount) }
}

/** Replaces what was measured earlier on that day. */
export async function setStorageOfDay(tx: Db, row: { day: string; accountId: string; sizeBytes: number }): Promise<void> {
  await tx
    .insertInto('storageDay')
    .values(row)
    .onConflict((conflict) => conflict.columns(['day', 'accountId']).doUpdateSet({ sizeBytes: row.sizeBytes }))
    .execute()
}

/** What was measured on each of these days; those without a measurement are missing. */
export async function listStorageOfDays(db: Db, accountId: string, days: readonly string[]) {
  return db
    .selectFrom('storageDay')
    .select(['day', 'sizeBytes'])
    .where('day', 'in', days)
    .where('accountId', '=', accountId)
    .execute()
}

/** Removes all measurements from before that day, of which every sweep finds at most a few days. */
export async function removeStorageBefore(tx: Db, day: string): Promise<void> {
  await tx.deleteFrom('storageDay').where('day', '<', day).execute()
}

/** A row of the counters. */
export type UsageKey = Pick<VideoUsage, 'day' | 'videoId' | 'userId'> & { accountId: string }

const KEY_COLUMNS = ['day', 'accountId', 'videoId', 'userId'] as const

/** Reads all days: for a rare command. */
export async function listUsageOfViewer(
  db: Db,
  { accountId, userId }: Pick<UsageKey, 'accountId' | 'userId'>,
): Promise<UsageKey[]> {
  return db.selectFrom('videoUsage').select(KEY_COLUMNS).where('accountId', '=', accountId).where('userId', '=', userId).execute()
}

/** Some of the rows from before that day that name a viewer, the oldest first. */
export async function listNamedUsageBefore(db: Db, day: string, limit: number): Promise<UsageKey[]> {
  return db
    .selectFrom('videoUsage')
    .select(KEY_COLUMNS)
    .where('day', '<', day)
    .where('userId', '<>', sql.lit('')) // a literal, for the partial index
    .orderBy('day')
    .limit(limit)
    .execute()
}

/** Adds the counters of a row to those without a viewer: the sums stay what they are. */
export async function unnameUsage(tx: Db, { day, accountId, videoId, userId }: UsageKey): Promise<void> {
  const counters = await tx
    .deleteFrom('videoUsage')
    .where((row) => row.and({ day, accountId, videoId, userId }))
    .returning(['sentBytes', 'viewCount'])
    .executeTakeFirst()
  if (!counters) return
  await tx
    .insertInto('videoUsage')
    .values({ day, accountId, videoId, userId: '', ...counters })
    .onConflict((conflict) =>
      conflict.columns(KEY_COLUMNS).doUpdateSet((row) => ({
        sentBytes: row('videoUsage.sentBytes', '+', row.ref('excluded.sentBytes')),
        viewCount: row('videoUsage.viewCount', '+', row.ref('excluded.viewCount')),
      })),
    )
    .execute()
}

/** Removes some of the rows from before that day, the oldest first. @returns how many */
export function removeUsageBefore(tx: Db, day: string, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'videoUsage', key: ['day', 'accountId', 'videoId', 'userId'], age: 'day' }, day, limit)
}
