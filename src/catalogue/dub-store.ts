import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Db } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'
import { HAS_NO_LATER_GENERATION, NOT_DELETED_UNINDEXED } from './video-store.ts'

/** An audio track that was added to a video as a file of its own: one of the file that the video has now, which may be replaced. */
export type Dub = Selectable<Tables['dub']>

type DubKey = Pick<Dub, 'videoId' | 'sourceNumber'>

/** Renditions of the video's own file have lower ids. */
const FIRST_ID = 100

/** The id of its rendition, in any generation. Numbers of files are never given twice, and so are these. */
export function dubIdOf({ sourceNumber }: Pick<Dub, 'sourceNumber'>): number {
  return FIRST_ID + sourceNumber
}

export async function insertDub(tx: Db, dub: Omit<Insertable<Tables['dub']>, 'attempts' | 'encoded'>): Promise<void> {
  await tx.insertInto('dub').values(dub).execute()
}

/** Those of one file of a video, in the order in which they were added. */
export async function listDubs(db: Db, { videoId, ofSource }: Pick<Dub, 'videoId' | 'ofSource'>): Promise<Dub[]> {
  return db
    .selectFrom('dub')
    .selectAll()
    .where(({ and }) => and({ videoId, ofSource }))
    .orderBy('sourceNumber')
    .execute()
}

export async function findDub(db: Db, { videoId, sourceNumber }: DubKey): Promise<Dub | undefined> {
  return db
    .selectFrom('dub')
    .selectAll()
    .where(({ and }) => and({ videoId, sourceNumber }))
    .executeTakeFirst()
}

export async function listAccountsWithWaitingDubs(db: Db, nowS: number): Promise<string[]> {
  const rows = await waitingDubs(db, nowS).select('dub.accountId').distinct().orderBy('dub.accountId').execute()
  return rows.map(({ accountId }) => accountId)
}

/** The account's dub that has waited longest. */
export async function findWaitingDub(db: Db, accountId: string, nowS: number): Promise<Dub | undefined> {
  return waitingDubs(db, nowS)
    .selectAll('dub')
    .where('dub.accountId', '=', accountId)
    .orderBy('dub.requestedAtS')
    .limit(1)
    .executeTakeFirst()
}

/** Of videos that are complete and are not being made again: what was encoded of a dub until then would be lost. */
function waitingDubs(db: Db, nowS: number) {
  return (
    db
      .selectFrom('dub')
      .innerJoin('video', 'video.id', 'dub.videoId')
      .innerJoin('account', 'account.id', 'video.accountId')
      .innerJoin('generation as played', (join) =>
        join.onRef('played.videoId', '=', 'video.id').onRef('played.number', '=', 'video.generation'),
      )
      // Literals, for the partial index.
      .where('dub.encoded', '=', sql.lit(0))
      .where('dub.problem', 'is', null)
      .whereRef('dub.ofSource', '=', 'video.sourceNumber')
      .where('dub.videoId', 'not in', claimedSubjects(db, 'dub', nowS))
      .where('video.status', '=', 'ready')
      .where(NOT_DELETED_UNINDEXED)
      .where('account.disabled', '=', 0)
      .where('played.finishedAtS', 'is not', null)
      .where(HAS_NO_LATER_GENERATION)
  )
}

/** Counts an attempt before it runs, so that one that crashes this process counts, too. False: it is not as it was found. */
export async function beginDubAttempt(tx: Db, { attempts, ...dub }: Dub): Promise<boolean> {
  const begun = await updateOne(tx, dub)
    .set({ attempts: attempts + 1, progress: 0 })
    .where(({ and }) => and({ attempts, encoded: 0 }))
    .where('problem', 'is', null)
    .executeTakeFirst()
  return begun.numUpdatedRows > 0n
}

export async function updateDub(tx: Db, dub: DubKey, changes: Updateable<Tables['dub']>): Promise<void> {
  await updateOne(tx, dub).set(changes).execute()
}

function updateOne(tx: Db, { videoId, sourceNumber }: DubKey) {
  return tx.updateTable('dub').where(({ and }) => and({ videoId, sourceNumber }))
}

export async function deleteDub(tx: Db, { videoId, sourceNumber }: DubKey): Promise<void> {
  await tx
    .deleteFrom('dub')
    .where(({ and }) => and({ videoId, sourceNumber }))
    .execute()
}
