import { sql } from 'kysely'
import { saveAudioSettings } from '../catalogue/audio-settings-store.ts'
import { type Dub, deleteDub, listDubs } from '../catalogue/dub-store.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { isPosterExtractionDone } from '../catalogue/poster-store.ts'
import { moveStatus, setStatusReason } from '../catalogue/status.ts'
import { addSize, HAS_NO_LATER_GENERATION, NOT_DELETED_UNINDEXED, setFileName } from '../catalogue/video-store.ts'
import { countRows, hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import type { Tables } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'
import { audioTracksOf, type Plan } from './plan.ts'

/** A generation as it is stored. Its key is null once the video is deleted. */
export type GenerationRow = GenerationKey & {
  wrappedContentKey: Buffer | null
  plan: Plan
  encoder: string
  /** The file that it is made from. */
  sourceNumber: number
}

export type NewSegment = { renditionId: number; number: number; file: string; sizeBytes: number; sha256: Buffer; init: Buffer }

/**
 * Creates a generation: its plan, its content key, its renditions. The video plays it from now on, unless it already plays another:
 * then this one replaces it when it is finished.
 * @returns false when the video is deleted: it gets no key any more
 */
export async function insertGeneration(
  tx: Db,
  { sourceNumber = 1, ...row }: Omit<GenerationRow, 'sourceNumber'> & { sourceNumber?: number; createdAtS: number },
): Promise<boolean> {
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
      sourceNumber,
    })
    .execute()
  const videoRenditions = (plan.videoTrack?.renditions ?? []).map(({ id }) => ({ id, kind: 'video' as const }))
  const audioRenditions = audioTracksOf(plan).map(({ renditionId }) => ({ id: renditionId, kind: 'audio' as const }))
  await tx
    .insertInto('rendition')
    .values([...videoRenditions, ...audioRenditions].map((rendition) => ({ ...rendition, videoId, generation })))
    .execute()
  for (const notice of plan.notices ?? []) await setStatusReason(tx, { videoId, generation }, notice)
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
    .select(['wrappedContentKey', 'plan', 'encoder', 'sourceNumber'])
    .where(({ and }) => and({ videoId, number: generation }))
    .executeTakeFirst()
  return row && { videoId, generation, ...row, plan: JSON.parse(row.plan) }
}

/** Where the file that a generation is made from begins on the time line of its video. */
export async function findTimelineStart(db: Db, videoId: string, sourceNumber: number): Promise<number> {
  const row = await db
    .selectFrom('source')
    .select('timelineStartS')
    .where(({ and }) => and({ videoId, number: sourceNumber }))
    .executeTakeFirst()
  return row?.timelineStartS ?? 0
}

/** Puts a file where what its video plays begins, as what replaces that. */
export async function alignSource(tx: Db, { videoId, generation }: GenerationKey): Promise<void> {
  await tx
    .updateTable('source')
    .set({
      timelineStartS: (of) =>
        of.selectFrom('video').select('video.timelineStartS').where('video.id', '=', videoId).$asScalar().$notNull(),
    })
    .where('videoId', '=', videoId)
    .where('number', '=', (of) =>
      of.selectFrom('generation').select('sourceNumber').where('videoId', '=', videoId).where('number', '=', generation),
    )
    .execute()
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

/** Makes the video `ready` once its posters are extracted, and the default audio and some video rendition have their first segment. */
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

/** By how much an audio rendition is made louder, in decibels; undefined before that is measured. */
export async function findGain(db: Db, video: GenerationKey, renditionId: number): Promise<number | undefined> {
  const row = await db
    .selectFrom('rendition')
    .select('gainDb')
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation, id: renditionId }))
    .executeTakeFirst()
  return row?.gainDb ?? undefined
}

/** Sets the gain of an audio rendition, once: a later one changes nothing. */
export async function setGain(tx: Db, video: GenerationKey, renditionId: number, gainDb: number): Promise<void> {
  await tx
    .updateTable('rendition')
    .set({ gainDb })
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation, id: renditionId }))
    .where('gainDb', 'is', null)
    .execute()
}

/** A published segment's file; undefined while it is not published, and while it is damaged. */
export async function findSegment(db: Db, { videoId, generation }: GenerationKey, renditionId: number, number: number) {
  const { rows } = await selectSegment(db, { videoId, generation, renditionId, number })
  return rows[0]
}

const selectSegment = prepared<SegmentName>()((db, value) =>
  db
    .selectFrom('segment')
    .select(['file', 'sizeBytes', 'sha256'])
    .where('videoId', '=', value('videoId'))
    .where('generation', '=', value('generation'))
    .where('renditionId', '=', value('renditionId'))
    .where('number', '=', value('number'))
    .where('damaged', '=', 0),
)
type SegmentName = GenerationKey & { renditionId: number; number: number }

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
    .where(({ and }) => and({ videoId, generation }))
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
  return (await unplannedVideos(tx, videoId).executeTakeFirst()) ?? unplannedReplacements(tx, videoId).executeTakeFirst()
}

/** The video whose replacement has waited longest to be examined: not before what it plays is complete. */
export async function findUnplannedReplacement(db: Db, { nowS, only }: VideoFilter): Promise<UnplannedVideo | undefined> {
  return unplannedReplacements(db, only)
    .where('video.id', 'not in', claimedSubjects(db, 'video', nowS))
    .where('video.id', 'not in', claimedSubjects(db, 'encoding', nowS))
    .orderBy('requestedAtS')
    .limit(1)
    .executeTakeFirst()
}

function unplannedReplacements(db: Db, only: string | undefined) {
  return (
    db
      .selectFrom('replacement')
      .innerJoin('video', 'video.id', 'replacement.videoId')
      .innerJoin('generation as played', (join) =>
        join.onRef('played.videoId', '=', 'video.id').onRef('played.number', '=', 'video.generation'),
      )
      .select(['video.id', 'video.accountId'])
      .where('replacement.generation', 'is', null)
      .where('replacement.problem', 'is', null)
      .where('replacement.sourceNumber', 'is not', null)
      .where('video.status', '=', 'ready')
      .where(NOT_DELETED_UNINDEXED)
      .where('played.finishedAtS', 'is not', null)
      // One that is encrypted again comes first.
      .where(HAS_NO_LATER_GENERATION)
      .$if(only !== undefined, (waiting) => waiting.where('replacement.videoId', '=', only ?? ''))
  )
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
  await playGeneration(tx, { videoId, generation })
  return video.generation
}

/** Makes a video play this generation: its length, picture and notices, and its file, are the video's from now on. */
export async function playGeneration(tx: Db, { videoId, generation }: GenerationKey): Promise<void> {
  const {
    plan,
    sourceNumber,
    reason: statusReason,
    fileName,
    timelineStartS,
  } = await tx
    .selectFrom('generation')
    .innerJoin('source', (join) =>
      join.onRef('source.videoId', '=', 'generation.videoId').onRef('source.number', '=', 'generation.sourceNumber'),
    )
    .select(['plan', 'sourceNumber', 'reason', 'source.fileName', 'source.timelineStartS'])
    .where('generation.videoId', '=', videoId)
    .where('generation.number', '=', generation)
    .executeTakeFirstOrThrow()
  const { durationS, videoTrack, cut }: Plan = JSON.parse(plan)
  const shape = { durationS, aspectRatio: videoTrack?.aspectRatio ?? null, timelineStartS: timelineStartS + (cut?.startS ?? 0) }
  await tx
    .updateTable('video')
    .set({ generation, sourceNumber, statusReason, ...shape })
    .where('id', '=', videoId)
    .execute()
  // Empty in the row of a file from before names were kept with it, which has not been replaced.
  if (fileName !== '') await setFileName(tx, videoId, fileName)
}

/**
 * Keeps the generation that a video plays, for when it plays again: with its key and files, and with what the video shows of it. Nothing
 * of it is encoded meanwhile.
 */
export async function keepGeneration(
  tx: Db,
  { videoId, generation }: GenerationKey,
  kept: { keptUntilS: number; keptBy: NonNullable<Tables['generation']['keptBy']>; segmentBytes: number },
): Promise<void> {
  const video = tx.selectFrom('video').where('id', '=', videoId)
  await tx
    .updateTable('generation')
    .set({ ...kept, reason: video.select('statusReason') })
    .where(({ and }) => and({ videoId, number: generation }))
    .execute()
  await tx
    .updateTable('source')
    .set({ fileName: video.select('fileName').$asScalar().$notNull() })
    .where('videoId', '=', videoId)
    .where('number', '=', video.select('sourceNumber'))
    .execute()
  await tx
    .updateTable('chunk')
    .set({ state: 'done' })
    .where(({ and }) => and({ videoId, generation }))
    .where('state', '!=', 'done')
    .execute()
}

export type KeptGeneration = GenerationKey & {
  sourceNumber: number
  segmentBytes: number
  /** Of what else was made of it: posters, their candidates and its storyboard. */
  pictureBytes: number
  /** Of its file, which it may share with others. */
  sourceBytes: number
  keptUntilS: number
  keptBy: Tables['generation']['keptBy']
  durationS: number
  fileName: string
}

/** The generations of a video that may play again, the one that was replaced last first. */
export async function listKept(db: Db, videoId: string): Promise<KeptGeneration[]> {
  const rows = await db
    .selectFrom('generation')
    .innerJoin('source', (join) =>
      join.onRef('source.videoId', '=', 'generation.videoId').onRef('source.number', '=', 'generation.sourceNumber'),
    )
    .select(['generation.videoId', 'generation.number as generation', 'sourceNumber', 'segmentBytes'])
    .select(['keptUntilS', 'keptBy', 'plan', 'source.fileName', 'source.sizeBytes as sourceBytes'])
    .select(({ selectFrom }) =>
      selectFrom('file')
        .select(({ fn }) => fn.sum<number | null>('file.sizeBytes').as('bytes'))
        .whereRef('file.videoId', '=', 'generation.videoId')
        .whereRef('file.generation', '=', 'generation.number')
        .as('pictureBytes'),
    )
    .where('generation.videoId', '=', videoId)
    .where('keptUntilS', 'is not', null)
    .orderBy('keptUntilS', 'desc')
    .orderBy('generation.createdAtS', 'desc')
    .$narrowType<{ keptUntilS: number }>()
    .execute()
  return rows.map(({ plan, pictureBytes, ...row }) => ({
    ...row,
    pictureBytes: Number(pictureBytes ?? 0),
    durationS: (JSON.parse(plan) as Plan).durationS,
  }))
}

/** Generations that have been kept for long enough, with their accounts. */
export async function listEndedKept(db: Db, nowS: number, limit: number) {
  return db
    .selectFrom('generation')
    .select(['videoId', 'number as generation'])
    .where('keptUntilS', '<=', nowS)
    .orderBy('keptUntilS')
    .limit(limit)
    .execute()
}

/** Whether another generation plays in place of this one, which may play again. */
export async function isKept(db: Db, { videoId, generation }: GenerationKey): Promise<boolean> {
  const row = db.selectFrom('generation').where(({ and }) => and({ videoId, number: generation }))
  return hasRow(row.where('keptUntilS', 'is not', null))
}

/** Makes a kept generation one like any other. */
export async function releaseKept(tx: Db, { videoId, generation }: GenerationKey): Promise<void> {
  await tx
    .updateTable('generation')
    .set({ keptUntilS: null, keptBy: null })
    .where(({ and }) => and({ videoId, number: generation }))
    .execute()
}

/**
 * Removes a file of a video, with its key and the audio tracks that were added to it, unless something is made from it.
 * @returns the names of the blobs, which the caller removes after the commit
 */
export async function removeUnusedSource(tx: Db, videoId: string, number: number): Promise<string[]> {
  if (await hasRow(tx.selectFrom('generation').where(({ and }) => and({ videoId, sourceNumber: number })))) return []
  await saveAudioSettings(tx, { videoId, sourceNumber: number }, [])
  const dubs: string[] = []
  for (const dub of await listDubs(tx, { videoId, ofSource: number })) dubs.push(...(await removeDubFile(tx, dub)))
  return [...dubs, ...(await removeSource(tx, videoId, number))]
}

/** Removes an added audio track and its file, with its key. @returns as `removeUnusedSource` */
export async function removeDubFile(tx: Db, dub: Pick<Dub, 'videoId' | 'sourceNumber'>): Promise<string[]> {
  await deleteDub(tx, dub)
  return removeSource(tx, dub.videoId, dub.sourceNumber)
}

async function removeSource(tx: Db, videoId: string, number: number): Promise<string[]> {
  const removed = await tx
    .deleteFrom('source')
    .where(({ and }) => and({ videoId, number }))
    .returning(['file', 'sizeBytes'])
    .executeTakeFirst()
  if (!removed) return []
  await addSize(tx, videoId, -removed.sizeBytes)
  return [removed.file]
}

/** The number of the generation that will replace this one; undefined when there is none. */
export async function findLaterGeneration(db: Db, video: GenerationKey): Promise<number | undefined> {
  const later = await db
    .selectFrom('generation')
    .select('number')
    .where('videoId', '=', video.videoId)
    .where('number', '>', video.generation)
    .where('keptUntilS', 'is', null)
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
 * Marks a generation finished and records the total size of the video: sources, segments and other files, those that are kept included.
 * @param done.segmentBytes the sum of `renditionSizes`, once no segment is missing
 * @returns false: it was finished before, or the video is deleted
 */
export async function finishGeneration(tx: Db, video: GenerationKey, done: { segmentBytes: number; nowS: number }) {
  const finished = await tx
    .updateTable('generation')
    .set({ finishedAtS: done.nowS, segmentBytes: done.segmentBytes })
    .where(({ and }) => and({ videoId: video.videoId, number: video.generation }))
    .where('finishedAtS', 'is', null)
    .where('wrappedContentKey', 'is not', null)
    .executeTakeFirst()
  if (finished.numUpdatedRows === 0n) return false
  const kept = await listKept(tx, video.videoId)
  let totalSizeBytes = kept.reduce((sum, { segmentBytes }) => sum + segmentBytes, done.segmentBytes)
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
