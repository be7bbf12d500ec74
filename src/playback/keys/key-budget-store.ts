import { sql } from 'kysely'
import type { Db } from '../../db/database.ts'
import { prepared } from '../../db/prepared.ts'
import type { KeyBudgetRow } from '../../db/tables.ts'

export type BudgetKey = Pick<KeyBudgetRow, 'accountId' | 'viewer' | 'videoId' | 'sourceNumber'>

export async function findKeyBudget(
  db: Db,
  { accountId, viewer, videoId, sourceNumber }: BudgetKey,
): Promise<KeyBudgetRow | undefined> {
  return db
    .selectFrom('keyBudget')
    .selectAll()
    .where((row) => row.and({ accountId, viewer, videoId, sourceNumber }))
    .executeTakeFirst()
}

/** Changes no row that has another version than `version`, from which the change started; 0: there was none. */
export const saveKeyBudget = prepared<KeyBudgetRow>()((db, value) =>
  db
    .insertInto('keyBudget')
    .values({
      accountId: value('accountId'),
      viewer: value('viewer'),
      videoId: value('videoId'),
      sourceNumber: value('sourceNumber'),
      levelS: value('levelS'),
      earnedAtS: value('earnedAtS'),
      released: value('released'),
      releasedOf: value('releasedOf'),
      earning: value('earning'),
      usedAtS: value('usedAtS'),
      version: sql`${value('version')} + 1`,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['accountId', 'viewer', 'videoId', 'sourceNumber'])
        .doUpdateSet((row) => ({
          levelS: row.ref('excluded.levelS'),
          earnedAtS: row.ref('excluded.earnedAtS'),
          released: row.ref('excluded.released'),
          releasedOf: row.ref('excluded.releasedOf'),
          earning: row.ref('excluded.earning'),
          usedAtS: row.ref('excluded.usedAtS'),
          version: row.ref('excluded.version'),
        }))
        .where('keyBudget.version', '=', value('version')),
    ),
)

/**
 * Removes some of the budgets that were last used before then. One of a file that was replaced is kept as long as what was made from it,
 * which may play again.
 * @returns how many
 */
export async function removeOldKeyBudgets(tx: Db, beforeS: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`delete from key_budget where (account_id, viewer, video_id, source_number) in
    (select account_id, viewer, video_id, source_number from key_budget where used_at_s < ${beforeS} and not exists
      (select 1 from generation where generation.video_id = key_budget.video_id
        and generation.source_number = key_budget.source_number and kept_until_s is not null)
      order by used_at_s limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
