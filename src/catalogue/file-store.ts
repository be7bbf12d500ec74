import type { Db } from '../db/database.ts'
import type { FileRow, NewFile } from '../db/tables.ts'
import { findVideo } from './video-store.ts'

/** Files of which one addition shows at a time: the posters, the captions of one language, the MP4. */
type Place = Pick<FileRow, 'videoId' | 'type' | 'language'>

/**
 * Adds what one call brought to a video: it shows from now on, in the place of what was there before.
 * @returns the files' numbers, in their order; undefined: the account has no such video
 */
export async function insertAttachment(
  tx: Db,
  accountId: string,
  place: Place,
  files: readonly NewFile[],
): Promise<number[] | undefined> {
  if (!(await findVideo(tx, accountId, place.videoId))) return undefined
  await inPlace(tx, place).set({ enabled: 0 }).where('enabled', '=', 1).execute()
  const rows = await tx
    .insertInto('file')
    .values([...files])
    .returning('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** Removes a file. Where nothing shows in its place then, what came before it shows again. */
export async function removeFile(tx: Db, file: FileRow): Promise<void> {
  await tx.deleteFrom('file').where('id', '=', file.id).execute()
  if (await hasPublicFile(tx, file)) return
  const newest = await tx
    .selectFrom('file')
    .select('attachmentId')
    .where('videoId', '=', file.videoId)
    .where('type', '=', file.type)
    .where('language', 'is not distinct from', file.language)
    .orderBy('generation', (by) => by.asc().nullsFirst()) // what owners gave comes before what was drawn
    .orderBy('id', 'desc')
    .executeTakeFirst()
  if (newest) await inPlace(tx, file).set({ enabled: 1 }).where('attachmentId', '=', newest.attachmentId).execute()
}

/** Whether anything shows in a place. */
export async function hasPublicFile(db: Db, { videoId, type, language }: Place): Promise<boolean> {
  const shown = await db
    .selectFrom('file')
    .select('id')
    .where('videoId', '=', videoId)
    .where('type', '=', type)
    .where('language', 'is not distinct from', language)
    .where('enabled', '=', 1)
    .executeTakeFirst()
  return shown !== undefined
}

function inPlace(tx: Db, { videoId, type, language }: Place) {
  return tx
    .updateTable('file')
    .where('videoId', '=', videoId)
    .where('type', '=', type)
    .where('language', 'is not distinct from', language)
}

/** A file of a video of the account. */
export async function findFile(db: Db, accountId: string, videoId: string, fileId: number): Promise<FileRow | undefined> {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .selectAll('file')
    .where('file.id', '=', fileId)
    .where('file.videoId', '=', videoId)
    .where('video.accountId', '=', accountId)
    .where('video.deletedAtS', 'is', null)
    .executeTakeFirst()
}

/** A file by its number alone, with what opens it; undefined once it, or its video, is deleted, and while its account is disabled. */
export async function findFileAnywhere(db: Db, fileId: number) {
  const row = await db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .innerJoin('account', 'account.id', 'video.accountId')
    .leftJoin('generation', (join) =>
      join.onRef('generation.videoId', '=', 'file.videoId').onRef('generation.number', '=', 'file.generation'),
    )
    .selectAll('file')
    .select(['generation.wrappedContentKey', 'video.accountId'])
    .where('file.id', '=', fileId)
    .where('video.deletedAtS', 'is', null)
    .where('account.disabled', '=', 0)
    .executeTakeFirst()
  if (!row) return undefined
  const { wrappedContentKey, accountId, ...file } = row
  return { file, accountId, wrappedContentKey }
}

/** All files of a video, in the order in which they came. */
export async function listFileRows(db: Db, videoId: string): Promise<FileRow[]> {
  return db.selectFrom('file').selectAll().where('videoId', '=', videoId).orderBy('id').execute()
}

/** The name of a poster's, a caption's or an MP4's blob: its video, then a name of its own. */
export const FILE_BLOB_NAME = /^([0-9a-f]{32})\/[\w-]{22}\.sealed$/

/** Which of these blobs a file is. */
export async function listReferencedFileBlobs(db: Db, blobs: readonly string[]): Promise<Set<string>> {
  const videoIds = new Set(blobs.map((blob) => FILE_BLOB_NAME.exec(blob)?.[1] ?? ''))
  const rows = await db
    .selectFrom('file')
    .select('blob')
    .where('videoId', 'in', [...videoIds])
    .execute()
  return new Set(rows.flatMap(({ blob }) => blob ?? []))
}

/** The captions of a video that show, by language, each with what opens it. */
export async function listCaptions(db: Db, videoId: string) {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .select(['file.id', 'file.videoId', 'file.language', 'file.blob', 'file.generation', 'file.wrappedKey'])
    .where('file.videoId', '=', videoId)
    .where('type', '=', 'caption')
    .where('enabled', '=', 1)
    .where('video.deletedAtS', 'is', null)
    .orderBy('language')
    .$narrowType<{ language: string; blob: string }>()
    .execute()
}
