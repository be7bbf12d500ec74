import type { Db } from '../../db/database.ts'
import type { ServerKeyRow } from '../../db/tables.ts'

/** All of them, the newest last: there are as many as the installation has rotated. */
export async function listServerKeys(db: Db): Promise<ServerKeyRow[]> {
  return db.selectFrom('serverKey').selectAll().orderBy('createdAtS').orderBy('id').execute()
}

export async function insertServerKey(tx: Db, key: ServerKeyRow): Promise<void> {
  await tx.insertInto('serverKey').values(key).execute()
}
