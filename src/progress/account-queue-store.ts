import { sql } from 'kysely'
import { NOT_DELETED_UNINDEXED } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { Plan } from '../encode/plan.ts'

// The work on an account's videos that is not finished, the oldest first.

/** Those whose file waits to be examined. */
export async function listWaitingVideos(db: Db, accountId: string, limit: number) {
  return (
    db
      .selectFrom('video')
      .select(['id', 'title', 'status'])
      // Literals, for the partial index.
      .where('hasSource', '=', sql.lit(1))
      .where('generation', '=', sql.lit(0))
      .where('status', 'in', [sql.lit('Queued'), sql.lit('Processing')])
      .where('deletedAtS', 'is', null)
      .where('accountId', '=', accountId)
      .orderBy('position')
      .limit(limit)
      .execute()
  )
}

/** Those that are being encoded, also again. */
export async function listEncodingVideos(db: Db, accountId: string, limit: number) {
  const rows = await db
    .selectFrom('generation')
    .crossJoin('video') // fixes the join order: SQLite would begin with all videos
    .select(['video.id', 'title', 'status', 'number as generation', 'plan', 'createdAtS'])
    .whereRef('video.id', '=', 'generation.videoId')
    .whereRef('video.generation', '<=', 'generation.number')
    .where('finishedAtS', 'is', null)
    .where('video.accountId', '=', accountId)
    .where('status', 'in', ['Processing', 'ready'])
    .where(NOT_DELETED_UNINDEXED)
    .orderBy('createdAtS')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ ...row, plan: JSON.parse(row.plan) as Plan }))
}

/** Those whose file is imported, or waits for its turn. */
export async function listImportingVideos(db: Db, accountId: string, limit: number) {
  return db
    .selectFrom('import')
    .innerJoin('video', 'video.id', 'import.videoId')
    .select(['video.id', 'title', 'status', 'receivedBytes'])
    .where('import.accountId', '=', accountId)
    .where('status', '=', 'Queued') // not failed ones that their owner may try again
    .where('video.deletedAtS', 'is', null)
    .orderBy('import.position')
    .limit(limit)
    .execute()
}
