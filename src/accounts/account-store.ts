import type { Db } from '../db/sqlite.ts'

type NewAccount = { id: string; name: string; createdAtS: number; mayUpload: boolean; mayImport: boolean }

export async function insertAccount(db: Db, account: NewAccount): Promise<void> {
  await db
    .insertInto('account')
    .values({ ...account, mayUpload: Number(account.mayUpload), mayImport: Number(account.mayImport) })
    .execute()
}

export type AccountChanges = {
  pageMax?: number
  limitFactor?: number
  streamLimit?: number
  whenFull?: 'refuse' | 'stop-oldest'
}

/** Changes the accounts that have this id or name. @returns their ids */
export async function updateAccounts(tx: Db, idOrName: string, changes: AccountChanges): Promise<string[]> {
  const rows = await tx
    .updateTable('account')
    .set(changes)
    .where(({ or, eb }) => or([eb('id', '=', idOrName), eb('name', '=', idOrName)]))
    .returning('id')
    .execute()
  return rows.map(({ id }) => id)
}

export async function countAccounts(db: Db): Promise<number> {
  const row = await db.selectFrom('account').select(db.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
  return Number(row.count)
}

export async function listAccounts(db: Db) {
  const rows = await db
    .selectFrom('account')
    .select([
      'id',
      'name',
      'createdAtS',
      'mayUpload',
      'mayImport',
      'disabled',
      'pageMax',
      'limitFactor',
      'streamLimit',
      'whenFull',
      'videoCount',
    ])
    .orderBy('createdAtS')
    .execute()
  return rows.map((row) => ({
    ...row,
    mayUpload: row.mayUpload === 1,
    mayImport: row.mayImport === 1,
    disabled: row.disabled === 1,
  }))
}
