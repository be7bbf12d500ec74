import { sql } from 'kysely'
import type { Db } from '../../db/database.ts'
import { prepared } from '../../db/prepared.ts'
import type { KeyBudgetRow } from '../../db/tables.ts'

export type BudgetKey = Pick<KeyBudgetRow, 'accountId' | 'viewer' | 'videoId' | 'generation'>

export async function findKeyBudget(db: Db, { generation, ...key }: BudgetKey): Promise<KeyBudgetRow | undefined> {
  return selectBudgets(db, key).where('generation', '=', generation).executeTakeFirst()
}

/** The same budget for the last generation before this one. */
export async function findFormerKeyBudget(db: Db, { generation, ...key }: BudgetKey): Promise<KeyBudgetRow | undefined> {
  return selectBudgets(db, key).where('generation', '<', generation).orderBy('generation', 'desc').limit(1).executeTakeFirst()
}

/** A budget for each generation of the video. */
function selectBudgets(db: Db, { accountId, viewer, videoId }: Omit<BudgetKey, 'generation'>) {
  return db
    .selectFrom('keyBudget')
    .selectAll()
    .where((row) => row.and({ accountId, viewer, videoId }))
}

/** Changes no row that has another version than `version`, from which the change started; 0: there was none. */
export const saveKeyBudget = prepared<KeyBudgetRow>()((db, value) =>
  db
    .insertInto('keyBudget')
    .values({
      accountId: value('accountId'),
      viewer: value('viewer'),
      videoId: value('videoId'),
      generation: value('generation'),
      levelS: value('levelS'),
      earnedAtS: value('earnedAtS'),
      released: value('released'),
      usedAtS: value('usedAtS'),
      version: sql`${value('version')} + 1`,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['accountId', 'viewer', 'videoId', 'generation'])
        .doUpdateSet((row) => ({
          levelS: row.ref('excluded.levelS'),
          earnedAtS: row.ref('excluded.earnedAtS'),
          released: row.ref('excluded.released'),
          usedAtS: row.ref('excluded.usedAtS'),
          version: row.ref('excluded.version'),
        }))
        .where('keyBudget.version', '=', value('version')),
    ),
)

/** Removes some of the budgets that were last used before then. @returns how many */
export async function removeOldKeyBudgets(tx: Db, beforeS: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`delete from key_budget where (account_id, viewer, video_id, generation) in
    (select account_id, viewer, video_id, generation from key_budget where used_at_s < ${beforeS} order by used_at_s limit ${limit})`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}
