import { sql, type Updateable } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'
import { filesToMake, OF_EXISTING_VIDEO } from './files-to-make.ts'
import { ACCOUNT_ID_UNINDEXED } from './video-store.ts'

/** Captions inside of an uploaded file: ffmpeg's number of their stream, and what it is called there. */
export type CaptionTrack = { streamIndex: number; language: string; title: string | null }

/** Adds captions that are still to be read out of the file, hidden. */
export async function insertEmbeddedCaptions(
  tx: Db,
  video: { videoId: string; createdAtS: number },
  tracks: readonly CaptionTrack[],
): Promise<void> {
  await tx
    .insertInto('file')
    .values(
      tracks.map(({ streamIndex, language, title }) => ({
        ...{ ...video, type: 'caption' as const, enabled: 0, hidden: 1 },
        ...{ language, streamIndex, streamTitle: title },
      })),
    )
    .execute()
}

export async function hasEmbeddedCaptions(db: Db, videoId: string): Promise<boolean> {
  return hasRow(db.selectFrom('file').where('videoId', '=', videoId).where('streamIndex', 'is not', null))
}

/** A video with captions that are still to be read, and the attempts started so far. */
export type UnreadCaptions = { videoId: string; attempts: number }

export async function listAccountsWithUnreadCaptions(db: Db, nowS: number): Promise<string[]> {
  const rows = await unreadCaptions(db, nowS).select('video.accountId').distinct().orderBy('video.accountId').execute()
  return rows.map(({ accountId }) => accountId)
}

/** The account's video whose captions have waited longest. */
export async function findUnreadCaptions(db: Db, accountId: string, nowS: number): Promise<UnreadCaptions | undefined> {
  return unreadCaptions(db, nowS)
    .select(['file.videoId', 'file.attempts'])
    .where(ACCOUNT_ID_UNINDEXED, '=', accountId)
    .orderBy('file.id')
    .limit(1)
    .executeTakeFirst()
}

function unreadCaptions(db: Db, nowS: number) {
  return filesToMake(db, 'captions', nowS).where(isUnread)
}

/** Counts an attempt before it runs, so that one that crashes this process counts, too. False: it is not as it was found. */
export async function beginReadingCaptions(tx: Db, { videoId, attempts }: UnreadCaptions): Promise<boolean> {
  return (await setAttempts(tx, videoId, attempts + 1)) > 0n
}

/** Undoes the count of an attempt that failed for a reason outside the video. */
export async function refundReadingCaptions(tx: Db, { videoId, attempts }: UnreadCaptions): Promise<void> {
  await setAttempts(tx, videoId, attempts)
}

async function setAttempts(tx: Db, videoId: string, attempts: number): Promise<bigint> {
  const { numUpdatedRows } = await tx
    .updateTable('file')
    .set({ attempts })
    .where('videoId', '=', videoId)
    .where(isUnread)
    .executeTakeFirst()
  return numUpdatedRows
}

/** Captions whose text is still inside of the uploaded file. Literals, so that their partial index is used. */
const isUnread = sql<boolean>`file.type = 'caption' and file.blob is null and file.problem is null and file.stream_index is not null`

/** Captions of a video that are still to be read. */
type UnreadTrack = { id: number; language: string; streamIndex: number }

export async function listUnreadTracks(db: Db, videoId: string): Promise<UnreadTrack[]> {
  return db
    .selectFrom('file')
    .select(['id', 'language', 'streamIndex'])
    .where('videoId', '=', videoId)
    .where(isUnread)
    .orderBy('id')
    .$narrowType<{ language: string; streamIndex: number }>()
    .execute()
}

/** Records what was read of captions. False: they, or their video, were deleted meanwhile. */
export async function finishReadingCaptions(tx: Db, id: number, outcome: Updateable<Tables['file']>): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('file')
    .set(outcome)
    .where('id', '=', id)
    .where(isUnread)
    .where(OF_EXISTING_VIDEO)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Gives all unread captions of a video up. */
export async function failReadingCaptions(tx: Db, videoId: string, problem: string): Promise<void> {
  await tx.updateTable('file').set({ problem }).where('videoId', '=', videoId).where(isUnread).execute()
}
