import type { Selectable } from 'kysely'
import type { Db } from '../db/sqlite.ts'
import type { Tables } from '../db/tables.ts'

export type SourceRow = Selectable<Tables['source']>

export async function insertSource(tx: Db, source: SourceRow): Promise<void> {
  await tx.insertInto('source').values(source).execute()
}

export async function findSource(db: Db, videoId: string): Promise<SourceRow | undefined> {
  return db.selectFrom('source').selectAll().where('videoId', '=', videoId).executeTakeFirst()
}
