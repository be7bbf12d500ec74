import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { ViewingDayRow, ViewingRow } from '../db/tables.ts'

export type ViewingKey = Pick<ViewingRow, 'accountId' | 'userId' | 'videoId'>
export type ViewerKey = Pick<ViewingKey, 'accountId' | 'userId'>

export async function findViewing(db: Db, { accountId, userId, videoId }: ViewingKey): Promise<ViewingRow | undefined> {
  return db
    .selectFrom('viewing')
    .selectAll()
    .where((row) => row.and({ accountId, userId, videoId }))
    .executeTakeFirst()
}

export async function findViewingDay(
  db: Db,
  { accountId, userId, videoId, day }: ViewingKey & { day: number },
): Promise<ViewingDayRow | undefined> {
  return db
    .selectFrom('viewingDay')
    .selectAll()
    .where((row) => row.and({ accountId, day, videoId, userId }))
    .executeTakeFirst()
}

const SAVED = ['accountId', 'userId', 'videoId', 'intervals', 'watchedS', 'positionS', 'beganAtS', 'lastAtS'] as const

/**
 * Writes what a viewer has watched of a video. Changes no row that has another version than `version`, from which the change started, 0
 * when there was none; nor writes one for a video that was deleted.
 */
export const saveViewing = prepared<Omit<ViewingRow, 'id' | 'completedAtS'>>()((db, value) =>
  db
    .insertInto('viewing')
    .columns([...SAVED, 'version'])
    .expression((from) =>
      from
        .selectFrom('video')
        .select(SAVED.map((column) => value(column).as(column)))
        .select(sql<number>`${value('version')} + 1`.as('version'))
        .where('video.id', '=', value('videoId'))
        .where('video.deletedAtS', 'is', null),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['accountId', 'userId', 'videoId'])
        .doUpdateSet((row) => ({
          intervals: row.ref('excluded.intervals'),
          watchedS: row.ref('excluded.watchedS'),
          positionS: row.ref('excluded.positionS'),
          lastAtS: row.ref('excluded.lastAtS'),
          version: row.ref('excluded.version'),
        }))
        .where('viewing.version', '=', value('version')),
    ),
)

/** Writes what a viewer has watched of a video on one day, after the viewing. */
export const saveViewingDay = prepared<ViewingDayRow>()((db, value) =>
  db
    .insertInto('viewingDay')
    .values({
      accountId: value('accountId'),
      day: value('day'),
      videoId: value('videoId'),
      userId: value('userId'),
      intervals: value('intervals'),
      watchedS: value('watchedS'),
    })
    .onConflict((conflict) =>
      conflict.columns(['accountId', 'day', 'videoId', 'userId']).doUpdateSet((row) => ({
        intervals: row.ref('excluded.intervals'),
        watchedS: row.ref('excluded.watchedS'),
      })),
    ),
)

/** Removes some of the viewings that did not go on since then. @returns how many */
export function removeOldViewings(tx: Db, beforeS: number, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'viewing', key: ['id'], age: 'lastAtS' }, beforeS, limit)
}

/** Removes some of what was watched before that day. @returns how many rows */
export function removeOldViewingDays(tx: Db, beforeDay: number, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'viewingDay', key: ['accountId', 'day', 'videoId', 'userId'], age: 'day' }, beforeDay, limit)
}

/** Notes that a viewer has watched most of a video. @returns whether that is new */
export async function markCompleted(tx: Db, { accountId, userId, videoId }: ViewingKey, completedAtS: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('viewing')
    .set({ completedAtS })
    .where((row) => row.and({ accountId, userId, videoId }))
    .where('completedAtS', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** A page of a list in the order of `id`, newest first: only rows below that id. */
export type ViewingPage = { limit: number; below?: number | undefined }

export async function listViewingsOfViewer(
  db: Db,
  { accountId, userId }: Pick<ViewingKey, 'accountId' | 'userId'>,
  { limit, below }: ViewingPage,
): Promise<VideoViewing[]> {
  return selectPage(db, { limit, below })
    .where('viewing.accountId', '=', accountId)
    .where('viewing.userId', '=', userId)
    .execute()
}

export async function listViewingsOfVideo(db: Db, videoId: string, page: ViewingPage): Promise<VideoViewing[]> {
  return selectPage(db, page).where('viewing.videoId', '=', videoId).execute()
}

/** With where on the time line its video begins, and how long that is; null without a video. */
export type VideoViewing = ViewingRow & { timelineStartS: number | null; durationS: number | null }

function selectPage(db: Db, { limit, below }: ViewingPage) {
  return db
    .selectFrom('viewing')
    .leftJoin('video', 'video.id', 'viewing.videoId')
    .selectAll('viewing')
    .select(['video.timelineStartS', 'video.durationS'])
    .$if(below !== undefined, (viewings) => viewings.where('viewing.id', '<', below ?? 0))
    .orderBy('viewing.id', 'desc')
    .limit(limit)
}

/** What was watched on the days from `fromDay` to `toDay`, these included, in the order of days. */
export async function listViewingDays(
  db: Db,
  accountId: string,
  { fromDay, toDay, limit }: { fromDay: number; toDay: number; limit: number },
): Promise<Pick<ViewingDayRow, 'day' | 'userId' | 'videoId' | 'watchedS'>[]> {
  return db
    .selectFrom('viewingDay')
    .select(['day', 'userId', 'videoId', 'watchedS'])
    .where('accountId', '=', accountId)
    .where('day', '>=', fromDay)
    .where('day', '<=', toDay)
    .orderBy('day')
    .orderBy('videoId')
    .orderBy('userId')
    .limit(limit)
    .execute()
}

/** The hashes of a viewer's OTPs. Reads all OTPs: for a rare command. */
export async function listOtpsOfViewer(db: Db, { accountId, userId }: ViewerKey): Promise<Buffer[]> {
  const rows = await db.selectFrom('otp').select('hash').where('accountId', '=', accountId).where('userId', '=', userId).execute()
  return rows.map(({ hash }) => hash)
}

/** Removes OTPs with the records of their redeems, their sessions and how those played. */
export async function removeOtps(tx: Db, hashes: readonly Buffer[]): Promise<void> {
  await tx
    .deleteFrom('viewQuality')
    .where('sessionId', 'in', (of) => of.selectFrom('playbackSession').select('id').where('otpHash', 'in', hashes))
    .execute()
  await tx.deleteFrom('redeemAttempt').where('otpHash', 'in', hashes).execute()
  await tx.deleteFrom('playbackSession').where('otpHash', 'in', hashes).execute()
  await tx.deleteFrom('otp').where('hash', 'in', hashes).execute()
}

/** Removes what a viewer has watched and all else that names them, except OTPs and sessions. @returns how many viewings */
export async function removeViewer(tx: Db, { accountId, userId }: ViewerKey): Promise<number> {
  for (const table of ['viewer', 'viewingDay', 'alert', 'streamSlot', 'ltiGrade'] as const)
    await tx.deleteFrom(table).where('accountId', '=', accountId).where('userId', '=', userId).execute()
  await tx.deleteFrom('keyBudget').where('accountId', '=', accountId).where('viewer', '=', `user ${userId}`).execute()
  const { numDeletedRows } = await tx
    .deleteFrom('viewing')
    .where(({ and }) => and({ accountId, userId }))
    .executeTakeFirst()
  return Number(numDeletedRows)
}
