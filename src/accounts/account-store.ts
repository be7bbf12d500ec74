import type { Db } from '../db/database.ts'

type NewAccount = { id: string; name: string; createdAtS: number; mayUpload: boolean; mayImport: boolean }

export async function insertAccount(db: Db, account: NewAccount): Promise<void> {
  await db
    .insertInto('account')
    .values({ ...account, mayUpload: Number(account.mayUpload), mayImport: Number(account.mayImport) })
    .execute()
}

export type AccountChanges = {
  name?: string
  mayUpload?: boolean
  mayImport?: boolean
  pageMax?: number
  limitFactor?: number
  streamLimit?: number
  whenFull?: 'refuse' | 'stop-oldest'
  otpDefaultsRemovable?: boolean
  deletesToTrash?: boolean
}

export async function updateAccount(tx: Db, accountId: string, changes: AccountChanges): Promise<void> {
  const { mayUpload, mayImport, whenFull, otpDefaultsRemovable, deletesToTrash, ...rest } = changes
  await tx
    .updateTable('account')
    .set({
      ...rest,
      ...(whenFull === undefined ? {} : { streamLimitPolicy: whenFull }),
      ...(otpDefaultsRemovable === undefined ? {} : { otpDefaultsRemovable: Number(otpDefaultsRemovable) }),
      ...(deletesToTrash === undefined ? {} : { deletesToTrash: Number(deletesToTrash) }),
      ...(mayUpload === undefined ? {} : { mayUpload: Number(mayUpload) }),
      ...(mayImport === undefined ? {} : { mayImport: Number(mayImport) }),
    })
    .where('id', '=', accountId)
    .execute()
}

/** False: it already was. */
export async function setDisabled(tx: Db, accountId: string, disabled: boolean): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('account')
    .set({ disabled: Number(disabled) })
    .where('id', '=', accountId)
    .where('disabled', '!=', Number(disabled))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function isAccountDisabled(db: Db, accountId: string): Promise<boolean> {
  const row = await db.selectFrom('account').select('disabled').where('id', '=', accountId).executeTakeFirst()
  return row?.disabled === 1
}

/** The ids of the accounts that have this id or name. */
export async function findAccountIds(db: Db, idOrName: string): Promise<string[]> {
  const rows = await db
    .selectFrom('account')
    .select('id')
    .where(({ or, eb }) => or([eb('id', '=', idOrName), eb('name', '=', idOrName)]))
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
      'streamLimitPolicy as whenFull',
      'otpDefaultsRemovable',
      'deletesToTrash',
      'videoCount',
    ])
    .orderBy('createdAtS')
    .execute()
  return rows.map((row) => ({
    ...row,
    mayUpload: row.mayUpload === 1,
    mayImport: row.mayImport === 1,
    disabled: row.disabled === 1,
    otpDefaultsRemovable: row.otpDefaultsRemovable === 1,
    deletesToTrash: row.deletesToTrash === 1,
  }))
}
