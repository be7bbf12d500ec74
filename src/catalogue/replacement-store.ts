import type { Insertable, Updateable } from 'kysely'
import type { Db } from '../db/database.ts'
import type { ReplacementRow, Tables } from '../db/tables.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { findAccountOfVideo, findVideo } from './video-store.ts'

/** The replacement of a video that is being made, or that has failed. */
export async function findReplacement(db: Db, videoId: string): Promise<ReplacementRow | undefined> {
  return db.selectFrom('replacement').selectAll().where('videoId', '=', videoId).executeTakeFirst()
}

/** Those of the videos that have one. */
export async function listReplacements(db: Db, videoIds: readonly string[]): Promise<Map<string, ReplacementRow>> {
  if (videoIds.length === 0) return new Map()
  const rows = await db.selectFrom('replacement').selectAll().where('videoId', 'in', videoIds).execute()
  return new Map(rows.map((row) => [row.videoId, row]))
}

/** @throws Failure `conflict` while another replacement of the video is being made */
export async function assertNoReplacement(db: Db, videoId: string): Promise<void> {
  const pending = await findReplacement(db, videoId)
  if (pending && pending.problem === null)
    throw new Failure(
      'conflict',
      'A replacement of this video is being made already. Wait until it plays, or cancel it with DELETE /api/videos/ID/replacement.',
    )
}

/**
 * Records what is to replace what a video plays, in place of one that failed.
 * @throws Failure as `assertReplaceable`
 */
export async function insertReplacement(
  tx: Db,
  { videoId, ...row }: Omit<Insertable<Tables['replacement']>, 'accountId' | 'generation' | 'problem'>,
): Promise<void> {
  const accountId = await findAccountOfVideo(tx, videoId)
  if (accountId === undefined) throw videoNotFound()
  await assertReplaceable(tx, accountId, videoId)
  await tx.deleteFrom('replacement').where('videoId', '=', videoId).execute()
  await tx
    .insertInto('replacement')
    .values({ videoId, accountId, ...row })
    .execute()
  await countChange(tx, videoId)
}

/** @throws Failure `not-found`; `conflict` when the video does not play, or another replacement is being made */
export async function assertReplaceable(db: Db, accountId: string, videoId: string): Promise<void> {
  const video = await findVideo(db, accountId, videoId)
  if (!video) throw videoNotFound()
  const { status } = video
  if (status === 'ready') return assertNoReplacement(db, videoId)
  const remedy =
    status === 'PRE-Upload'
      ? 'Send its first file with the credentials that it was made with.'
      : status === 'Queued' || status === 'Processing'
        ? 'Wait until it is ready.'
        : 'It failed: delete it and upload the file as a new video, or try again with POST /api/videos/ID/retry.'
  throw new Failure('conflict', `This video is ${status}: only one that is ready can be replaced. ${remedy}`)
}

export async function updateReplacement(tx: Db, videoId: string, changes: Updateable<Tables['replacement']>): Promise<void> {
  await tx.updateTable('replacement').set(changes).where('videoId', '=', videoId).execute()
  await countChange(tx, videoId)
}

export async function removeReplacement(tx: Db, videoId: string): Promise<void> {
  await tx.deleteFrom('replacement').where('videoId', '=', videoId).execute()
  await countChange(tx, videoId)
}

/** Lists show replacements: a cached response must not be sent again. */
async function countChange(tx: Db, videoId: string): Promise<void> {
  await tx
    .updateTable('account')
    .set((account) => ({ changeNumber: account('changeNumber', '+', 1) }))
    .where('id', 'in', (of) => of.selectFrom('video').select('accountId').where('video.id', '=', videoId))
    .execute()
}

/** A number that no generation and no source of the video has had. */
export async function takeNumber(tx: Db, videoId: string): Promise<number> {
  const video = await tx.selectFrom('video').select('lastNumber').where('id', '=', videoId).executeTakeFirst()
  const { newest } = await tx
    .selectFrom('generation')
    .select(({ fn }) => fn.max<number | null>('number').as('newest'))
    .where('videoId', '=', videoId)
    .executeTakeFirstOrThrow()
  const number = Math.max(video?.lastNumber ?? 0, Number(newest ?? 0)) + 1
  await tx.updateTable('video').set({ lastNumber: number }).where('id', '=', videoId).execute()
  return number
}
