import { sql } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { FileRow, NewFile } from '../db/tables.ts'
import type { GenerationKey } from './generation-key.ts'
import { findVideo } from './video-store.ts'

/** The files of which only one attachment is enabled at a time: the posters, the captions of one language, the MP4. */
type Slot = Pick<FileRow, 'videoId' | 'type' | 'language'>

/**
 * Adds the files of one call to a video and enables them in place of the previous ones.
 * @returns the files' ids, in their order; undefined: the account has no such video
 */
export async function insertAttachment(tx: Db, accountId: string, slot: Slot, files: readonly NewFile[]) {
  if (!(await findVideo(tx, accountId, slot.videoId))) return undefined
  await updateSlot(tx, slot).set({ enabled: 0 }).where('enabled', '=', 1).execute()
  const rows = await tx
    .insertInto('file')
    .values([...files])
    .returning('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** Removes a file. If its slot is empty then, the previous attachment is enabled again. */
export async function removeFile(tx: Db, file: FileRow): Promise<void> {
  await tx.deleteFrom('file').where('id', '=', file.id).execute()
  if (await hasPublicFile(tx, file)) return
  const newest = await tx
    .selectFrom('file')
    .select(['attachmentId', 'generation'])
    .where(({ and }) => and({ videoId: file.videoId, type: file.type }))
    .where('language', 'is not distinct from', file.language)
    .where(isOfPlayed)
    .where('hidden', '=', 0)
    .where((of) => of.or([of('type', '!=', 'caption'), of('blob', 'is not', null)]))
    .orderBy('generation', (by) => by.asc().nullsFirst()) // files from owners come before extracted posters
    .orderBy('id', 'desc')
    .executeTakeFirst()
  if (newest)
    await updateSlot(tx, file)
      .set({ enabled: 1 })
      .where('attachmentId', '=', newest.attachmentId)
      .where('generation', 'is not distinct from', newest.generation)
      .execute()
}

/** Shows captions in place of others in their language, or hides them; those that they replaced stay replaced. */
export async function setShown(tx: Db, file: FileRow, isShown: boolean): Promise<void> {
  if (isShown) await updateSlot(tx, file).set({ enabled: 0 }).where('enabled', '=', 1).execute()
  await tx
    .updateTable('file')
    .set({ enabled: Number(isShown), hidden: Number(!isShown) })
    .where('id', '=', file.id)
    .execute()
}

/** Marks automatic captions as looked at. */
export async function setReviewed(tx: Db, { id }: Pick<FileRow, 'id'>): Promise<void> {
  await tx.updateTable('file').set({ automatic: 0 }).where('id', '=', id).execute()
}

/** Files that belong to no generation, or to the one that their video plays. */
const isOfPlayed = sql<boolean>`(file.generation is null
  or file.generation = (select video.generation from video where video.id = file.video_id))`

/** Of what plays: neither of what is kept of former files nor of what is to replace it. */
const isCurrent = sql<boolean>`(file.source_number is null
  or file.source_number = (select video.source_number from video where video.id = file.video_id))`

/**
 * Has a video's MP4 made again as a file of its own: the video plays something else now.
 * @returns the blob of the one before, which the caller removes after the commit; undefined when there was none
 */
export async function renewMp4(
  tx: Db,
  file: Pick<NewFile, 'videoId' | 'createdAtS' | 'widthPx' | 'heightPx'>,
): Promise<string | undefined> {
  const removed = await tx
    .deleteFrom('file')
    .where(({ and }) => and({ videoId: file.videoId, type: 'mp4' }))
    .returning('blob')
    .executeTakeFirst()
  if (removed)
    await tx
      .insertInto('file')
      .values({ ...file, type: 'mp4' })
      .execute()
  return removed?.blob ?? undefined
}

/** Whether a slot has an enabled file. */
export async function hasPublicFile(db: Db, { videoId, type, language }: Slot): Promise<boolean> {
  return hasRow(
    db
      .selectFrom('file')
      .where(({ and }) => and({ videoId, type }))
      .where('language', 'is not distinct from', language)
      .where('enabled', '=', 1),
  )
}

function updateSlot(tx: Db, { videoId, type, language }: Slot) {
  return tx
    .updateTable('file')
    .where(({ and }) => and({ videoId, type }))
    .where('language', 'is not distinct from', language)
}

/** With routes of their own: what lists files must not meet a type that it does not know. */
const UNLISTED = ['storyboard', 'poster-candidate'] as const

export async function findFile(db: Db, accountId: string, videoId: string, fileId: number): Promise<FileRow | undefined> {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .selectAll('file')
    .where(({ and }) => and({ 'file.id': fileId, 'file.videoId': videoId, 'video.accountId': accountId }))
    .where('file.type', 'not in', UNLISTED)
    .where('video.deletedAtS', 'is', null)
    .executeTakeFirst()
}

/** A file by its id alone, with its wrapped key; undefined once it, or its video, is deleted, and while its account is disabled. */
export async function findFileAnywhere(db: Db, fileId: number) {
  const row = await db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .innerJoin('account', 'account.id', 'video.accountId')
    .leftJoin('generation', (join) =>
      join.onRef('generation.videoId', '=', 'file.videoId').onRef('generation.number', '=', 'file.generation'),
    )
    .selectAll('file')
    .select(['generation.wrappedContentKey', 'video.accountId', 'video.timelineStartS'])
    .where('file.id', '=', fileId)
    .where('video.deletedAtS', 'is', null)
    .where('account.disabled', '=', 0)
    .executeTakeFirst()
  if (!row) return undefined
  const { wrappedContentKey, accountId, timelineStartS, ...file } = row
  return { file, accountId, wrappedContentKey, timelineStartS }
}

/** All files of what a video plays, in the order in which they were added. */
export async function listFileRows(db: Db, videoId: string): Promise<FileRow[]> {
  return db
    .selectFrom('file')
    .selectAll()
    .where('videoId', '=', videoId)
    .where(isOfPlayed)
    .where(isCurrent)
    .where('type', 'not in', UNLISTED)
    .orderBy('id')
    .execute()
}

/** The name of a poster's, a caption's or an MP4's blob: the video's id, then a random part. */
export const FILE_BLOB_NAME = /^([0-9a-f]{32})\/[\w-]{22}\.sealed$/

/** The blobs among these that belong to a file. */
export async function listReferencedFileBlobs(db: Db, blobs: readonly string[]): Promise<Set<string>> {
  const videoIds = new Set(blobs.map((blob) => FILE_BLOB_NAME.exec(blob)?.[1] ?? ''))
  const rows = await db
    .selectFrom('file')
    .select('blob')
    .where('videoId', 'in', [...videoIds])
    .execute()
  return new Set(rows.flatMap(({ blob }) => blob ?? []))
}

/** The ids of the files of a generation's renditions, by those of the renditions. */
export async function findRenditionFiles(db: Db, { videoId, generation }: GenerationKey): Promise<Map<number, number>> {
  const rows = await db
    .selectFrom('file')
    .select(['id', 'renditionId'])
    .where(({ and }) => and({ videoId, generation, type: 'rendition' }))
    .$narrowType<{ renditionId: number }>()
    .execute()
  return new Map(rows.map(({ id, renditionId }) => [renditionId, id]))
}

/** The enabled captions of a video, by language, each with its wrapped key. */
export async function listCaptions(db: Db, videoId: string) {
  return captionsOf(db, videoId).where('enabled', '=', 1).execute()
}

/** As `listCaptions`, with those that are hidden from viewers. */
export async function listHiddenCaptionsToo(db: Db, videoId: string) {
  return captionsOf(db, videoId)
    .where('blob', 'is not', null)
    .where(({ or }) => or({ enabled: 1, hidden: 1 }))
    .execute()
}

function captionsOf(db: Db, videoId: string) {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .select(['file.id', 'file.videoId', 'file.language', 'file.automatic', 'file.blob', 'file.generation', 'file.wrappedKey'])
    .where(({ and }) => and({ 'file.videoId': videoId, type: 'caption' }))
    .where('video.deletedAtS', 'is', null)
    .orderBy('language')
    .$narrowType<{ language: string; blob: string }>()
}
