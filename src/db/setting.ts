import type { Db } from './database.ts'

/** A value that the installation keeps for itself. */
export async function findSetting(db: Db, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirst()
  return row?.value
}

export async function saveSetting(tx: Db, name: string, value: string): Promise<void> {
  await tx
    .insertInto('setting')
    .values({ name, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute()
}

export async function removeSetting(tx: Db, name: string): Promise<void> {
  await tx.deleteFrom('setting').where('name', '=', name).execute()
}
