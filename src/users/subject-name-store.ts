import { ACCOUNT_ID_UNINDEXED } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'

const TABLES = [
  ['consoleUser', 'name'],
  ['apiKey', 'name'],
  ['webhook', 'url'],
  ['video', 'title'],
] as const
/** A statement may have only so many values. */
const BATCH_SIZE = 500

/** What the account's people, keys, webhooks, videos and folders with these ids are called, as far as they still exist. */
export async function findSubjectNames(db: Db, accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const known = [...new Set(ids)]
  const names = new Map<string, string>()
  for (let first = 0; first < known.length; first += BATCH_SIZE) {
    const batch = known.slice(first, first + BATCH_SIZE)
    for (const [table, column] of TABLES) {
      const rows = await db
        .selectFrom(table)
        .select(['id', `${column} as called`])
        .where('id', 'in', batch)
        .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
        .execute()
      for (const { id, called } of rows) names.set(id, called)
    }
    const folders = await db
      .selectFrom('folder')
      .select(['id', 'name'])
      .where('accountId', '=', accountId)
      .where('id', 'in', batch)
      .execute()
    for (const { id, name } of folders) names.set(id, name)
  }
  return names
}
