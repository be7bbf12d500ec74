import { sql } from 'kysely'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { NOT_DELETED_UNINDEXED } from '../catalogue/video-store.ts'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { SegmentRow } from '../db/tables.ts'
import { type ChunkKey, ENCODABLE_STATUSES, type VideoChunk } from './chunk-store.ts'

export type SegmentKey = Pick<SegmentRow, 'videoId' | 'generation' | 'renditionId' | 'number'>

/** A published segment, with the file that its row expects. */
export type PublishedSegment = SegmentKey & Pick<SegmentRow, 'file' | 'sizeBytes' | 'sha256'>

/** Without what else is known of it. */
export function segmentKey({ videoId, generation, renditionId, number }: SegmentKey): SegmentKey {
  return { videoId, generation, renditionId, number }
}

const KEY = ['videoId', 'generation', 'renditionId', 'number'] as const
const PUBLISHED = [...KEY, 'file', 'sizeBytes', 'sha256'] as const

/** Records whether a segment's file is damaged. False: nothing changed, or there is no such segment. */
export async function setDamaged(tx: Db, segment: SegmentKey, damaged: 0 | 1): Promise<boolean> {
  const set = await tx
    .updateTable('segment')
    .set({ damaged })
    .where(({ and }) => and(segmentKey(segment)))
    .where('damaged', '!=', damaged)
    .executeTakeFirst()
  return set.numUpdatedRows > 0n
}

/** Changes the address of a segment. */
export async function countRepair(tx: Db, segment: SegmentKey): Promise<void> {
  await tx
    .updateTable('segment')
    .set(({ eb }) => ({ repairs: eb('repairs', '+', 1) }))
    .where(({ and }) => and(segmentKey(segment)))
    .execute()
}

/** The segments of a generation whose addresses have changed. */
export async function listRepairs(db: Db, { videoId, generation }: GenerationKey) {
  return db
    .selectFrom('segment')
    .select(['renditionId', 'number', 'repairs'])
    .where(({ and }) => and({ videoId, generation }))
    .where('repairs', '>', sql.lit(0)) // a literal, for the partial index
    .execute()
}

/** The damaged segments of one rendition. */
export async function listDamagedNumbers(db: Db, { videoId, generation }: GenerationKey, renditionId: number): Promise<number[]> {
  const rows = await db
    .selectFrom('segment')
    .select('number')
    .where(({ and }) => and({ videoId, generation, renditionId, damaged: 1 }))
    .orderBy('number')
    .execute()
  return rows.map((row) => row.number)
}

/** The blobs of one rendition's published segments, by number, without the damaged ones. */
export async function mapWholeFiles(
  db: Db,
  { videoId, generation }: GenerationKey,
  renditionId: number,
): Promise<ReadonlyMap<number, string>> {
  const rows = await db
    .selectFrom('segment')
    .select(['number', 'file'])
    .where(({ and }) => and({ videoId, generation, renditionId, damaged: 0 }))
    .execute()
  return new Map(rows.map(({ number, file }) => [number, file]))
}

export async function hasDamage(db: Db, video: GenerationKey): Promise<boolean> {
  return hasRow(
    db.selectFrom('segment').where(({ and }) => and({ videoId: video.videoId, generation: video.generation, damaged: 1 })),
  )
}

export async function isDamaged(db: Db, segment: SegmentKey): Promise<boolean> {
  const row = await db
    .selectFrom('segment')
    .select('damaged')
    .where(({ and }) => and(segmentKey(segment)))
    .executeTakeFirst()
  return row?.damaged === 1
}

type ChunkSpan = ChunkKey & Pick<VideoChunk, 'segmentCount'>

/** The damaged segments of a chunk. */
export async function listDamaged(db: Db, chunk: ChunkSpan): Promise<PublishedSegment[]> {
  return publishedOf(db, chunk).where('segment.damaged', '=', 1).execute()
}

/** All published segments of a chunk. */
export async function listPublished(db: Db, chunk: ChunkSpan): Promise<PublishedSegment[]> {
  return publishedOf(db, chunk).execute()
}

function publishedOf(db: Db, { videoId, generation, kind, firstSegment, segmentCount }: ChunkSpan) {
  return db
    .selectFrom('segment')
    .innerJoin('rendition', (join) =>
      join
        .onRef('rendition.videoId', '=', 'segment.videoId')
        .onRef('rendition.generation', '=', 'segment.generation')
        .onRef('rendition.id', '=', 'segment.renditionId'),
    )
    .select(PUBLISHED.map((column) => `segment.${column}` as const))
    .where(({ and }) => and({ 'rendition.kind': kind, 'segment.videoId': videoId, 'segment.generation': generation }))
    .where('segment.number', '>=', firstSegment)
    .where('segment.number', '<', firstSegment + segmentCount)
    .orderBy('segment.renditionId')
    .orderBy('segment.number')
}

/** The chunks of a generation that have a damaged segment, each once. */
export async function listDamagedChunks(tx: Db, { videoId, generation }: GenerationKey): Promise<ChunkKey[]> {
  const damaged = await tx
    .selectFrom('segment')
    .select(['videoId', 'generation', 'renditionId', 'number'])
    .where(({ and }) => and({ videoId, generation, damaged: 1 }))
    .execute()
  const chunks = new Map<string, ChunkKey>()
  for (const segment of damaged) {
    const chunk = await findFinishedChunk(tx, segment)
    if (chunk) chunks.set(`${chunk.kind} ${chunk.firstSegment}`, chunk)
  }
  return [...chunks.values()]
}

/** The chunk that encoded a segment; undefined while it is pending or running. */
export async function findFinishedChunk(tx: Db, segment: SegmentKey): Promise<ChunkKey | undefined> {
  const chunk = await tx
    .selectFrom('chunk')
    .innerJoin('rendition', (join) =>
      join
        .onRef('rendition.videoId', '=', 'chunk.videoId')
        .onRef('rendition.generation', '=', 'chunk.generation')
        .onRef('rendition.kind', '=', 'chunk.kind'),
    )
    .select(['chunk.videoId', 'chunk.generation', 'chunk.kind', 'chunk.firstSegment', 'chunk.state'])
    .where(({ and }) =>
      and({ 'chunk.videoId': segment.videoId, 'chunk.generation': segment.generation, 'rendition.id': segment.renditionId }),
    )
    .where('chunk.firstSegment', '<=', segment.number)
    .orderBy('chunk.firstSegment', 'desc')
    .limit(1)
    .executeTakeFirst()
  return chunk?.state === 'done' ? chunk : undefined
}

/** Published segments of all videos after the given one, in the order of their keys. */
export async function listSegmentsAfter(db: Db, after: SegmentKey | undefined, limit: number): Promise<PublishedSegment[]> {
  let segments = publishedAfter(db, after).select(PUBLISHED)
  for (const column of KEY) segments = segments.orderBy(column)
  return segments.limit(limit).execute()
}

/** The total size of all published segments after the given one. */
export async function totalSizeAfter(db: Db, after: SegmentKey | undefined): Promise<number> {
  const row = await publishedAfter(db, after)
    .select(({ fn }) => fn.sum<number | null>('sizeBytes').as('sizeBytes'))
    .executeTakeFirstOrThrow()
  return Number(row.sizeBytes ?? 0)
}

function publishedAfter(db: Db, after: SegmentKey | undefined) {
  const segments = db.selectFrom('segment')
  if (!after) return segments
  const { videoId, generation, renditionId, number } = after
  return segments.where(
    sql<boolean>`(video_id, generation, rendition_id, number) > (${videoId}, ${generation}, ${renditionId}, ${number})`,
  )
}

/** Which of these videos play or will play: neither deleted nor failed. */
export async function findPlayable(db: Db, videoIds: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .selectFrom('video')
    .select('id')
    .where('id', 'in', [...videoIds])
    .where(NOT_DELETED_UNINDEXED)
    .where('status', 'in', ENCODABLE_STATUSES)
    .execute()
  return new Set(rows.map(({ id }) => id))
}
