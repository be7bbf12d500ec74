import type { Db } from '../db/database.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { StoredResponseRow } from '../db/tables.ts'

/** The response stored under a key, if it was stored after `sinceS`. */
export async function findStoredResponse(
  db: Db,
  { accountId, idempotencyKey }: Pick<StoredResponseRow, 'accountId' | 'idempotencyKey'>,
  sinceS: number,
) {
  return db
    .selectFrom('storedResponse')
    .select(['requestHash', 'wrappedResponse'])
    .where(({ and }) => and({ accountId, idempotencyKey }))
    .where('respondedAtS', '>', sinceS)
    .executeTakeFirst()
}

/** Stores a response under a key, also in place of one from before `sinceS`. False: the key has a newer response. */
export async function insertStoredResponse(tx: Db, response: StoredResponseRow, sinceS: number): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('storedResponse')
    .values(response)
    .onConflict((conflict) =>
      conflict.columns(['accountId', 'idempotencyKey']).doUpdateSet(response).where('storedResponse.respondedAtS', '<=', sinceS),
    )
    .executeTakeFirst()
  return Number(numInsertedOrUpdatedRows) > 0
}

/** Removes some of the responses until then, the oldest first. @returns how many */
export function removeStoredResponsesUntil(tx: Db, untilS: number, limit: number): Promise<number> {
  const rows = { table: 'storedResponse', key: ['accountId', 'idempotencyKey'], age: 'respondedAtS' } as const
  return removeOldRows(tx, rows, untilS + 1, limit)
}
