import type { Db } from '../db/database.ts'
import type { PasskeyRow } from '../db/tables.ts'

/** False: the credential is registered already. */
export async function insertPasskey(tx: Db, passkey: PasskeyRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('passkey')
    .values(passkey)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .executeTakeFirst()
  return Number(numInsertedOrUpdatedRows) > 0
}

/** The oldest first. A person has a few. */
export async function listPasskeys(db: Db, consoleUserId: string): Promise<PasskeyRow[]> {
  const rows = await db.selectFrom('passkey').selectAll().where('consoleUserId', '=', consoleUserId).orderBy('id').execute()
  return rows.toSorted((a, b) => a.createdAtS - b.createdAtS)
}

export async function findPasskey(db: Db, id: string): Promise<PasskeyRow | undefined> {
  return db.selectFrom('passkey').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Records a use. False: the authenticator's count has not risen, so there are two of it, or another call was first. */
export async function savePasskeyUse(
  tx: Db,
  { id, signCount, lastUsedAtS }: Pick<PasskeyRow, 'id' | 'signCount' | 'lastUsedAtS'>,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('passkey')
    .set({ signCount, lastUsedAtS })
    .where('id', '=', id)
    .where('signCount', signCount === 0 ? '=' : '<', signCount) // 0: this one does not count
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** False: the person has no such passkey. */
export async function removePasskey(tx: Db, consoleUserId: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('passkey')
    .where(({ and }) => and({ id, consoleUserId }))
    .executeTakeFirst()
  return numDeletedRows > 0n
}

export async function removePasskeysOfUser(tx: Db, consoleUserId: string): Promise<void> {
  await tx.deleteFrom('passkey').where('consoleUserId', '=', consoleUserId).execute()
}
