import type { Db } from '../db/database.ts'
import type { NewAuditEvent } from '../db/tables.ts'

/** Rows of one statement: SQLite takes 32 766 values in one. */
const INSERTED_AT_ONCE = 1_000

export async function insertAuditEvents(tx: Db, acts: readonly NewAuditEvent[]): Promise<void> {
  for (let first = 0; first < acts.length; first += INSERTED_AT_ONCE) {
    await tx
      .insertInto('act')
      .values(acts.slice(first, first + INSERTED_AT_ONCE))
      .execute()
  }
}

export async function listAuditRows(db: Db, accountId: string | undefined, limit: number) {
  return db
    .selectFrom('act')
    .select(['atS', 'kind', 'subject', 'actor', 'accountId', 'details'])
    .$if(accountId !== undefined, (acts) => acts.where('accountId', '=', accountId ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Removes some of the acts before then, the oldest first. @returns how many */
export async function removeAuditEventsBefore(tx: Db, beforeS: number, limit: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('act')
    .where('id', 'in', (of) => of.selectFrom('act').select('id').where('atS', '<', beforeS).orderBy('atS').limit(limit))
    .executeTakeFirst()
  return Number(numDeletedRows)
}
