import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { ViewQualityRow } from '../db/tables.ts'

/** What the rows of a view are named by. */
export type ViewKey = Pick<ViewQualityRow, 'sessionId' | 'pageId'>

export async function findViewQuality(db: Db, { sessionId, pageId }: ViewKey): Promise<ViewQualityRow | undefined> {
  return db
    .selectFrom('viewQuality')
    .selectAll()
    .where((row) => row.and({ sessionId, pageId }))
    .executeTakeFirst()
}

const COLUMNS = [
  ...(['sessionId', 'pageId', 'day', 'accountId', 'videoId', 'country', 'browser', 'network', 'measuredMs', 'startMs'] as const),
  ...(['waitCount', 'waitedMs', 'playedMs', 'frameCount', 'droppedFrameCount', 'error', 'rungs'] as const),
] as const

/** Writes what a page reported, unless its row has a newer report; nothing where the session was deleted, as with its viewer. */
export const saveViewQuality = prepared<ViewQualityRow>()((db, value) =>
  db
    .insertInto('viewQuality')
    .columns([...COLUMNS])
    .expression((from) =>
      from
        .selectFrom('playbackSession')
        .select(COLUMNS.map((column) => value(column).as(column)))
        .where('id', '=', value('sessionId')),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['sessionId', 'pageId'])
        .doUpdateSet((row) => ({
          network: row.ref('excluded.network'),
          measuredMs: row.ref('excluded.measuredMs'),
          startMs: row.ref('excluded.startMs'),
          waitCount: row.ref('excluded.waitCount'),
          waitedMs: row.ref('excluded.waitedMs'),
          playedMs: row.ref('excluded.playedMs'),
          frameCount: row.ref('excluded.frameCount'),
          droppedFrameCount: row.ref('excluded.droppedFrameCount'),
          error: row.ref('excluded.error'),
          rungs: row.ref('excluded.rungs'),
        }))
        .whereRef('excluded.measuredMs', '>', 'viewQuality.measuredMs'),
    ),
)

/** Days are few, and named one by one. */
type ViewFilter = { days: readonly string[]; videoId?: string | undefined }

/** The views of an account in the order of their days, those of the newest day first. */
export async function listViewQualities(
  db: Db,
  accountId: string,
  { days, videoId }: ViewFilter,
  limit: number,
): Promise<ViewQualityRow[]> {
  return db
    .selectFrom('viewQuality')
    .selectAll()
    .where('accountId', '=', accountId)
    .where('day', 'in', days)
    .$if(videoId !== undefined, (views) => views.where('videoId', '=', videoId ?? ''))
    .orderBy('day', 'desc')
    .limit(limit)
    .execute()
}

/** Which of the accounts had so many views on that day. */
export async function listWatchedAccounts(db: Db, day: string, minViews: number): Promise<string[]> {
  const rows = await db
    .selectFrom('viewQuality')
    .select('accountId')
    .where('day', '=', day)
    .groupBy('accountId')
    .having(({ fn }) => fn.countAll<number>(), '>=', minViews)
    .orderBy('accountId')
    .execute()
  return rows.map(({ accountId }) => accountId)
}

/** Removes some of the views from before that day. @returns how many */
export function removeOldViewQualities(tx: Db, beforeDay: string, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'viewQuality', key: ['sessionId', 'pageId'], age: 'day' }, beforeDay, limit)
}
