import type { Insertable } from 'kysely'
import type { Db } from '../db/database.ts'
import type { Tables, WorkerRow } from '../db/tables.ts'

/** False: another worker has this name. */
export async function insertWorker(tx: Db, row: Insertable<Tables['worker']>): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await tx
    .insertInto('worker')
    .values(row)
    .onConflict((conflict) => conflict.column('name').doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows > 0n
}

export async function findWorkerByHash(db: Db, hash: Buffer): Promise<WorkerRow | undefined> {
  return db.selectFrom('worker').selectAll().where('hash', '=', hash).executeTakeFirst()
}

/** By name. */
export async function listWorkers(db: Db): Promise<WorkerRow[]> {
  return db.selectFrom('worker').selectAll().orderBy('name').execute()
}

export async function findWorkerByName(db: Db, name: string): Promise<WorkerRow | undefined> {
  return db.selectFrom('worker').selectAll().where('name', '=', name).executeTakeFirst()
}

export async function updateWorker(
  tx: Db,
  id: string,
  change: Partial<Pick<WorkerRow, 'lastSeenAtS' | 'encoder' | 'jobs' | 'kinds' | 'speed' | 'drained' | 'suspendedReason'>>,
): Promise<void> {
  await tx.updateTable('worker').set(change).where('id', '=', id).execute()
}

export async function deleteWorker(tx: Db, id: string): Promise<void> {
  await tx.deleteFrom('worker').where('id', '=', id).execute()
}
