import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import type { ClaimedJob, ClaimFilter, ClaimRow, Queue, QueuedJob, Stale } from '../jobs/queue.ts'
import type { Chunk } from './chunk-plan.ts'
import {
  beginRun,
  type ChunkKey,
  deleteChunk,
  endRun,
  findNextChunk,
  findOldestChunk,
  insertChunks,
  listPendingChunks,
  listPendingChunksOf,
  OLDEST_PRIORITY,
  type PendingChunk,
  reopenChunk,
  resumeInterruptedRuns,
  setPriority,
  type VideoChunk,
} from './chunk-store.ts'
import { listDamaged } from './damage-store.ts'

/** A chunk as it was when it became pending. */
export type ChunkJob = ChunkKey & Pick<VideoChunk, 'attempt'>

/** Says which chunks are pending. Every chunk that becomes pending is enqueued here. */
export type ChunkQueue = Queue<ChunkJob>

/** The rows themselves: where one process does all the work, an index of pending rows is the queue. */
export const rowQueue: ChunkQueue = {
  enqueue: async () => undefined,
  async claim(tx, filter, claimRow) {
    return claimFromRows(tx, await findNextChunk(tx, filter), claimRow)
  },
  rebuild: async () => undefined,
  watch: () => undefined,
}

/** The same queue while only one video may be encoded. It reads that video's rows, since jobs of other videos would be claimed first. */
export function forVideo(videoId: string, queue: ChunkQueue): ChunkQueue {
  return {
    ...queue,
    async claim(tx, filter, claimRow) {
      return claimFromRows(tx, await findNextChunk(tx, filter, videoId), claimRow)
    },
  }
}

/** Rows are never redelivered, and no other process can take them. */
async function claimFromRows<Run>(
  tx: Db,
  next: ChunkJob | undefined,
  claimRow: ClaimRow<ChunkJob, Run>,
): Promise<ClaimedJob<Run> | undefined> {
  const run = next && (await claimRow(tx, next, 0))
  return run && { run, hold: (work) => work() }
}

/** Enqueued in one transaction: a large installation has hundreds of thousands of pending chunks. */
const ENQUEUE_BATCH_SIZE = 1_000

/** At a start: interrupted chunks become pending again. Only one server uses a database, so no living run is interrupted. */
export async function resumeChunks(write: Write, queue: ChunkQueue): Promise<void> {
  await write(resumeInterruptedRuns)
  await queue.rebuild(async (enqueue) => {
    let last: PendingChunk | undefined
    do {
      last = await write(async (tx) => {
        const batch = await listPendingChunks(tx, last, ENQUEUE_BATCH_SIZE)
        await enqueue(tx, batch.map(toJob))
        return batch.length === ENQUEUE_BATCH_SIZE ? batch.at(-1) : undefined
      })
    } while (last)
  })
}

export async function addChunks(
  tx: Db,
  queue: ChunkQueue,
  { videoId, generation, attempt = 0 }: GenerationKey & { attempt?: number },
  chunks: readonly Chunk[],
): Promise<void> {
  await insertChunks(tx, { videoId, generation, attempt }, chunks)
  await queue.enqueue(
    tx,
    chunks.map((chunk) => toJob({ ...chunk, videoId, generation, attempt })),
  )
}

/** Queues the pending chunks of restored videos: their jobs were dropped while the videos were deleted. */
export async function requeueChunks(tx: Db, queue: ChunkQueue, videoIds: readonly string[]): Promise<void> {
  await queue.enqueue(tx, (await listPendingChunksOf(tx, videoIds)).map(toJob))
}

/** Replaces a chunk by others. Its run, if there is one, is fenced off. False: the chunk is no longer in that state. */
export async function replaceChunk(tx: Db, queue: ChunkQueue, chunk: VideoChunk, pieces: readonly Chunk[]): Promise<boolean> {
  if (!(await deleteChunk(tx, chunk))) return false
  // Attempts continue to count: a new chunk at the same first segment must not get the number of a run that still runs.
  await addChunks(tx, queue, chunk, pieces)
  return true
}

/** Queues a finished chunk again, because one of its segments is damaged. False: it was not finished. */
export async function queueRepair(tx: Db, queue: ChunkQueue, key: ChunkKey): Promise<boolean> {
  const chunk = await reopenChunk(tx, key)
  if (chunk) await queue.enqueue(tx, [toJob(chunk)])
  return chunk !== undefined
}

/** Ends a run that encoded its chunk. If a segment was found damaged meanwhile, the chunk is queued again. */
export async function finishRun(tx: Db, queue: ChunkQueue, chunk: VideoChunk): Promise<void> {
  if ((await endRun(tx, chunk, 'done')) && (await listDamaged(tx, chunk)).length > 0) await queueRepair(tx, queue, chunk)
}

/**
 * Changes the priority of a whole pending chunk, whose former job becomes stale. Used for repairs: other chunks are split to reach a
 * segment sooner (`replaceChunk`), but a repair must give the same bytes. False: it is no longer pending.
 */
export async function prioritize(tx: Db, queue: ChunkQueue, chunk: VideoChunk, priority: number): Promise<boolean> {
  if (!(await setPriority(tx, chunk, priority))) return false
  await queue.enqueue(tx, [toJob({ ...chunk, priority })])
  return true
}

/**
 * Claims the chunk that is needed first, so that no other run gets it.
 * @param filter called inside each transaction, so that it reflects all earlier writes
 */
export async function claimChunk(
  write: Write,
  queue: ChunkQueue,
  filter: () => ClaimFilter,
): Promise<ClaimedJob<VideoChunk> | undefined> {
  for (;;) {
    // One transaction per job, since many may be stale, such as those of a deleted video.
    const claimed = await write((tx) => tryClaimChunk(tx, queue, filter()))
    if (claimed !== 'stale') return claimed
  }
}

/**
 * Claims a chunk of the oldest video, which gets the first priority for it: the order by priority encodes the start of each new video
 * before the end of an old one.
 * @param filter.only the one video that may be encoded
 */
export async function claimOldestChunk(
  write: Write,
  queue: ChunkQueue,
  { except, only }: { except: readonly string[]; only?: string | undefined },
): Promise<ClaimedJob<VideoChunk> | undefined> {
  await write(async (tx) => {
    const oldest = await findOldestChunk(tx, except, only)
    if (oldest) await prioritize(tx, queue, oldest, OLDEST_PRIORITY)
  })
  return claimChunk(write, queue, () => ({ upToPriority: OLDEST_PRIORITY, except }))
}

/** `claimChunk` within a transaction, of one job. */
export function tryClaimChunk(
  tx: Db,
  queue: ChunkQueue,
  filter: ClaimFilter,
): Promise<ClaimedJob<VideoChunk> | Stale | undefined> {
  return queue.claim(tx, filter, (tx, { attempt, ...key }, redeliveries) => {
    // A redelivered job takes over only its own run: since then the chunk may have been replaced by one at the same segment.
    return beginRun(tx, key, redeliveries > 0 ? attempt + redeliveries : undefined)
  })
}

function toJob(chunk: ChunkJob & Pick<Chunk, 'priority'>): QueuedJob<ChunkJob> {
  const { videoId, generation, kind, firstSegment, attempt, priority } = chunk
  return { target: { videoId, generation, kind, firstSegment, attempt }, priority, group: videoId }
}
