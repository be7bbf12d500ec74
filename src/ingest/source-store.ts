import type { Selectable } from 'kysely'
import type { Db } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'

export type SourceRow = Selectable<Tables['source']>

export async function insertSource(tx: Db, source: SourceRow): Promise<void> {
  await tx.insertInto('source').values(source).execute()
}

export async function findSource(db: Db, videoId: string): Promise<SourceRow | undefined> {
  return db.selectFrom('source').selectAll().where('videoId', '=', videoId).executeTakeFirst()
}

/** The name of a source's blob: the video's id, then a random part. */
export const SOURCE_BLOB_NAME = /^([0-9a-f]{32})\/[0-9a-f]{32}\.sealed$/

/** The blobs among these that are the source of a video, or what has arrived of one. */
export async function listReferencedSources(db: Db, blobs: readonly string[]): Promise<Set<string>> {
  const videoIds = new Set(blobs.map((blob) => SOURCE_BLOB_NAME.exec(blob)?.[1] ?? ''))
  const tables = ['source', 'import', 'resumableUpload'] as const
  const rows = await Promise.all(
    tables.map((table) =>
      db
        .selectFrom(table)
        .select('file')
        .where('videoId', 'in', [...videoIds])
        .execute(),
    ),
  )
  return new Set(rows.flat().flatMap(({ file }) => file ?? []))
}
