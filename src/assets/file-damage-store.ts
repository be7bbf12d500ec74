import { type SqlBool, sql } from 'kysely'
import { isExtracted } from '../catalogue/poster-store.ts'
import type { Db } from '../db/database.ts'
import type { StoredFile } from './file-check.ts'

/** What a file is, apart from segments. */
export type FileKind = 'original' | 'poster' | 'poster-candidate' | 'caption' | 'mp4' | 'storyboard'

/** `name`: below its folder. */
export type FileName = { videoId: string; name: string }

/** A file that is not a segment, with what its rows say of it. `id`: of its row, in the order of which all are checked. */
export type CheckedFile = StoredFile &
  FileName & { folder: Exclude<StoredFile['folder'], 'segments'>; id: number; kind: FileKind; sizeBytes: number; damaged: number }

/**
 * The files of the next rows after this one, of videos that are not deleted; segments excepted.
 * @returns lastId: of the last row that was read; undefined at the end of all
 */
export async function listFilesAfter(
  db: Db,
  id: number,
  limit: number,
): Promise<{ files: CheckedFile[]; lastId: number | undefined }> {
  // A query of its own: as long as PostgreSQL has not analyzed its tables, it would join all of them first.
  const ids = await db
    .selectFrom('file')
    .select('id')
    .where('id', '>', id)
    .where('type', '!=', sql.lit('rendition'))
    .orderBy('id')
    .limit(limit)
    .execute()
  const lastId = ids.at(-1)?.id
  if (lastId === undefined) return { files: [], lastId }
  const rows = await storedFiles(db)
    .leftJoin('generation', (join) =>
      join.onRef('generation.videoId', '=', 'file.videoId').onRef('generation.number', '=', 'file.generation'),
    )
    .select(['file.id', 'file.type', 'file.videoId', 'file.damaged', 'file.generation', 'generation.wrappedContentKey'])
    .select(({ fn }) => [
      fn.coalesce('source.file', 'file.blob').as('name'),
      fn.coalesce('source.sizeBytes', 'file.sizeBytes').as('sizeBytes'),
      fn.coalesce('source.wrappedKey', 'file.wrappedKey').as('wrappedKey'),
      fn.coalesce('source.iv', 'file.iv').as('iv'),
      fn.coalesce('source.macs', 'file.macs').as('macs'),
    ])
    .where(
      'file.id',
      'in',
      ids.map((row) => row.id),
    )
    .orderBy('file.id')
    .$narrowType<{ type: FileKind; name: string }>()
    .execute()
  return { files: rows.map(({ type: kind, ...row }) => ({ ...row, kind, folder: FOLDERS[kind], sha256: null })), lastId }
}

const FOLDERS = {
  original: 'sources',
  poster: 'posters',
  'poster-candidate': 'posters',
  storyboard: 'posters',
  caption: 'files',
  mp4: 'files',
} as const

export async function totalFileSizeAfter(db: Db, id: number): Promise<number> {
  const row = await storedFiles(db)
    .select(({ fn }) => fn.sum<number | null>(fn.coalesce('source.sizeBytes', 'file.sizeBytes')).as('sizeBytes'))
    .where('file.id', '>', id)
    .executeTakeFirstOrThrow()
  return Number(row.sizeBytes ?? 0)
}

/** What is known of a file, and the generation that it can be made again from. Undefined: it, or its video, was deleted meanwhile. */
export async function findFileDamage(db: Db, { videoId, name }: FileName) {
  const row = await storedFiles(db)
    .select(['file.id', 'file.type', 'file.damaged', 'file.generation', 'file.attachmentId'])
    .where('file.videoId', '=', videoId)
    .where(({ fn }) => fn.coalesce('source.file', 'file.blob'), '=', name)
    .$narrowType<{ type: FileKind }>()
    .executeTakeFirst()
  if (!row) return undefined
  const { id, type: kind, damaged } = row
  return { id, kind, damaged, generation: kind === 'poster' && !isExtracted(row) ? null : row.generation }
}

export async function setFileDamaged(tx: Db, id: number, damaged: 0 | 1): Promise<void> {
  await tx.updateTable('file').set({ damaged }).where('id', '=', id).execute()
}

function storedFiles(db: Db) {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .leftJoin('source', (join) =>
      join
        .onRef('source.videoId', '=', 'file.videoId')
        .onRef('source.number', '=', 'file.sourceNumber')
        .on('file.type', '=', sql.lit('original')),
    )
    .where('file.type', '!=', sql.lit('rendition'))
    .where('video.deletedAtS', 'is', null)
    .where(sql<SqlBool>`coalesce(source.file, file.blob) is not null`)
}
