import type { Db } from '../db/sqlite.ts'
import type { KeptAnswerRow } from '../db/tables.ts'

/** The answer that is kept under a key since then. */
export async function findAnswer(
  db: Db,
  { accountId, idempotencyKey }: Pick<KeptAnswerRow, 'accountId' | 'idempotencyKey'>,
  sinceS: number,
) {
  return db
    .selectFrom('keptAnswer')
    .select(['requestHash', 'wrappedAnswer'])
    .where('accountId', '=', accountId)
    .where('idempotencyKey', '=', idempotencyKey)
    .where('answeredAtS', '>', sinceS)
    .executeTakeFirst()
}

/** Keeps an answer under a key; one from before then makes room. False: the key has an answer. */
export async function insertAnswer(tx: Db, answer: KeptAnswerRow, sinceS: number): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('keptAnswer')
    .values(answer)
    .onConflict((conflict) => conflict.doUpdateSet(answer).where('keptAnswer.answeredAtS', '<=', sinceS))
    .executeTakeFirst()
  return Number(numInsertedOrUpdatedRows) > 0
}

export async function removeAnswersBefore(tx: Db, beforeS: number): Promise<void> {
  await tx.deleteFrom('keptAnswer').where('answeredAtS', '<=', beforeS).execute()
}
