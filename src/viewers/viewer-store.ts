import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { ViewerRow } from '../db/tables.ts'

/** As an OTP names its viewer. */
export type ViewerName = Pick<ViewerRow, 'name' | 'email'>

/** What the newest OTP says of a viewer counts; what it leaves out is kept. */
export const saveViewerName = prepared<ViewerRow>()((db, value) =>
  db
    .insertInto('viewer')
    .columns(['accountId', 'userId', 'name', 'email', 'namedAtS'])
    .values({
      accountId: value('accountId'),
      userId: value('userId'),
      name: value('name'),
      email: value('email'),
      namedAtS: value('namedAtS'),
    })
    .onConflict((conflict) =>
      conflict.columns(['accountId', 'userId']).doUpdateSet((row) => ({
        name: row.fn.coalesce('excluded.name', 'viewer.name'),
        email: row.fn.coalesce('excluded.email', 'viewer.email'),
        namedAtS: row.ref('excluded.namedAtS'),
      })),
    ),
)

/** A statement may have only so many values. */
const BATCH_SIZE = 500

/** What the account calls the viewers of these rows; those without a name are missing. */
export async function findViewerNames(
  db: Db,
  accountId: string,
  rows: readonly { userId: string | null }[],
): Promise<ReadonlyMap<string, ViewerName>> {
  const ids = [...new Set(rows.map(({ userId }) => userId))].filter((id) => id !== null)
  const names = new Map<string, ViewerName>()
  for (let first = 0; first < ids.length; first += BATCH_SIZE) {
    const found = await db
      .selectFrom('viewer')
      .select(['userId', 'name', 'email'])
      .where('accountId', '=', accountId)
      .where('userId', 'in', ids.slice(first, first + BATCH_SIZE))
      .execute()
    for (const { userId, ...name } of found) names.set(userId, name)
  }
  return names
}

/** Removes some of the names that no OTP has given since then. @returns how many */
export function removeOldViewerNames(tx: Db, beforeS: number, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'viewer', key: ['accountId', 'userId'], age: 'namedAtS' }, beforeS, limit)
}
