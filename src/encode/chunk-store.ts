import { type ExpressionBuilder, sql } from 'kysely'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { countRows, hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { ChunkRow, Tables } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'
import { CHUNK_KINDS, type Chunk, type ChunkKind, URGENT_SEGMENTS } from './chunk-plan.ts'

export type ChunkKey = Pick<ChunkRow, 'videoId' | 'generation' | 'kind' | 'firstSegment'>

function chunkKey({ videoId, generation, kind, firstSegment }: ChunkKey): ChunkKey {
  return { videoId, generation, kind, firstSegment }
}

export type VideoChunk = Chunk &
  Pick<ChunkRow, 'videoId' | 'generation' | 'state' | 'attempt' | 'threads'> & {
    /** An owner asked for it to be encoded again: what is published is compared with what comes out. */
    isCompared?: boolean
  }

function toVideoChunk(row: ChunkRow): VideoChunk {
  const { compared, decodesFromStart, ...rest } = row
  return { ...rest, decodesFromStart: decodesFromStart === 1, ...(compared === 1 && { isCompared: true }) }
}

/** For chunks that a viewer or a new video waits for right now; everything above is backlog. */
export const URGENT_PRIORITY = 0

/** The statuses of a video whose chunks are encoded. */
export const ENCODABLE_STATUSES = ['Processing', 'ready'] as const

export type ChunkFilter = {
  nowS: number
  /** Only this priority and lower numbers, which come first. */
  upToPriority?: number
  /** Only higher numbers than this one. */
  abovePriority?: number
  /** The one video that may be encoded. */
  only?: string | undefined
  /** From how many of the first one is drawn; 1 unless given. */
  candidates?: number
  /** Only of these kinds. */
  kinds?: readonly ChunkRow['kind'][] | undefined
  /** Only those that are decoded from the video's start, or only the others. */
  decodesFromStart?: boolean | undefined
  /** Only those that this encoder may have. */
  by?: ClaimingEncoder | undefined
}

/** An encoder among others: it gets the chunks of its own generations, and begins again those of which none of their encoder is there. */
export type ClaimingEncoder = {
  fingerprint: string
  /** What can be encoded with this fingerprint, by this encoder and by those like it. */
  kinds: readonly ChunkKind[]
  /** The other fingerprints that are there, by what these encode. */
  others: Readonly<Record<ChunkKind, readonly string[]>>
}

export async function insertChunks(
  tx: Db,
  { videoId, generation, attempt = 0, state = 'pending' }: GenerationKey & { attempt?: number; state?: ChunkRow['state'] },
  chunks: readonly Chunk[],
): Promise<void> {
  if (chunks.length === 0) return
  const { position } = await tx.selectFrom('video').select('position').where('id', '=', videoId).executeTakeFirstOrThrow()
  const common = { videoId, generation, position, state, attempt } as const
  const rows = chunks.map((chunk) => ({ ...chunk, decodesFromStart: Number(chunk.decodesFromStart), ...common }))
  await tx.insertInto('chunk').values(rows).execute()
}

/** The pending chunk that is needed first. */
export async function findNextChunk(db: Db, filter: ChunkFilter): Promise<VideoChunk | undefined> {
  const { upToPriority, abovePriority } = filter
  let pending = pendingChunks(db, filter)
  if (upToPriority !== undefined) pending = pending.where('chunk.priority', '<=', upToPriority)
  if (abovePriority !== undefined) pending = pending.where('chunk.priority', '>', abovePriority)
  return draw(pending.orderBy('chunk.priority').orderBy('chunk.position'), filter)
}

/**
 * Of the oldest video, the pending chunk that is needed first: the order by priority encodes the start of each new video before the end
 * of an old one.
 */
export async function findOldestChunk(db: Db, filter: ChunkFilter): Promise<VideoChunk | undefined> {
  const pending = pendingChunks(db, filter)
  return draw(pending.orderBy('chunk.position').orderBy('chunk.priority'), filter)
}

async function draw(pending: ReturnType<typeof pendingChunks>, { candidates = 1 }: ChunkFilter): Promise<VideoChunk | undefined> {
  const first = await pending.limit(candidates).execute()
  const drawn = first[Math.floor(Math.random() * first.length)]
  return drawn && toVideoChunk(drawn)
}

function pendingChunks(db: Db, { nowS, only, kinds, decodesFromStart, by }: ChunkFilter) {
  return (
    db
      .selectFrom('chunk')
      .selectAll('chunk')
      // A literal: the partial indexes of pending chunks cannot serve a bound value.
      .where('chunk.state', '=', sql.lit('pending'))
      // Not a join: before the first ANALYZE, PostgreSQL would begin with all videos.
      .where(
        (of) =>
          of
            .selectFrom('video')
            .select('video.status')
            .whereRef('video.id', '=', 'chunk.videoId')
            .whereRef('video.generation', '<=', 'chunk.generation')
            .where('video.deletedAtS', 'is', null),
        'in',
        ENCODABLE_STATUSES,
      )
      .where('chunk.videoId', 'not in', claimedSubjects(db, 'encoding', nowS))
      .$if(only !== undefined, (chunk) => chunk.where('chunk.videoId', '=', only ?? ''))
      .$if(kinds !== undefined, (chunk) => chunk.where('chunk.kind', 'in', kinds ?? []))
      .$if(decodesFromStart !== undefined, (chunk) => chunk.where('chunk.decodesFromStart', '=', Number(decodesFromStart)))
      .$if(by !== undefined, (chunk) => chunk.where((of) => of.and(by ? allowedTo(of, by) : [])))
  )
}

/** Nothing where one encoder is alone. */
function allowedTo(of: ExpressionBuilder<Tables, 'chunk'>, { fingerprint, kinds, others }: ClaimingEncoder) {
  const encoder = of
    .selectFrom('generation')
    .select('generation.encoder')
    .whereRef('generation.videoId', '=', 'chunk.videoId')
    .whereRef('generation.number', '=', 'chunk.generation')
  const leftByOthers = CHUNK_KINDS.filter((kind) => others[kind].length > 0).map((kind) =>
    of.or([of('chunk.kind', '!=', kind), of(encoder, 'not in', others[kind])]),
  )
  if (CHUNK_KINDS.every((kind) => kinds.includes(kind))) return leftByOthers
  // What it cannot encode all of would wait in the next generation, too.
  const beyondIt = of
    .selectFrom('chunk as other')
    .select('other.kind')
    .whereRef('other.videoId', '=', 'chunk.videoId')
    .whereRef('other.generation', '=', 'chunk.generation')
    .where('other.kind', 'not in', kinds)
  return [...leftByOthers, of.or([of(encoder, '=', fingerprint), of.not(of.exists(beyondIt))])]
}

/** What a run claims: each of a chunk's runs is work of its own. */
export function subjectOfNextRun({ videoId, generation, kind, firstSegment, attempt }: VideoChunk): string {
  return [videoId, generation, kind, firstSegment, attempt + 1].join('/')
}

/** Makes a chunk pending whose run has ended without it, as in a crash. */
export async function releaseRun(tx: Db, subject: string): Promise<void> {
  const [videoId = '', generation, kind, firstSegment, attempt] = subject.split('/')
  await updateChunk(tx, {
    videoId,
    generation: Number(generation),
    kind: kind === 'audio' ? 'audio' : 'video',
    firstSegment: Number(firstSegment),
  })
    .where(({ and }) => and({ state: 'running', attempt: Number(attempt) }))
    .set({ state: 'pending' })
    .execute()
}

/**
 * Begins a run of a pending chunk, in the transaction that claims it. Its attempt is the fence of this run: no other may publish or end
 * it. Undefined: the chunk is no longer as it was found.
 */
export async function beginRun(tx: Db, found: ChunkKey & Pick<VideoChunk, 'attempt'>): Promise<VideoChunk | undefined> {
  const row = await updateChunk(tx, found)
    .where(({ and }) => and({ state: 'pending', attempt: found.attempt }))
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
  return kind === 'video' && segmentCount <= URGENT_SEGMENTS && priority <= URGENT_PRIORITY
}

/** Whether a run of the chunk has begun, and not ended. */
export async function isRunning(db: Db, key: ChunkKey): Promise<boolean> {
  return hasRow(db.selectFrom('chunk').where(({ and }) => and({ ...chunkKey(key), state: 'running' })))
}

export async function hasPendingChunks(db: Db): Promise<boolean> {
  return hasRow(db.selectFrom('chunk').where('state', '=', sql.lit('pending')))
}

function updateChunk(tx: Db, key: ChunkKey) {
  return tx.updateTable('chunk').where(({ and }) => and(chunkKey(key)))
}

/** Ends this run of the chunk. False: the run was fenced off, by another or by a deletion. @param workerId of what encoded it elsewhere */
export async function endRun(tx: Db, chunk: VideoChunk, state: 'done' | 'failed', workerId?: string): Promise<boolean> {
  const ended = await updateChunk(tx, chunk)
    .where(({ and }) => and({ state: 'running', attempt: chunk.attempt }))
    .set({ state, threads: chunk.threads, workerId: workerId ?? null, compared: 0 })
    .executeTakeFirst()
  return ended.numUpdatedRows > 0n
}

/** A finished chunk that a worker encoded, of a video that is not deleted. @param except videos that cannot be looked at now */
export async function findChunkOfWorker(db: Db, workerId: string, except: readonly string[]): Promise<VideoChunk | undefined> {
  const row = await db
    .selectFrom('chunk')
    .innerJoin('video', 'video.id', 'chunk.videoId')
    .selectAll('chunk')
    .where('chunk.workerId', '=', workerId)
    .where('chunk.state', '=', 'done')
    .where('video.deletedAtS', 'is', null)
    .$if(except.length > 0, (chunk) => chunk.where('chunk.videoId', 'not in', except))
    .limit(1)
    .executeTakeFirst()
  return row && toVideoChunk(row)
}

/** Forgets which worker encoded a chunk, whose segments were all compared since. */
export async function forgetWorker(tx: Db, chunk: ChunkKey): Promise<void> {
  await updateChunk(tx, chunk).set({ workerId: null }).execute()
}

/** Makes a finished chunk pending again: one of its segments is damaged, or all are to be compared. False: it was not finished. */
export async function reopenChunk(tx: Db, key: ChunkKey, isCompared = false): Promise<boolean> {
  const again = { state: 'pending', compared: Number(isCompared) } as const
  const reopened = await updateChunk(tx, key).where('state', '=', 'done').set(again).executeTakeFirst()
  return reopened.numUpdatedRows > 0n
}

/**
 * Changes the priority of a whole pending chunk. Used for repairs: other chunks are split to reach a segment sooner (`replaceChunk`), but
 * a repair must give the same bytes. False: it is no longer pending.
 */
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
    .where(({ and }) => and({ videoId: key.videoId, generation: key.generation, kind: key.kind }))
    .where('firstSegment', '<=', segment)
    .orderBy('firstSegment', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.state === 'pending' ? toVideoChunk(row) : undefined
}

/** Replaces a chunk by others. Its run, if there is one, is fenced off. False: the chunk is no longer in that state. */
export async function replaceChunk(tx: Db, chunk: VideoChunk, pieces: readonly Chunk[]): Promise<boolean> {
  const removed = await tx
    .deleteFrom('chunk')
    .where(({ and }) => and({ ...chunkKey(chunk), state: chunk.state, attempt: chunk.attempt }))
    .executeTakeFirst()
  if (removed.numDeletedRows === 0n) return false
  const { videoId, generation, attempt } = chunk
  // Attempts continue to count: a new chunk at the same first segment must not get the number of a run that still runs.
  await insertChunks(tx, { videoId, generation, attempt }, pieces)
  return true
}

/** How many chunks of one kind decode from the video's start. */
export async function countSequentialChunks(tx: Db, { videoId, generation, kind }: GenerationKey & Pick<ChunkRow, 'kind'>) {
  return countRows(tx.selectFrom('chunk').where(({ and }) => and({ videoId, generation, kind, decodesFromStart: 1 })))
}

/** The chunks of one kind, in order. */
export async function listChunks(db: Db, chunks: GenerationKey & Pick<ChunkRow, 'kind'>): Promise<VideoChunk[]> {
  return (await chunksOf(db, chunks).execute()).map(toVideoChunk)
}

/** The chunks of one kind that no run has finished, in order. */
export async function listUnfinishedChunks(db: Db, chunks: GenerationKey & Pick<ChunkRow, 'kind'>): Promise<VideoChunk[]> {
  return (await chunksOf(db, chunks).where('state', '!=', 'done').execute()).map(toVideoChunk)
}

function chunksOf(db: Db, { videoId, generation, kind }: GenerationKey & Pick<ChunkRow, 'kind'>) {
  return db
    .selectFrom('chunk')
    .selectAll()
    .where(({ and }) => and({ videoId, generation, kind }))
    .orderBy('firstSegment')
}
