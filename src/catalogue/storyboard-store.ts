import { sql } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import type { NewFile } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'
import type { GenerationKey } from './generation-key.ts'
import { type NewCandidate, type PosterFile, replaceFirstPosters } from './poster-store.ts'
import { NOT_DELETED_UNINDEXED } from './video-store.ts'

/** One picture of many frames. `widthPx` and `heightPx`: of the whole picture. */
export type StoryboardSheet = { id: number; widthPx: number; heightPx: number; blob: string; sizeBytes: number }
export type NewSheet = Omit<StoryboardSheet, 'id'>

/** A video whose storyboard is to be made, and the attempts started so far. */
export type PendingStoryboard = GenerationKey & { attempts: number }

/** Of the videos that are complete and play without one, that which was completed last: what a viewer may open now. */
export async function findPendingStoryboard(db: Db, nowS: number): Promise<PendingStoryboard | undefined> {
  return db
    .selectFrom('generation')
    .crossJoin('video') // fixes the join order: SQLite would begin with all videos
    .innerJoin('account', 'account.id', 'video.accountId')
    .select(['generation.videoId', 'generation.number as generation', 'generation.storyboardAttempts as attempts'])
    .where('generation.storyboardMadeAtS', 'is', null)
    .where('generation.finishedAtS', 'is not', null)
    .whereRef('video.id', '=', 'generation.videoId')
    .whereRef('video.generation', '=', 'generation.number')
    .where(NOT_DELETED_UNINDEXED)
    .where('account.disabled', '=', 0)
    .where('generation.videoId', 'not in', claimedSubjects(db, 'storyboard', nowS))
    .orderBy('generation.finishedAtS', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/** Counts an attempt before it runs, so that one that crashes this process counts, too. False: it is not as it was found. */
export async function beginStoryboardAttempt(tx: Db, { attempts, ...key }: PendingStoryboard): Promise<boolean> {
  const begun = await updateGeneration(tx, key)
    .set({ storyboardAttempts: attempts + 1 })
    .where('storyboardAttempts', '=', attempts)
    .where('storyboardMadeAtS', 'is', null)
    .executeTakeFirst()
  return begun.numUpdatedRows > 0n
}

/** Undoes the count of an attempt that failed for a reason outside the video. */
export async function refundStoryboardAttempt(tx: Db, { attempts, ...key }: PendingStoryboard): Promise<void> {
  await updateGeneration(tx, key).set({ storyboardAttempts: attempts }).execute()
}

/** What is made of a finished generation; without sheets it has no storyboard. `posters`: of the best candidate. */
export type NewPictures = { sheets: NewSheet[]; candidates: NewCandidate[]; posters: PosterFile[] }

/**
 * Records the sheets of a generation and the candidates for its poster, in their order. Its first poster becomes the best candidate.
 * @returns the blobs of the first poster, for removal; undefined: the video is deleted, or the generation removed
 */
export async function insertStoryboard(
  tx: Db,
  key: GenerationKey,
  { sheets, candidates, posters }: NewPictures,
  madeAtS: number,
): Promise<{ replaced: string[] } | undefined> {
  const updated = await updateGeneration(tx, key)
    .set({ storyboardMadeAtS: madeAtS })
    .where('storyboardMadeAtS', 'is', null)
    .where('wrappedContentKey', 'is not', null)
    .executeTakeFirst()
  if (updated.numUpdatedRows === 0n) return undefined
  const { videoId, generation } = key
  const made = { videoId, generation, createdAtS: madeAtS }
  const rows: NewFile[] = [
    ...sheets.map((sheet) => ({ ...sheet, ...made, type: 'storyboard' as const })),
    ...candidates.map((candidate) => ({ ...candidate, ...made, type: 'poster-candidate' as const })),
  ]
  if (rows.length > 0) await tx.insertInto('file').values(rows).execute()
  return { replaced: await replaceFirstPosters(tx, key, posters) }
}

/**
 * Has the storyboard and the candidates of a generation made again, such as where one of them is lost: the others are removed with it,
 * and the sweep removes their files.
 */
export async function requeueStoryboard(tx: Db, key: GenerationKey): Promise<void> {
  await tx
    .deleteFrom('file')
    .where(({ and }) => and({ videoId: key.videoId, generation: key.generation }))
    .where('type', 'in', ['storyboard', 'poster-candidate'])
    .execute()
  await updateGeneration(tx, key).set({ storyboardMadeAtS: null, storyboardAttempts: 0 }).execute()
}

const select = prepared<GenerationKey>()((db, value) =>
  db
    .selectFrom('file')
    .select(['id', 'widthPx', 'heightPx', 'blob', 'sizeBytes'])
    .where('videoId', '=', value('videoId'))
    .where('generation', '=', value('generation'))
    .where('type', '=', sql.lit('storyboard'))
    .orderBy('id')
    .$narrowType<{ widthPx: number; heightPx: number; blob: string }>(),
)

/** The sheets of a generation, in the order of the video. */
export async function listStoryboardSheets(db: Db, { videoId, generation }: GenerationKey): Promise<StoryboardSheet[]> {
  return (await select(db, { videoId, generation })).rows
}

/** Whether a generation has a storyboard now. */
export async function hasStoryboard(db: Db, { videoId, generation }: GenerationKey): Promise<boolean> {
  return hasRow(db.selectFrom('file').where(({ and }) => and({ videoId, generation, type: 'storyboard' })))
}

function updateGeneration(tx: Db, { videoId, generation }: GenerationKey) {
  return tx.updateTable('generation').where('videoId', '=', videoId).where('number', '=', generation)
}
