import { type Insertable, sql, type Updateable } from 'kysely'
import { countRows, hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { ImportRow, Tables } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'

/** For an existing video. */
export async function insertImport(tx: Db, row: Omit<Insertable<Tables['import']>, 'position'>): Promise<void> {
  await tx
    .insertInto('import')
    .values(({ selectFrom }) => ({
      ...row,
      position: selectFrom('video').select('position').where('id', '=', row.videoId).$asScalar().$notNull(),
    }))
    .execute()
}

/** The next attempt of an import that failed because its file did not fit: none, until its owner asks for it. */
const NEVER_S = Number.MAX_SAFE_INTEGER

/** Those that are queued or running. */
export async function countImports(db: Db, accountId: string): Promise<number> {
  return countRows(db.selectFrom('import').where('accountId', '=', accountId).where('nextAttemptAtS', '<', NEVER_S))
}

/** Accounts and hosts that have as many running imports as they may. */
export type BusySlots = { accountIds: readonly string[]; hosts: readonly string[] }

/** Those that any process runs. */
export async function listRunningImports(db: Db): Promise<Pick<ImportRow, 'accountId' | 'host'>[]> {
  return db
    .selectFrom('claim')
    .innerJoin('import', 'import.videoId', 'claim.subject')
    .select(['accountId', 'host'])
    .where('claim.kind', '=', 'import')
    .where('claim.id', 'is not', null)
    .execute()
}

/** Accounts that have a due import, without disabled accounts. */
export async function listAccountsWithImports(db: Db, nowS: number, busy: BusySlots): Promise<string[]> {
  const rows = await db
    .selectFrom('account')
    .select('id')
    .where('disabled', '=', 0)
    .where('id', 'not in', [...busy.accountIds])
    .where(({ exists }) =>
      exists(dueImports(db, nowS, busy).select('import.videoId').where('accountId', '=', sql.ref<string>('account.id'))),
    )
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** The due import of the account that has waited longest. */
export async function findDueImport(
  db: Db,
  accountId: string,
  nowS: number,
  busy: BusySlots,
): Promise<Pick<ImportRow, 'videoId' | 'accountId' | 'host'> | undefined> {
  return dueImports(db, nowS, busy)
    .select(['videoId', 'accountId', 'host'])
    .where('accountId', '=', accountId)
    .orderBy('nextAttemptAtS')
    .orderBy('position')
    .limit(1)
    .executeTakeFirst()
}

function dueImports(db: Db, nowS: number, { hosts }: BusySlots) {
  return db
    .selectFrom('import')
    .where('nextAttemptAtS', '<=', nowS)
    .where('host', 'not in', [...hosts])
    .where('import.videoId', 'not in', claimedSubjects(db, 'import', nowS))
}

export async function findImport(db: Db, videoId: string): Promise<ImportRow | undefined> {
  return db.selectFrom('import').selectAll().where('videoId', '=', videoId).executeTakeFirst()
}

/**
 * Counts an attempt before it is made, so that one which crashes this process counts, too. Undefined: the video was deleted, or another
 * process has made this attempt.
 * @param time.maxS the time limit from the first attempt to the end
 */
export async function beginImportAttempt(
  tx: Db,
  videoId: string,
  { nowS, maxS }: { nowS: number; maxS: number },
): Promise<ImportRow | undefined> {
  return tx
    .updateTable('import')
    .set((row) => ({ attempts: row('attempts', '+', 1), endsAtS: row.fn.coalesce('endsAtS', row.val(nowS + maxS)) }))
    .where('videoId', '=', videoId)
    .where('nextAttemptAtS', '<=', nowS)
    .returningAll()
    .executeTakeFirst()
}

/** False: the video was deleted. */
export async function updateImport(tx: Db, videoId: string, changes: Updateable<Tables['import']>): Promise<boolean> {
  const updated = await tx.updateTable('import').set(changes).where('videoId', '=', videoId).executeTakeFirst()
  return updated.numUpdatedRows > 0n
}

/** After a restart every import is due. */
export async function resumeImports(tx: Db): Promise<void> {
  await tx
    .updateTable('import')
    .set({ nextAttemptAtS: 0 })
    .where('nextAttemptAtS', '>', 0)
    .where('nextAttemptAtS', '<', NEVER_S)
    .execute()
}

/** Keeps a failed import with its URL, without what it received, for `resumeHeldImport`. False: the video was deleted. */
export async function holdImport(tx: Db, videoId: string): Promise<boolean> {
  const withoutFile = { file: null, wrappedKey: null, iv: null, etag: null, receivedBytes: 0, receivedState: null }
  const notTried = { attempts: 0, maxReceivedBytes: 0, endsAtS: null }
  return updateImport(tx, videoId, { ...withoutFile, ...notTried, nextAttemptAtS: NEVER_S })
}

export async function isImportHeld(db: Db, accountId: string, videoId: string): Promise<boolean> {
  return hasRow(db.selectFrom('import').where(({ and }) => and({ videoId, accountId, nextAttemptAtS: NEVER_S })))
}

/** Queues an import again that was held. False: it is not held. */
export async function resumeHeldImport(tx: Db, videoId: string): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('import')
    .set({ nextAttemptAtS: 0 })
    .where(({ and }) => and({ videoId, nextAttemptAtS: NEVER_S }))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Removes a finished import with its URL. False: the video was deleted. */
export async function removeImport(tx: Db, videoId: string): Promise<boolean> {
  const removed = await tx.deleteFrom('import').where('videoId', '=', videoId).executeTakeFirst()
  return removed.numDeletedRows > 0n
}
