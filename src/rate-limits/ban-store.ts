import type { ExpressionBuilder } from 'kysely'
import { countRows, hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { BanRow, NewBan, Tables } from '../db/tables.ts'

type BanKey = Pick<BanRow, 'scope' | 'budget' | 'subject'>

export async function insertStrike(tx: Db, { scope, budget, subject }: BanKey, atS: number): Promise<void> {
  await tx.insertInto('strike').values({ scope, subject, budget, atS }).execute()
}

export async function countStrikes(db: Db, { scope, budget, subject }: BanKey, afterS: number): Promise<number> {
  return countRows(
    db
      .selectFrom('strike')
      .where(({ and }) => and({ scope, subject, budget }))
      .where('atS', '>', afterS),
  )
}

/** Makes the ban, or puts it in the place of an older one. */
export async function saveBan(tx: Db, ban: NewBan): Promise<void> {
  const { beganAtS, endsAtS } = ban
  await tx
    .insertInto('ban')
    .values(ban)
    .onConflict((conflict) => conflict.columns(['scope', 'subject', 'budget']).doUpdateSet({ beganAtS, endsAtS }))
    .execute()
}

export async function findCurrentBan(tx: Db, { scope, budget, subject }: BanKey, nowS: number): Promise<BanRow | undefined> {
  return tx
    .selectFrom('ban')
    .selectAll()
    .where((row) => row.and({ scope, budget, subject }))
    .where('endsAtS', '>', nowS)
    .executeTakeFirst()
}

/** Extends a current ban; one that was lifted stays lifted. */
export async function lengthenBan(tx: Db, { scope, budget, subject }: BanKey, endsAtS: number): Promise<void> {
  await tx
    .updateTable('ban')
    .set({ endsAtS })
    .where(({ and }) => and({ scope, subject, budget }))
    .execute()
}

export async function listBanRows(db: Db, nowS: number): Promise<BanRow[]> {
  return db.selectFrom('ban').selectAll().where('endsAtS', '>', nowS).orderBy('endsAtS', 'desc').execute()
}

export async function findAccountOfUser(db: Db, consoleUserId: string): Promise<string | undefined> {
  const row = await db.selectFrom('consoleUser').select('accountId').where('id', '=', consoleUserId).executeTakeFirst()
  return row?.accountId
}

/** The current bans of an account, its keys and its users. */
export async function listAccountBanRows(db: Db, accountId: string, nowS: number): Promise<BanRow[]> {
  return db
    .selectFrom('ban')
    .selectAll()
    .where('endsAtS', '>', nowS)
    .where((where) => isOfAccount(where, accountId))
    .orderBy('endsAtS', 'desc')
    .execute()
}

/** Whether the account, one of its keys or one of its users is the subject of a ban. */
export async function hasAccountBan(db: Db, accountId: string, subject: string): Promise<boolean> {
  return hasRow(
    db
      .selectFrom('ban')
      .where('subject', '=', subject)
      .where((where) => isOfAccount(where, accountId)),
  )
}

/** Removes the ban of an account, of one of its keys or of one of its users. False: there is none. */
export async function removeAccountBan(tx: Db, accountId: string, subject: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('ban')
    .where('subject', '=', subject)
    .where((where) => isOfAccount(where, accountId))
    .executeTakeFirst()
  return numDeletedRows > 0n
}

function isOfAccount({ and, or, eb }: ExpressionBuilder<Tables, 'ban'>, accountId: string) {
  return or([
    and([eb('scope', '=', 'account'), eb('subject', '=', accountId)]),
    and([
      eb('scope', '=', 'key'),
      eb('subject', 'in', (of) => of.selectFrom('apiKey').select('id').where('accountId', '=', accountId)),
    ]),
    and([
      eb('scope', '=', 'user'),
      eb('subject', 'in', (of) => of.selectFrom('consoleUser').select('id').where('accountId', '=', accountId)),
    ]),
  ])
}

/** Removes the bans of a subject: there may be one for each class of calls. */
export async function removeBans(tx: Db, subject: string): Promise<Pick<BanRow, 'scope'>[]> {
  return tx.deleteFrom('ban').where('subject', '=', subject).returning('scope').execute()
}

export async function removeStrikes(tx: Db, subject: string): Promise<void> {
  await tx.deleteFrom('strike').where('subject', '=', subject).execute()
}

export async function removeOldBans(tx: Db, nowS: number, strikesBeforeS: number): Promise<void> {
  await tx.deleteFrom('ban').where('endsAtS', '<=', nowS).execute()
  await tx.deleteFrom('strike').where('atS', '<=', strikesBeforeS).execute()
}
