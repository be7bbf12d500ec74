import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import type { ChunkRow } from '../db/tables.ts'
import { AWAITED_SEGMENTS, type Chunk } from './chunk-plan.ts'

export type ChunkKey = Pick<ChunkRow, 'videoId' | 'generation' | 'kind' | 'firstSegment'>

/** A chunk of a film with where its work stands. */
export type FilmChunk = Chunk & Pick<ChunkRow, 'videoId' | 'generation' | 'state' | 'attempt'>

function toFilmChunk(row: ChunkRow): FilmChunk {
  return { ...row, fromStart: row.fromStart === 1 }
}

/** What a viewer or a new film waits for right now; everything above is backlog. */
const URGENT_PRIORITY = 0

export async function insertChunks(
  tx: Db,
  videoId: string,
  generation: number,
  chunks: readonly Chunk[],
  attempt = 0,
): Promise<void> {
  if (chunks.length === 0) return
  const { position } = await tx.selectFrom('video').select('position').where('id', '=', videoId).executeTakeFirstOrThrow()
  const common = { videoId, generation, position, state: 'waiting', attempt } as const
  const rows = chunks.map((chunk) => ({ ...chunk, fromStart: Number(chunk.fromStart), ...common }))
  await tx.insertInto('chunk').values(rows).execute()
}

/** Takes the waiting chunk that is needed first, so that no other run gets it. The attempt is the fence of this run. */
export async function claimChunk(tx: Db, urgentOnly: boolean, exceptOf: readonly string[] = []): Promise<FilmChunk | undefined> {
  let waiting = tx
    .selectFrom('chunk')
    .innerJoin('video', (join) => join.onRef('video.id', '=', 'chunk.videoId').onRef('video.generation', '=', 'chunk.generation'))
    .selectAll('chunk')
    // Written out: an index of the open chunks alone cannot serve a bound value.
    .where('chunk.state', '=', sql.lit('waiting'))
    .where('video.deletedAtS', 'is', null)
    .where('video.status', 'in', ['Processing', 'ready'])
    .where('chunk.videoId', 'not in', [...exceptOf])
  if (urgentOnly) waiting = waiting.where('chunk.priority', '<=', URGENT_PRIORITY)
  const next = await waiting.orderBy('chunk.priority').orderBy('chunk.position').limit(1).executeTakeFirst()
  if (!next) return undefined
  const attempt = next.attempt + 1
  await chunkOf(tx, next).set({ state: 'running', attempt }).execute()
  return toFilmChunk({ ...next, state: 'running', attempt })
}

/** Whether somebody waits for the pictures of this short chunk right now. */
export function isAwaited({ kind, segmentCount, priority }: FilmChunk): boolean {
  return kind === 'picture' && segmentCount <= AWAITED_SEGMENTS && priority <= URGENT_PRIORITY
}

export async function isAnyWaiting(db: Db): Promise<boolean> {
  const row = await db.selectFrom('chunk').select('videoId').where('state', '=', sql.lit('waiting')).limit(1).executeTakeFirst()
  return row !== undefined
}

function chunkOf(tx: Db, key: ChunkKey) {
  return tx
    .updateTable('chunk')
    .where('videoId', '=', key.videoId)
    .where('generation', '=', key.generation)
    .where('kind', '=', key.kind)
    .where('firstSegment', '=', key.firstSegment)
}

/** Ends this run of the chunk. False: the run was fenced off, by another or by a deletion. */
export async function endRun(tx: Db, run: FilmChunk, state: 'done' | 'waiting' | 'failed'): Promise<boolean> {
  const ended = await chunkOf(tx, run)
    .where('state', '=', 'running')
    .where('attempt', '=', run.attempt)
    .set({ state })
    .executeTakeFirst()
  return ended.numUpdatedRows > 0n
}

/** Whether this run may still publish: its attempt is the chunk's, and the video plays this generation. */
export async function mayPublish(tx: Db, run: FilmChunk): Promise<boolean> {
  const row = await tx
    .selectFrom('chunk')
    .innerJoin('video', (join) => join.onRef('video.id', '=', 'chunk.videoId').onRef('video.generation', '=', 'chunk.generation'))
    .select('chunk.attempt')
    .where('chunk.videoId', '=', run.videoId)
    .where('chunk.generation', '=', run.generation)
    .where('chunk.kind', '=', run.kind)
    .where('chunk.firstSegment', '=', run.firstSegment)
    .where('chunk.attempt', '=', run.attempt)
    .where('chunk.state', '=', 'running')
    .where('video.deletedAtS', 'is', null)
    .executeTakeFirst()
  return row !== undefined
}

/** Runs that a crash cut off wait again. Only at a start: one process writes to a data folder. */
export async function resumeCutOffRuns(tx: Db): Promise<void> {
  await tx.updateTable('chunk').set({ state: 'waiting' }).where('state', '=', sql.lit('running')).execute()
}

/** Lets go of what a failed film still had to do. */
export async function giveUpChunks(tx: Db, videoId: string): Promise<void> {
  await tx.updateTable('chunk').set({ state: 'failed' }).where('videoId', '=', videoId).where('state', '=', 'waiting').execute()
}

/** The chunk that a segment is in, while it still waits. */
export async function findWaitingChunk(
  db: Db,
  key: Omit<ChunkKey, 'firstSegment'>,
  segment: number,
): Promise<FilmChunk | undefined> {
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
  return row?.state === 'waiting' ? toFilmChunk(row) : undefined
}

/** Puts other chunks in the place of one. Its run, if there is one, is fenced off. False: it was not in that state any more. */
export async function replaceChunk(tx: Db, chunk: FilmChunk, pieces: readonly Chunk[]): Promise<boolean> {
  const removed = await tx
    .deleteFrom('chunk')
    .where('videoId', '=', chunk.videoId)
    .where('generation', '=', chunk.generation)
    .where('kind', '=', chunk.kind)
    .where('firstSegment', '=', chunk.firstSegment)
    .where('state', '=', chunk.state)
    .where('attempt', '=', chunk.attempt)
    .executeTakeFirst()
  if (removed.numDeletedRows === 0n) return false
  // They go on counting: a piece that begins where the old chunk did must not get the number of a run that still goes.
  await insertChunks(tx, chunk.videoId, chunk.generation, pieces, chunk.attempt)
  return true
}

/** The chunks of one kind that no run has finished. */
export async function listUnfinishedChunks(
  tx: Db,
  videoId: string,
  generation: number,
  kind: ChunkRow['kind'],
): Promise<FilmChunk[]> {
  const rows = await tx
    .selectFrom('chunk')
    .selectAll()
    .where('videoId', '=', videoId)
    .where('generation', '=', generation)
    .where('kind', '=', kind)
    .where('state', '!=', 'done')
    .orderBy('firstSegment')
    .execute()
  return rows.map(toFilmChunk)
}
