import { sql } from 'kysely'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { isPosterExtractionDone } from '../catalogue/poster-store.ts'
import { moveStatus, setStatusReason } from '../catalogue/status.ts'
import { NOT_DELETED_UNINDEXED } from '../catalogue/video-store.ts'
import { countRows, hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'
import type { Plan } from './plan.ts'

/** A generation as it is stored. Its key is null once the video is deleted. */
export type GenerationRow = GenerationKey & { wrappedContentKey: Buffer | null; plan: Plan; encoder: string }

export type NewSegment = { renditionId: number; number: number; file: string; sizeBytes: number; sha256: Buffer; init: Buffer }

/**
 * Creates a generation: its plan, its content key, its renditions. The video plays it from now on, unless it already plays another:
 * then this one replaces it when it is finished.
 * @returns false when the video is deleted: it gets no key any more
 */
export async function insertGeneration(tx: Db, row: GenerationRow & { createdAtS: number }): Promise<boolean> {
  const { videoId, generation, plan } = row
  const video = await tx
    .selectFrom('video')
    .leftJoin('generation', (join) =>
      join.onRef('generation.videoId', '=', 'video.id').onRef('generation.number', '=', 'video.generation'),
    )
    .select('generation.number as plays')
    .where('video.id', '=', videoId)
    .where('video.deletedAtS', 'is', null)
    .executeTakeFirst()
  if (!video) return false
  if (video.plays === null) {
    const shape = { durationS: plan.durationS, aspectRatio: plan.videoTrack?.aspectRatio ?? null }
    await tx
      .updateTable('video')
      .set({ generation, ...shape })
      .where('id', '=', videoId)
      .execute()
  }
  await tx
    .insertInto('generation')
    .values({
      videoId,
      number: generation,
      wrappedContentKey: row.wrappedContentKey,
      plan: JSON.stringify(plan),
      encoder: row.encoder,
      createdAtS: row.createdAtS,
    })
    .execute()
  const videoRenditions = (plan.videoTrack?.renditions ?? []).map(({ id }) => ({ id, kind: 'video' as const }))
  const audioRenditions = plan.audioTrack ? [{ id: plan.audioTrack.renditionId, kind: 'audio' as const }] : []
  await tx
    .insertInto('rendition')
    .values([...videoRenditions, ...audioRenditions].map((rendition) => ({ ...rendition, videoId, generation })))
    .execute()
  for (const notice of plan.notices ?? []) await setStatusReason(tx, videoId, notice)
  return true
}

/** The generation that a video plays, with its account and status. */
export async function findPlayedGeneration(db: Db, videoId: string) {
  return db
    .selectFrom('video')
    .select(['accountId', 'status', 'generation'])
    .where('id', '=', videoId)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
}

export async function findGeneration(db: Db, { videoId, generation }: GenerationKey): Promise<GenerationRow | undefined> {
  const row = await db
    .selectFrom('generation')
    .select(['wrappedContentKey', 'plan', 'encoder'])
    .where(({ and }) => and({ videoId, number: generation }))
    .executeTakeFirst()
  return row && { videoId, generation, ...row, plan: JSON.parse(row.plan) }
}

/**
 * Publishes a segment: its first published bytes are final.
 * @returns false when it had been published before; the new bytes must be discarded
 * @throws Error when the rendition has another init segment: published segments would not decode with this one
 */
export async function insertSegment(tx: Db, video: GenerationKey, segment: NewSegment): Promise<boolean> {
  const { init, ...row } = segment
  const key = { videoId: video.videoId, generation: video.generation }
  const rendition = await tx
    .selectFrom('rendition')
    .select('init')
    .where(({ and }) => and({ videoId: key.videoId, generation: key.generation, id: segment.renditionId }))
    .executeTakeFirstOrThrow()
  if (rendition.init && !rendition.init.equals(init)) throw new Error('the encoder made another init segment than before')
  if (!rendition.init) {
    await tx
      .updateTable('rendition')
      .set({ init })
      .where(({ and }) => and({ videoId: key.videoId, generation: key.generation, id: segment.renditionId }))
      .execute()
  }
  const inserted = await tx
    .insertInto('segment')
    .values({ ...key, ...row })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return Number(inserted.numInsertedOrUpdatedRows ?? 0) > 0
}

/** Makes the video `ready` once its posters are extracted, and the audio and some video rendition have their first segment. */
export async function moveToReadyIfPlayable(tx: Db, video: GenerationKey & { plan: Plan }): Promise<boolean> {
  const firsts = await tx
    .selectFrom('segment')
    .select('renditionId')
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation, number: 0 }))
    .execute()
  const publishedIds = new Set(firsts.map((row) => row.renditionId))
  const { videoTrack, audioTrack } = video.plan
  const playable =
    (!audioTrack || publishedIds.has(audioTrack.renditionId)) &&
    (!videoTrack || videoTrack.renditions.some(({ id }) => publishedIds.has(id)))
  return playable && (!videoTrack || (await isPosterExtractionDone(tx, video))) && moveStatus(tx, video.videoId, 'ready')
}

/** How many segments of a video are published, over all renditions. */
export async function countSegments(db: Db, video: GenerationKey): Promise<number> {
  return countRows(db.selectFrom('segment').where(({ and }) => and({ videoId: video.videoId, generation: video.generation })))
}

/** How many bytes the published segments of each rendition take. */
export async function renditionSizes(db: Db, video: GenerationKey): Promise<Map<number, number>> {
  const rows = await db
    .selectFrom('segment')
    .select(({ fn }) => ['renditionId', fn.sum<number>('sizeBytes').as('sizeBytes')])
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation }))
    .groupBy('renditionId')
    .execute()
  return new Map(rows.map(({ renditionId, sizeBytes }) => [renditionId, Number(sizeBytes)]))
}

/** The numbers of a rendition's segments that are published, from `first` on, in order. */
export async function listPublishedNumbers(db: Db, video: GenerationKey, renditionId: number, first: number): Promise<number[]> {
  const rows = await db
    .selectFrom('segment')
    .select('number')
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation, renditionId }))
    .where('number', '>=', first)
    .orderBy('number')
    .execute()
  return rows.map((row) => row.number)
}

/** A published segment's file; undefined while it is not published, and while it is damaged. */
export async function findSegment(db: Db, video: GenerationKey, renditionId: number, number: number) {
  return db
    .selectFrom('segment')
    .select(['file', 'sizeBytes', 'sha256'])
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation, renditionId, number, damaged: 0 }))
    .executeTakeFirst()
}

/** The files of a rendition's published segments, in order. */
export async function listSegmentFiles(db: Db, video: GenerationKey, renditionId: number) {
  return db
    .selectFrom('segment')
    .select(['number', 'file', 'sizeBytes', 'sha256'])
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation, renditionId }))
    .orderBy('number')
    .execute()
}

/** Of which kinds a generation has renditions. */
export async function listTrackKinds(db: Db, { videoId, generation }: GenerationKey) {
  const rows = await db
    .selectFrom('rendition')
    .select('kind')
    .distinct()
    .where('videoId', '=', videoId)
    .where('generation', '=', generation)
    .orderBy('kind', 'desc')
    .execute()
  return rows.map(({ kind }) => kind)
}

export async function findInit(db: Db, video: GenerationKey, renditionId: number): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('rendition')
    .select('init')
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation, id: renditionId }))
    .executeTakeFirst()
  return row?.init ?? undefined
}

export type UnplannedVideo = { id: string; accountId: string }

/** Which of the videos that wait for something. */
export type VideoFilter = {
  nowS: number
  /** The one video that may be encoded. */
  only?: string | undefined
}

/**
 * The oldest video whose source waits to be examined, of the next account that has one: accounts take turns, in the order of their ids.
 * @param lastAccountId the account whose turn was last
 */
export async function findUnplanned(
  db: Db,
  { nowS, only, lastAccountId }: VideoFilter & { lastAccountId: string },
): Promise<UnplannedVideo | undefined> {
  const free = unplannedVideos(db, only)
    .where('video.id', 'not in', claimedSubjects(db, 'video', nowS))
    .where('video.id', 'not in', claimedSubjects(db, 'encoding', nowS))
    .orderBy('accountId')
    .orderBy('position')
    .limit(1)
  return (await free.where('accountId', '>', lastAccountId).executeTakeFirst()) ?? (await free.executeTakeFirst())
}

/** Undefined: it has been examined. */
export async function findIfUnplanned(tx: Db, videoId: string): Promise<UnplannedVideo | undefined> {
  return unplannedVideos(tx, videoId).executeTakeFirst()
}

function unplannedVideos(db: Db, only: string | undefined) {
  return (
    db
      .selectFrom('video')
      .select(['id', 'accountId'])
      // Literals, for the partial index: many imports have no source yet.
      .where('hasSource', '=', sql.lit(1))
      .where('generation', '=', sql.lit(0))
      .where('status', 'in', [sql.lit('Queued'), sql.lit('Processing')])
      .where('deletedAtS', 'is', null)
      .$if(only !== undefined, (video) => video.where('id', '=', only ?? ''))
  )
}

/** A video whose chunks are all done and that is not marked finished yet. */
export async function findUnfinished(db: Db, { nowS, only }: VideoFilter): Promise<GenerationKey | undefined> {
  return db
    .selectFrom('generation')
    .crossJoin('video') // fixes the join order: SQLite would begin with all videos
    .select(['video.id as videoId', 'generation.number as generation'])
    .whereRef('video.id', '=', 'generation.videoId')
    .whereRef('video.generation', '<=', 'generation.number')
    .where('generation.finishedAtS', 'is', null)
    .where('video.id', 'not in', claimedSubjects(db, 'video', nowS))
    .where('video.id', 'not in', claimedSubjects(db, 'encoding', nowS))
    .$if(only !== undefined, (unfinished) => unfinished.where('video.id', '=', only ?? ''))
    .where('video.status', '=', 'ready')
    .where(NOT_DELETED_UNINDEXED)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('chunk')
            .select('chunk.firstSegment')
            .whereRef('chunk.videoId', '=', 'video.id')
            .whereRef('chunk.generation', '=', 'generation.number')
            .where('chunk.state', '!=', sql.lit('done')), // a literal, for the partial index
        ),
      ),
    )
    .limit(1)
    .executeTakeFirst()
}

/**
 * Makes a video play a later generation, which is complete. The caller removes the one that it played.
 * @returns the number of that one; undefined when the video plays the later one already, or is deleted
 */
export async function switchToGeneration(tx: Db, { videoId, generation }: GenerationKey) {
  const video = await tx
    .selectFrom('video')
    .select('generation')
    .where('id', '=', videoId)
    .where('generation', '<', generation)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  if (!video) return undefined
  await tx.updateTable('video').set({ generation }).where('id', '=', videoId).execute()
  return video.generation
}

/** The number of the generation that will replace this one; undefined when there is none. */
export async function findLaterGeneration(db: Db, video: GenerationKey): Promise<number | undefined> {
  const later = await db
    .selectFrom('generation')
    .select('number')
    .where('videoId', '=', video.videoId)
    .where('number', '>', video.generation)
    .executeTakeFirst()
  return later?.number
}

/** Removes a generation: its key, its segments, and the posters that were extracted from it. */
export async function removeGeneration(tx: Db, video: GenerationKey): Promise<void> {
  for (const table of ['chunk', 'segment', 'rendition'] as const) {
    await tx.deleteFrom(table).where('videoId', '=', video.videoId).where('generation', '=', video.generation).execute()
  }
  await tx.deleteFrom('generation').where('videoId', '=', video.videoId).where('number', '=', video.generation).execute()
  await tx.deleteFrom('file').where('videoId', '=', video.videoId).where('generation', '=', video.generation).execute()
}

/**
 * Marks a generation finished and records the total size of the video: source, segments and other files.
 * @param done.segmentBytes the sum of `renditionSizes`, once no segment is missing
 * @returns false: it was finished before, or the video is deleted
 */
export async function finishGeneration(tx: Db, video: GenerationKey, done: { segmentBytes: number; nowS: number }) {
  const finished = await tx
    .updateTable('generation')
    .set({ finishedAtS: done.nowS })
    .where(({ and }) => and({ videoId: video.videoId, number: video.generation }))
    .where('finishedAtS', 'is', null)
    .where('wrappedContentKey', 'is not', null)
    .executeTakeFirst()
  if (finished.numUpdatedRows === 0n) return false
  let totalSizeBytes = done.segmentBytes
  for (const table of ['source', 'file'] as const) {
    const row = await tx
      .selectFrom(table)
      .select((select) => select.fn.sum<number | null>('sizeBytes').as('sizeBytes'))
      .where('videoId', '=', video.videoId)
      .executeTakeFirstOrThrow()
    totalSizeBytes += Number(row.sizeBytes ?? 0)
  }
  await tx.updateTable('video').set({ totalSizeBytes }).where('id', '=', video.videoId).execute()
  return true
}

/** Whether every rendition of a generation is complete. */
export async function isFinished(db: Db, video: GenerationKey): Promise<boolean> {
  return hasRow(
    db
      .selectFrom('generation')
      .where(({ and }) => and({ videoId: video.videoId, number: video.generation }))
      .where('finishedAtS', 'is not', null),
  )
}

/** The name of a segment's blob: video, generation, rendition and number, then a random part. */
export const SEGMENT_BLOB = /^([0-9a-f]{32}\/\d+\/\d+)\/(\d+)\.[0-9a-f]{12}\.m4s$/

/** Which of these blobs are published segments. */
export async function listReferencedSegments(db: Db, blobs: readonly string[]): Promise<Set<string>> {
  const referenced = new Set<string>()
  const byRendition = Map.groupBy(blobs, (blob) => SEGMENT_BLOB.exec(blob)?.[1] ?? '')
  for (const [rendition, renditionBlobs] of byRendition) {
    const [videoId = '', generation, renditionId] = rendition.split('/')
    const rows = await db
      .selectFrom('segment')
      .select('file')
      .where(({ and }) => and({ videoId, generation: Number(generation), renditionId: Number(renditionId) }))
      .where(
        'number',
        'in',
        renditionBlobs.map((blob) => Number(SEGMENT_BLOB.exec(blob)?.[2])),
      )
      .execute()
    for (const { file } of rows) referenced.add(file)
  }
  return referenced
}
