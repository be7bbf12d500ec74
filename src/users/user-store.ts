import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { ConsoleUserRow, NewConsoleUser } from '../db/tables.ts'

export async function insertUser(tx: Db, user: NewConsoleUser): Promise<void> {
  await tx.insertInto('consoleUser').values(user).execute()
}

/** Whether a name is taken by another person, in any account. */
export async function isNameTaken(db: Db, foldedName: string, ownId?: string): Promise<boolean> {
  const row = await db.selectFrom('consoleUser').select('id').where('foldedName', '=', foldedName).executeTakeFirst()
  return row !== undefined && row.id !== ownId
}

/** The names of all people but one, in all accounts. */
export async function listNames(db: Db, exceptId = ''): Promise<string[]> {
  const rows = await db.selectFrom('consoleUser').select('name').where('id', '!=', exceptId).execute()
  return rows.map(({ name }) => name)
}

export async function findUserByName(db: Db, foldedName: string): Promise<ConsoleUserRow | undefined> {
  return db.selectFrom('consoleUser').selectAll().where('foldedName', '=', foldedName).executeTakeFirst()
}

export async function findUser(db: Db, id: string): Promise<ConsoleUserRow | undefined> {
  return db.selectFrom('consoleUser').selectAll().where('id', '=', id).executeTakeFirst()
}

/** The oldest administrator who may sign in. */
export async function findFirstAdministrator(db: Db): Promise<ConsoleUserRow | undefined> {
  return db
    .selectFrom('consoleUser')
    .selectAll()
    .where(({ and }) => and({ isAdministrator: 1, disabled: 0 }))
    .orderBy('createdAtS')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
}

/** The users of an account, the oldest first, with how and when they sign in. */
export async function listUsers(db: Db, accountId: string) {
  const rows = await db
    .selectFrom('consoleUser')
    .select(['id', 'name', 'email', 'role', 'isAdministrator', 'disabled', 'createdAtS', 'wrappedPasswordHash'])
    .select(({ selectFrom }) => [
      selectFrom('passkey')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .whereRef('passkey.consoleUserId', '=', 'consoleUser.id')
        .as('passkeyCount'),
      selectFrom('signIn')
        .select(({ fn }) => fn.max('signIn.lastSeenAtS').as('lastSeenAtS'))
        .whereRef('signIn.consoleUserId', '=', 'consoleUser.id')
        .as('lastSeenAtS'),
    ])
    .where('accountId', '=', accountId)
    .orderBy('createdAtS')
    .orderBy('id')
    .execute()
  return rows.map(({ wrappedPasswordHash, isAdministrator, disabled, passkeyCount, ...row }) => ({
    ...row,
    isAdministrator: isAdministrator === 1,
    disabled: disabled === 1,
    hasPassword: wrappedPasswordHash !== null,
    passkeyCount: Number(passkeyCount),
  }))
}

export async function listUserNames(db: Db, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('consoleUser').select(['id', 'name']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
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
  return hasRow(
    db
      .selectFrom('consoleUser')
      .where('disabled', '=', 0)
      .where(({ or, eb, exists, selectFrom }) =>
        or([
          eb('wrappedPasswordHash', 'is not', null),
          exists(selectFrom('passkey').select('passkey.id').whereRef('passkey.consoleUserId', '=', 'consoleUser.id')),
        ]),
      ),
  )
}

export async function setPasswordHash(tx: Db, id: string, wrappedPasswordHash: Buffer): Promise<void> {
  await tx.updateTable('consoleUser').set({ wrappedPasswordHash }).where('id', '=', id).execute()
}

export type UserChanges = Partial<Pick<ConsoleUserRow, 'name' | 'foldedName' | 'email' | 'role' | 'isAdministrator' | 'disabled'>>

export async function updateUser(tx: Db, id: string, changes: UserChanges): Promise<void> {
  await tx.updateTable('consoleUser').set(changes).where('id', '=', id).execute()
}

/** Whether an account has an owner who may sign in. */
export async function hasOwner(db: Db, accountId: string): Promise<boolean> {
  const owners = db.selectFrom('consoleUser').select('id').where('accountId', '=', accountId)
  return (await owners.where('role', '=', 'owner').where('disabled', '=', 0).limit(1).executeTakeFirst()) !== undefined
}

/** Removes a user that has neither sign-ins, passkeys nor links. */
export async function removeUser(tx: Db, id: string): Promise<void> {
  await tx.deleteFrom('consoleUser').where('id', '=', id).execute()
}
