import type { Db } from '../db/database.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { NewAuditEvent } from '../db/tables.ts'

/** Rows in one insert: SQLite allows 32 766 parameters in a statement. */
const MAX_INSERTED_ROWS = 1_000

export async function insertAuditEvents(tx: Db, events: readonly NewAuditEvent[]): Promise<void> {
  for (let first = 0; first < events.length; first += MAX_INSERTED_ROWS) {
    await tx
      .insertInto('auditEvent')
      .values(events.slice(first, first + MAX_INSERTED_ROWS))
      .execute()
  }
}

export async function listAuditRows(db: Db, accountId: string | undefined, { limit, below }: { limit: number; below?: number }) {
  return db
    .selectFrom('auditEvent')
    .select(['id', 'atS', 'kind', 'subject', 'actor', 'accountId', 'details'])
    .$if(accountId !== undefined, (events) => events.where('accountId', '=', accountId ?? ''))
    .$if(below !== undefined, (events) => events.where('id', '<', below ?? 0))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** What the account did to one thing, the newest first. */
export async function listAuditRowsOf(db: Db, accountId: string, subject: string, limit: number) {
  return db
    .selectFrom('auditEvent')
    .select(['atS', 'kind', 'actor', 'details'])
    .where(({ and }) => and({ accountId, subject }))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** When the installation, no account, last did this to one thing. */
export async function findLastOfInstallation(db: Db, kind: string, subject: string): Promise<number | undefined> {
  const row = await db
    .selectFrom('auditEvent')
    .select('atS')
    .where('accountId', 'is', null)
    .where(({ and }) => and({ subject, kind }))
    .orderBy('id', 'desc')
    .executeTakeFirst()
  return row?.atS
}

/** Removes up to `limit` events of before then, the oldest first. @returns how many */
export function removeAuditEventsBefore(tx: Db, beforeS: number, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'auditEvent', key: ['id'], age: 'atS' }, beforeS, limit)
}
