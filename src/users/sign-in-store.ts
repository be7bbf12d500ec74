import type { Insertable } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { Tables } from '../db/tables.ts'

export async function insertSignIn(tx: Db, signIn: Insertable<Tables['signIn']>): Promise<void> {
  await tx.insertInto('signIn').values(signIn).execute()
}

/** A sign-in with its user and the account that is looked at. */
export type SignInDetails = NonNullable<Awaited<ReturnType<typeof findSignIn>>>

const selectSignIn = prepared<{ tokenHash: Buffer }>()((db, value) =>
  db
    .selectFrom('signIn')
    .innerJoin('consoleUser', 'consoleUser.id', 'signIn.consoleUserId')
    .innerJoin('account', 'account.id', 'signIn.accountId')
    .select([
      'signIn.id',
      'signIn.method',
      'signIn.createdAtS',
      'signIn.lastSeenAtS',
      'signIn.expiresAtS',
      'consoleUser.id as consoleUserId',
      'consoleUser.name as userName',
      'consoleUser.email',
      'consoleUser.accountId as ownAccountId',
      'consoleUser.role',
      'consoleUser.isAdministrator',
      'consoleUser.wrappedPasswordHash',
      'consoleUser.disabled as userDisabled',
      'account.id as accountId',
      'account.name as accountName',
      'account.disabled as accountDisabled',
      'mayUpload',
      'mayImport',
      'pageMax',
      'changeNumber',
      'limitFactor',
    ])
    .where('signIn.tokenHash', '=', value('tokenHash')),
)

export async function findSignIn(db: Db, tokenHash: Buffer) {
  const [row] = (await selectSignIn(db, { tokenHash })).rows
  return row
}

export async function saveSignInSeen(tx: Db, id: string, lastSeenAtS: number): Promise<void> {
  await tx.updateTable('signIn').set({ lastSeenAtS }).where('id', '=', id).execute()
}

/** Whether a sign-in has not ended, and its person is not disabled. */
export async function isLiveSignIn(db: Db, id: string, nowS: number): Promise<boolean> {
  return hasRow(
    db
      .selectFrom('signIn')
      .innerJoin('consoleUser', 'consoleUser.id', 'signIn.consoleUserId')
      .where('signIn.id', '=', id)
      .where('signIn.expiresAtS', '>', nowS)
      .where('consoleUser.disabled', '=', 0),
  )
}

/** Ends the sign-in of a token. @returns it; undefined: there was none */
export async function removeSignInByToken(tx: Db, tokenHash: Buffer) {
  return tx
    .deleteFrom('signIn')
    .where('tokenHash', '=', tokenHash)
    .returning(['id', 'consoleUserId', 'accountId'])
    .executeTakeFirst()
}

/** The sign-ins of a person that have not ended, the newest first. */
export async function listSignIns(db: Db, consoleUserId: string, seenAfterS: number, nowS: number) {
  const rows = await db
    .selectFrom('signIn')
    .select(['id', 'method', 'address', 'userAgent', 'createdAtS', 'lastSeenAtS', 'expiresAtS'])
    .where('consoleUserId', '=', consoleUserId)
    .where('expiresAtS', '>', nowS)
    .where('lastSeenAtS', '>', seenAfterS)
    .execute()
  return rows.toSorted((a, b) => b.createdAtS - a.createdAtS)
}

/** Ends one sign-in of a person. False: there is none. */
export async function removeSignIn(tx: Db, consoleUserId: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('signIn')
    .where(({ and }) => and({ id, consoleUserId }))
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** Ends all sign-ins of a person but one. @returns how many */
export async function removeOtherSignIns(tx: Db, consoleUserId: string, exceptId: string): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('signIn')
    .where('consoleUserId', '=', consoleUserId)
    .where('id', '!=', exceptId)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** Sets the account that is looked at. False: the sign-in has ended, or there is no such account. */
export async function setLookedAtAccount(tx: Db, id: string, accountId: string): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('signIn')
    .set({ accountId })
    .where('id', '=', id)
    .where(({ exists, selectFrom }) => exists(selectFrom('account').select('account.id').where('account.id', '=', accountId)))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Ends all sign-ins of a person. */
export async function removeSignInsOfUser(tx: Db, consoleUserId: string): Promise<void> {
  await tx.deleteFrom('signIn').where('consoleUserId', '=', consoleUserId).execute()
}

/** Removes up to `limit` sign-ins that ended before then. @returns how many */
export function removeOldSignIns(tx: Db, beforeS: number, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'signIn', key: ['id'], age: 'expiresAtS' }, beforeS, limit)
}

/** Makes a link the only one of its user. */
export async function replaceLink(tx: Db, link: Insertable<Tables['signInLink']>): Promise<void> {
  await removeLinkOfUser(tx, link.consoleUserId)
  await tx.insertInto('signInLink').values(link).execute()
}

export async function removeLinkOfUser(tx: Db, consoleUserId: string): Promise<void> {
  await tx.deleteFrom('signInLink').where('consoleUserId', '=', consoleUserId).execute()
}

/** Spends a link: of any number of concurrent calls one gets its user. */
export async function spendLink(tx: Db, hash: Buffer, nowS: number): Promise<string | undefined> {
  const spent = await tx
    .deleteFrom('signInLink')
    .where('hash', '=', hash)
    .where('expiresAtS', '>', nowS)
    .returning('consoleUserId')
    .executeTakeFirst()
  return spent?.consoleUserId
}

export async function removeOldLinks(tx: Db, nowS: number): Promise<void> {
  await tx.deleteFrom('signInLink').where('expiresAtS', '<=', nowS).execute()
}
