import type { Db } from '../db/database.ts'
import type { ConsoleUserRow, NewConsoleUser } from '../db/tables.ts'

export async function insertUser(tx: Db, user: NewConsoleUser): Promise<void> {
  await tx.insertInto('consoleUser').values(user).execute()
}

/** Whether a name is taken, in any account. */
export async function isNameTaken(db: Db, foldedName: string): Promise<boolean> {
  const row = await db.selectFrom('consoleUser').select('id').where('foldedName', '=', foldedName).executeTakeFirst()
  return row !== undefined
}

/** The user of a name, with whether the account is disabled. */
export async function findUserByName(db: Db, foldedName: string) {
  return db
    .selectFrom('consoleUser')
    .innerJoin('account', 'account.id', 'consoleUser.accountId')
    .selectAll('consoleUser')
    .select('account.disabled as accountDisabled')
    .where('foldedName', '=', foldedName)
    .executeTakeFirst()
}

export async function findUser(db: Db, id: string): Promise<ConsoleUserRow | undefined> {
  return db.selectFrom('consoleUser').selectAll().where('id', '=', id).executeTakeFirst()
}

/** The oldest administrator who may sign in. */
export async function findFirstAdministrator(db: Db): Promise<ConsoleUserRow | undefined> {
  return db
    .selectFrom('consoleUser')
    .selectAll()
    .where('isAdministrator', '=', 1)
    .where('disabled', '=', 0)
    .orderBy('createdAtS')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
}

/** The users of all accounts, the oldest first. */
export async function listAllUsers(db: Db) {
  const rows = await db
    .selectFrom('consoleUser')
    .innerJoin('account', 'account.id', 'consoleUser.accountId')
    .select([
      'consoleUser.name',
      'account.name as account',
      'role',
      'isAdministrator',
      'consoleUser.disabled',
      'consoleUser.createdAtS',
    ])
    .orderBy('consoleUser.createdAtS')
    .orderBy('consoleUser.id')
    .execute()
  return rows.map(({ isAdministrator, disabled, ...row }) => ({
    ...row,
    isAdministrator: isAdministrator === 1,
    disabled: disabled === 1,
  }))
}

/** Whether a person can sign in without a link. */
export async function hasUserWithCredential(db: Db): Promise<boolean> {
  const row = await db
    .selectFrom('consoleUser')
    .select('id')
    .where('disabled', '=', 0)
    .where(({ or, eb, exists, selectFrom }) =>
      or([
        eb('wrappedPasswordHash', 'is not', null),
        exists(selectFrom('passkey').select('passkey.id').whereRef('passkey.consoleUserId', '=', 'consoleUser.id')),
      ]),
    )
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

export async function setPasswordHash(tx: Db, id: string, wrappedPasswordHash: Buffer): Promise<void> {
  await tx.updateTable('consoleUser').set({ wrappedPasswordHash }).where('id', '=', id).execute()
}
