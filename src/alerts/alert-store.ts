import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { AlertRow } from '../db/tables.ts'

export type NewAlertRow = Omit<AlertRow, 'id' | 'occurrenceCount' | 'videoIds'>

/** Ids of 32 letters, with commas: up to 20 of them. */
const MAX_VIDEO_IDS_LENGTH = 640

const insert = prepared<NewAlertRow & { mostOfDay: number }>()((db, value) =>
  db
    .insertInto('alert')
    .columns([
      'accountId',
      'day',
      'cause',
      'subject',
      'atS',
      'occurrenceCount',
      'sessionId',
      'userId',
      'videoId',
      'videoIds',
      'numbers',
    ])
    .expression((from) =>
      from
        .selectFrom('account')
        .select(({ lit }) => [
          'account.id as accountId',
          value('day').as('day'),
          value('cause').as('cause'),
          value('subject').as('subject'),
          value('atS').as('atS'),
          lit(1).as('occurrenceCount'),
          value('sessionId').as('sessionId'),
          value('userId').as('userId'),
          value('videoId').as('videoId'),
          value('videoId').as('videoIds'),
          value('numbers').as('numbers'),
        ])
        .where('account.id', '=', value('accountId'))
        .where(
          (of) =>
            of
              .selectFrom('alert')
              .select(({ fn }) => fn.countAll<number>().as('count'))
              .whereRef('alert.accountId', '=', 'account.id')
              .where('alert.day', '=', value('day')),
          '<',
          value('mostOfDay'),
        ),
    )
    .onConflict((conflict) =>
      conflict.columns(['accountId', 'day', 'cause', 'subject']).doUpdateSet((row) => ({
        occurrenceCount: row('alert.occurrenceCount', '+', 1),
        videoIds: sql<string>`case
            when alert.video_ids like '%' || excluded.video_id || '%' or length(alert.video_ids) > ${sql.lit(MAX_VIDEO_IDS_LENGTH)}
            then alert.video_ids else alert.video_ids || ',' || excluded.video_id end`,
      })),
    )
    .returning('occurrenceCount'),
)

/** Inserts an alert, or counts an occurrence of the one of its day, with its video. @returns whether it is new */
export async function insertAlert(tx: Db, alert: NewAlertRow, mostOfDay: number): Promise<boolean> {
  const { rows } = await insert(tx, { ...alert, mostOfDay })
  return rows[0]?.occurrenceCount === 1
}

export type AlertFilter = { cause?: string; userId?: string }

/** The newest first. @param page.below only alerts with a lower id */
export async function listAlertRows(
  db: Db,
  accountId: string,
  { cause, userId }: AlertFilter,
  { limit, below }: { limit: number; below?: number },
): Promise<AlertRow[]> {
  let query = db.selectFrom('alert').selectAll().where('accountId', '=', accountId)
  if (cause !== undefined) query = query.where('cause', '=', cause)
  if (userId !== undefined) query = query.where('userId', '=', userId)
  if (below !== undefined) query = query.where('id', '<', below)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

/** Up to which alert they have been seen; 0: none. */
export async function findSeenAlertId(db: Db, accountId: string): Promise<number> {
  const account = await db.selectFrom('account').select('alertsSeenId').where('id', '=', accountId).executeTakeFirst()
  return account?.alertsSeenId ?? 0
}

export async function markAlertsSeen(tx: Db, accountId: string, upToId: number): Promise<void> {
  const { newest } = await tx
    .selectFrom('alert')
    .select(({ fn }) => fn.max('id').as('newest'))
    .where('accountId', '=', accountId)
    .where('id', '<=', upToId)
    .executeTakeFirstOrThrow()
  const seenId = Number(newest ?? 0)
  await tx
    .updateTable('account')
    .set({ alertsSeenId: seenId })
    .where('id', '=', accountId)
    .where('alertsSeenId', '<', seenId)
    .execute()
}

/** The oldest account, which gets what concerns the whole installation. */
export async function findFirstAccount(db: Db) {
  return db
    .selectFrom('account')
    .select(['id', 'createdAtS', 'videoCount'])
    .orderBy('createdAtS')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
}

/** API keys that are valid and end in a span of time. */
export async function listEndingKeys(db: Db, fromS: number, toS: number) {
  const rows = await db
    .selectFrom('apiKey')
    .select(['id', 'accountId', 'name', 'prefix', 'expiresAtS'])
    .where('revokedAtS', 'is', null)
    .where('expiresAtS', '>', fromS)
    .where('expiresAtS', '<=', toS)
    .orderBy('id')
    .execute()
  return rows.map((row) => ({ ...row, expiresAtS: row.expiresAtS ?? 0 }))
}

/** How many alerts there are since then, by cause. */
export async function countAlertsSince(db: Db, sinceS: number): Promise<Record<string, number>> {
  const rows = await db
    .selectFrom('alert')
    .select(({ fn }) => ['cause', fn.countAll<number>().as('count')])
    .where('atS', '>=', sinceS)
    .groupBy('cause')
    .orderBy('cause')
    .execute()
  return Object.fromEntries(rows.map(({ cause, count }) => [cause, Number(count)]))
}

/** Removes some of the alerts from before then, the oldest first. @returns how many */
export function removeOldAlerts(tx: Db, beforeS: number, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'alert', key: ['id'], age: 'atS' }, beforeS, limit)
}

/** The ids of the videos of an alert, the first one first. */
export function parseVideoIds(videoIds: string): string[] {
  return videoIds.split(',').filter((id) => id !== '')
}
