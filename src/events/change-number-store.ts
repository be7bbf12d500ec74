import type { Db } from '../db/database.ts'

/** Rises with every change that a list of the account's videos could show. */
export async function findChangeNumber(db: Db, accountId: string): Promise<number> {
  const account = await db.selectFrom('account').select('changeNumber').where('id', '=', accountId).executeTakeFirst()
  return account?.changeNumber ?? 0
}
