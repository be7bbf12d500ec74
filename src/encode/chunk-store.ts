import { sql } from 'kysely'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Db } from '../db/database.ts'
import type { ChunkRow } from '../db/tables.ts'
import type { ClaimFilter } from '../jobs/queue.ts'
import { type Chunk, URGENT_SEGMENTS } from './chunk-plan.ts'

export type ChunkKey = Pick<ChunkRow, 'videoId' | 'generation' | 'kind' | 'firstSegment'>

/** A chunk of a video with the state of its encode. */
export type VideoChunk = Chunk & Pick<ChunkRow, 'videoId' | 'generation' | 'state' | 'attempt' | 'threads'>

function toVideoChunk(row: ChunkRow): VideoChunk {
  return { ...row, decodesFromStart: row.decodesFromStart === 1 }
}

/** For chunks that a viewer or a new video waits for right now; everything above is backlog. */
export const URGENT_PRIORITY = 0
/** For the chunk of the oldest video when it has its share: no other has so low a number. */
export const OLDEST_PRIORITY = -2

/** The statuses of a video whose chunks are encoded. */
export const ENCODABLE_STATUSES = ['Processing', 'ready'] as const

export async function insertChunks(
  tx: Db,
  { videoId, generation, attempt }: GenerationKey & { attempt: number },
  chunks: readonly Chunk[],
): Promise<void> {
  if (chunks.length === 0) return
  const { position } = await tx.selectFrom('video').select('position').where('id', '=', videoId).executeTakeFirstOrThrow()
  const common = { videoId, generation, position, state: 'pending', attempt } as const
  const rows = chunks.map((chunk) => ({ ...chunk, decodesFromStart: Number(chunk.decodesFromStart), ...common }))
  await tx.insertInto('chunk').values(rows).execute()
}

/** The pending chunk that is needed first. @param only the one video to search */
export async function findNextChunk(
  tx: Db,
  { upToPriority, abovePriority, except }: ClaimFilter,
  only?: string,
): Promise<VideoChunk | undefined> {
  let pending = pendingChunks(tx, except, only)
  if (upToPriority !== undefined) pending = pending.where('chunk.priority', '<=', upToPriority)
  if (abovePriority !== undefined) pending = pending.where('chunk.priority', '>', abovePriority)
  const next = await pending.orderBy('chunk.priority').orderBy('chunk.position').limit(1).executeTakeFirst()
  return next && toVideoChunk(next)
}

/** Of the oldest video, the pending chunk that is needed first. @param except videos to skip. @param only the one video to search */
export async function findOldestChunk(tx: Db, except: readonly string[], only?: string): Promise<VideoChunk | undefined> {
  const pending = pendingChunks(tx, except, only)
  const oldest = await pending.orderBy('chunk.position').orderBy('chunk.priority').limit(1).executeTakeFirst()
  return oldest && toVideoChunk(oldest)
}

function pendingChunks(tx: Db, except: readonly string[], only: string | undefined) {
  return (
    tx
      .selectFrom('chunk')
      .innerJoin('video', (join) =>
        join.onRef('video.id', '=', 'chunk.videoId').onRef('video.generation', '<=', 'chunk.generation'),
      )
      .selectAll('chunk')
      // A literal: the partial indexes of pending chunks cannot serve a bound value.
      .where('chunk.state', '=', sql.lit('pending'))
      .where('video.deletedAtS', 'is', null)
      .where('video.status', 'in', ENCODABLE_STATUSES)
      .where('chunk.videoId', 'not in', [...except])
      .$if(only !== undefined, (chunk) => chunk.where('chunk.videoId', '=', only ?? ''))
  )
}

/**
 * Begins a run of a pending chunk, or of one whose last run died: `deadAttempt` is then the number of that run.
 * The new attempt is the fence of this run: no other may publish or end it.
 */
export async function beginRun(tx: Db, key: ChunkKey, deadAttempt: number | undefined): Promise<VideoChunk | undefined> {
  const row = await updateChunk(tx, key)
    .where((chunk) => {
      const isPending = chunk('state', '=', 'pending')
      if (deadAttempt === undefined) return isPending
      return chunk.or([isPending, chunk.and([chunk('state', '=', 'running'), chunk('attempt', '=', deadAttempt)])])
    })
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('video')
          .select('video.id')
          .whereRef('video.id', '=', 'chunk.videoId')
          .whereRef('video.generation', '<=', 'chunk.generation')
          .where('video.deletedAtS', 'is', null)
          .where('video.status', 'in', ENCODABLE_STATUSES),
      ),
    )
    .set(({ eb }) => ({ state: 'running', attempt: eb('attempt', '+', 1) }))
    .returningAll()
    .executeTakeFirst()
  return row && toVideoChunk(row)
}

/** Whether a viewer waits for the video of this short chunk right now. */
export function isUrgent({ kind, segmentCount, priority }: VideoChunk): boolean {
  return kind === 'video' && segmentCount <= URGENT_SEGMENTS && priority <= URGENT_PRIORITY && priority > OLDEST_PRIORITY
}

export async function hasPendingChunks(db: Db): Promise<boolean> {
  const row = await db.selectFrom('chunk').select('videoId').where('state', '=', sql.lit('pending')).limit(1).executeTakeFirst()
  return row !== undefined
}

function updateChunk(tx: Db, key: ChunkKey) {
  return tx
    .updateTable('chunk')
    .where('videoId', '=', key.videoId)
    .where('generation', '=', key.generation)
    .where('kind', '=', key.kind)
    .where('firstSegment', '=', key.firstSegment)
}

/** Ends this run of the chunk. False: the run was fenced off, by another or by a deletion. */
export async function endRun(tx: Db, chunk: VideoChunk, state: 'done' | 'pending' | 'failed'): Promise<boolean> {
  const ended = await updateChunk(tx, chunk)
    .where('state', '=', 'running')
    .where('attempt', '=', chunk.attempt)
    .set({ state, threads: chunk.threads })
    .executeTakeFirst()
  return ended.numUpdatedRows > 0n
}

/** Makes a finished chunk pending again, since one of its segments is damaged. Undefined: it was not finished. */
export async function reopenChunk(tx: Db, key: ChunkKey): Promise<VideoChunk | undefined> {
  const row = await updateChunk(tx, key).where('state', '=', 'done').set({ state: 'pending' }).returningAll().executeTakeFirst()
  return row && toVideoChunk(row)
}

/** False: the chunk is no longer pending. */
export async function setPriority(tx: Db, key: ChunkKey, priority: number): Promise<boolean> {
  const set = await updateChunk(tx, key).where('state', '=', 'pending').set({ priority }).executeTakeFirst()
  return set.numUpdatedRows > 0n
}

/** Whether this run may still publish: its attempt is the chunk's, and its generation plays or is to replace the one that plays. */
export async function isCurrentRun(tx: Db, chunk: VideoChunk): Promise<boolean> {
  const row = await tx
    .selectFrom('chunk')
    .innerJoin('video', (join) =>
      join.onRef('video.id', '=', 'chunk.videoId').onRef('video.generation', '<=', 'chunk.generation'),
    )
    .select('chunk.attempt')
    .where('chunk.videoId', '=', chunk.videoId)
    .where('chunk.generation', '=', chunk.generation)
    .where('chunk.kind', '=', chunk.kind)
    .where('chunk.firstSegment', '=', chunk.firstSegment)
    .where('chunk.attempt', '=', chunk.attempt)
    .where('chunk.state', '=', 'running')
    .where('video.deletedAtS', 'is', null)
    .executeTakeFirst()
  return row !== undefined
}

/** A pending chunk with its video's position. */
export type PendingChunk = VideoChunk & Pick<ChunkRow, 'position'>

/** A batch of pending chunks after the given one, in the order in which they are needed. */
export async function listPendingChunks(tx: Db, after: PendingChunk | undefined, limit: number): Promise<PendingChunk[]> {
  let pending = tx.selectFrom('chunk').selectAll().where('state', '=', sql.lit('pending'))
  if (after) {
    const { priority, position, generation, kind, firstSegment } = after
    pending = pending.where(
      sql<boolean>`(priority, position, generation, kind, first_segment) > (${priority}, ${position}, ${generation}, ${kind}, ${firstSegment})`,
    )
  }
  for (const column of ['priority', 'position', 'generation', 'kind', 'firstSegment'] as const) pending = pending.orderBy(column)
  const rows = await pending.limit(limit).execute()
  return rows.map((row) => ({ ...toVideoChunk(row), position: row.position }))
}

/** The pending chunks of videos. */
export async function listPendingChunksOf(tx: Db, videoIds: readonly string[]): Promise<VideoChunk[]> {
  const rows = await tx
    .selectFrom('chunk')
    .selectAll()
    .where('videoId', 'in', videoIds)
    .where('state', '=', sql.lit('pending'))
    .execute()
  return rows.map(toVideoChunk)
}

/** Makes chunks pending whose runs a crash interrupted. Only at a start: one process writes to a data folder. */
export async function resumeInterruptedRuns(tx: Db): Promise<void> {
  await tx.updateTable('chunk').set({ state: 'pending' }).where('state', '=', sql.lit('running')).execute()
}

/** Gives up the unfinished chunks of a failed video; their runs are fenced off. */
export async function abandonChunks(tx: Db, videoId: string): Promise<void> {
  await tx.updateTable('chunk').set({ state: 'failed' }).where('videoId', '=', videoId).where('state', '!=', 'done').execute()
}

/** The chunk that contains a segment, while it is pending. */
export async function findPendingChunk(
  db: Db,
  key: Omit<ChunkKey, 'firstSegment'>,
  segment: number,
): Promise<VideoChunk | undefined> {
  const row = await db
    .selectFrom('chunk')
    .selectAll()
    .where('videoId', '=', key.videoId)
    .where('generation', '=', key.generation)
    .where('kind', '=', key.kind)
    .where('firstSegment', '<=', segment)
    .orderBy('firstSegment', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.state === 'pending' ? toVideoChunk(row) : undefined
}

/** False: it is no longer in that state. */
export async function deleteChunk(tx: Db, chunk: VideoChunk): Promise<boolean> {
  const removed = await tx
    .deleteFrom('chunk')
    .where('videoId', '=', chunk.videoId)
    .where('generation', '=', chunk.generation)
    .where('kind', '=', chunk.kind)
    .where('firstSegment', '=', chunk.firstSegment)
    .where('state', '=', chunk.state)
    .where('attempt', '=', chunk.attempt)
    .executeTakeFirst()
  return removed.numDeletedRows > 0n
}

/** How many chunks of one kind decode from the video's start. */
export async function countSequentialChunks(
  tx: Db,
  { videoId, generation, kind }: GenerationKey & Pick<ChunkRow, 'kind'>,
): Promise<number> {
  const row = await tx
    .selectFrom('chunk')
    .select(({ fn }) => fn.countAll<number>().as('chunks'))
    .where('videoId', '=', videoId)
    .where('generation', '=', generation)
    .where('kind', '=', kind)
    .where('decodesFromStart', '=', 1)
    .executeTakeFirstOrThrow()
  return Number(row.chunks)
}

/** The chunks of one kind that no run has finished. */
export async function listUnfinishedChunks(
  tx: Db,
  { videoId, generation, kind }: GenerationKey & Pick<ChunkRow, 'kind'>,
): Promise<VideoChunk[]> {
  const rows = await tx
    .selectFrom('chunk')
    .selectAll()
    .where('videoId', '=', videoId)
    .where('generation', '=', generation)
    .where('kind', '=', kind)
    .where('state', '!=', 'done')
    .orderBy('firstSegment')
    .execute()
  return rows.map(toVideoChunk)
}
