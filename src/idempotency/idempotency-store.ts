import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import type { StoredResponseRow } from '../db/tables.ts'

/** The answer that is kept under a key since then. */
export async function findStoredResponse(
  db: Db,
  { accountId, idempotencyKey }: Pick<StoredResponseRow, 'accountId' | 'idempotencyKey'>,
  sinceS: number,
) {
  return db
    .selectFrom('storedResponse')
    .select(['requestHash', 'wrappedResponse'])
    .where('accountId', '=', accountId)
    .where('idempotencyKey', '=', idempotencyKey)
    .where('respondedAtS', '>', sinceS)
    .executeTakeFirst()
}

/** Keeps an answer under a key; one from before then makes room. False: the key has an answer. */
export async function insertStoredResponse(tx: Db, answer: StoredResponseRow, sinceS: number): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('storedResponse')
    .values(answer)
    .onConflict((conflict) =>
      conflict.columns(['accountId', 'idempotencyKey']).doUpdateSet(answer).where('storedResponse.respondedAtS', '<=', sinceS),
    )
    .executeTakeFirst()
  return Number(numInsertedOrUpdatedRows) > 0
}

/** Removes some of the answers before then, the oldest first. @returns how many */
export async function removeStoredResponsesBefore(tx: Db, beforeS: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`delete from stored_response where (account_id, idempotency_key) in
    (select account_id, idempotency_key from stored_response
      where responded_at_s <= ${beforeS} order by responded_at_s limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
