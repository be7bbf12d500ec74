import { type Insertable, type Selectable, sql } from 'kysely'
import { ACCOUNT_ID_UNINDEXED, NOT_DELETED_UNINDEXED } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'

export type SourceRow = Selectable<Tables['source']>

export async function insertSource(tx: Db, source: Insertable<Tables['source']>): Promise<void> {
  await tx.insertInto('source').values(source).execute()
}

/** @param number absent: the source of what the video plays */
export async function findSource(db: Db, videoId: string, number?: number): Promise<SourceRow | undefined> {
  const current = db.selectFrom('video').select('sourceNumber').where('id', '=', videoId)
  return db
    .selectFrom('source')
    .selectAll()
    .where(({ and }) => and({ videoId, number: number ?? current }))
    .executeTakeFirst()
}

/** Of sources with the same bytes no more are looked at, of which those of other accounts count, too. */
const MAX_SAME_SOURCES = 1_000

/** Sets of which video of the account this one is a duplicate, if any: the oldest that exists. */
export async function setDuplicateOf(tx: Db, videoId: string, sha256: Buffer): Promise<void> {
  const same = await tx.selectFrom('source').select('videoId').where('sha256', '=', sha256).limit(MAX_SAME_SOURCES).execute()
  const oldest = await tx
    .selectFrom('video')
    .select('id')
    .where(
      'id',
      'in',
      same.map((row) => row.videoId).filter((id) => id !== videoId),
    )
    .where(ACCOUNT_ID_UNINDEXED, '=', ({ selectFrom }) => selectFrom('video').select('accountId').where('id', '=', videoId))
    .where(NOT_DELETED_UNINDEXED)
    .orderBy(sql`position + 0`) // an order that no index has: the few are sorted
    .limit(1)
    .executeTakeFirst()
  await tx
    .updateTable('video')
    .set({ duplicateOf: oldest?.id ?? null })
    .where('id', '=', videoId)
    .execute()
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

/** The blobs of what is being received over several requests, and is not a source yet. */
export async function listGrowingSources(db: Db): Promise<string[]> {
  const tables = ['import', 'resumableUpload'] as const
  const rows = await Promise.all(
    tables.map((table) => db.selectFrom(table).select('file').where('file', 'is not', null).execute()),
  )
  return rows.flat().flatMap(({ file }) => file ?? [])
}
