import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import type { ClaimedJob, ClaimFilter, Queue, QueuedJob, Stale } from '../jobs/queue.ts'
import type { Chunk } from './chunk-plan.ts'
import {
  beginRun,
  type ChunkKey,
  deleteChunk,
  endRun,
  findNextChunk,
  insertChunks,
  listPendingChunks,
  type PendingChunk,
  reopenChunk,
  resumeInterruptedRuns,
  setPriority,
  type VideoChunk,
} from './chunk-store.ts'
import { listDamaged } from './damage-store.ts'

/** A chunk as it was when it came to wait. */
export type ChunkJob = ChunkKey & Pick<VideoChunk, 'attempt'>

/** Tells which chunks wait, in whatever way: every chunk that comes to wait goes through here. */
export type ChunkQueue = Queue<ChunkJob>

/** The rows themselves: where one process does all the work, an index of what waits is the queue. */
export const rowQueue: ChunkQueue = {
  tell: async () => undefined,
  async take(tx, which, claim) {
    const next = await findNextChunk(tx, which)
    const run = next && (await claim(tx, next, 0))
    return run && { run, hold: (work) => work() }
  },
  rebuild: async () => undefined,
  watch: () => undefined,
}

/** The same queue as long as only one video may be worked on: its rows are asked, since what waits of others would be taken before it. */
export function forVideo(videoId: string, queue: ChunkQueue): ChunkQueue {
  return {
    ...queue,
    async take(tx, which, claim) {
      const next = await findNextChunk(tx, which, videoId)
      const run = next && (await claim(tx, next, 0))
      return run && { run, hold: (work) => work() }
    },
  }
}

/** Told of in one transaction: of a large installation hundreds of thousands wait. */
const TOLD_AT_ONCE = 1_000

/** At a start: what was cut off waits again. One server works with a database, so nobody's living run is taken. */
export async function resumeChunks(write: Write, queue: ChunkQueue): Promise<void> {
  await write(resumeInterruptedRuns)
  await queue.rebuild(async (tell) => {
    let last: PendingChunk | undefined
    do {
      last = await write(async (tx) => {
        const some = await listPendingChunks(tx, last, TOLD_AT_ONCE)
        await tell(tx, some.map(noticeOf))
        return some.length === TOLD_AT_ONCE ? some.at(-1) : undefined
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
  await queue.tell(
    tx,
    chunks.map((chunk) => noticeOf({ ...chunk, videoId, generation, attempt })),
  )
}

/** Puts other chunks in the place of one. Its run, if there is one, is fenced off. False: it was not in that state any more. */
export async function replaceChunk(tx: Db, queue: ChunkQueue, chunk: VideoChunk, pieces: readonly Chunk[]): Promise<boolean> {
  if (!(await deleteChunk(tx, chunk))) return false
  // They go on counting: a piece that begins where the old chunk did must not get the number of a run that still goes.
  await addChunks(tx, queue, chunk, pieces)
  return true
}

/** Queues a finished chunk once more, because a segment of it is damaged. False: it was not finished. */
export async function queueRepair(tx: Db, queue: ChunkQueue, key: ChunkKey): Promise<boolean> {
  const chunk = await reopenChunk(tx, key)
  if (chunk) await queue.tell(tx, [noticeOf(chunk)])
  return chunk !== undefined
}

/** Ends a run that did its chunk. What was found damaged meanwhile queues it once more. */
export async function finishRun(tx: Db, queue: ChunkQueue, run: VideoChunk): Promise<void> {
  if ((await endRun(tx, run, 'done')) && (await listDamaged(tx, run)).length > 0) await queueRepair(tx, queue, run)
}

/** Gives a waiting chunk another priority, whole: what is to come out with the same bytes is not cut. */
export async function prioritize(tx: Db, queue: ChunkQueue, chunk: VideoChunk, priority: number): Promise<boolean> {
  if (!(await setPriority(tx, chunk, priority))) return false
  await queue.tell(tx, [noticeOf({ ...chunk, priority })])
  return true
}

/** Takes the chunk that is needed first, so that no other run gets it. @param which asked when it is taken: what was written before counts */
export async function claimChunk(
  write: Write,
  queue: ChunkQueue,
  which: () => ClaimFilter,
): Promise<ClaimedJob<VideoChunk> | undefined> {
  for (;;) {
    // A transaction for each, since many may be stale, such as those of a deleted video.
    const taken = await write((tx) => takeChunk(tx, queue, which()))
    if (taken !== 'stale') return taken
  }
}

export function takeChunk(tx: Db, queue: ChunkQueue, which: ClaimFilter): Promise<ClaimedJob<VideoChunk> | Stale | undefined> {
  return queue.take(tx, which, (tx, { attempt, ...key }, deaths) => {
    // Only this notice's own runs: another may run the chunk that has come into its place.
    return beginRun(tx, key, deaths > 0 ? attempt + deaths : undefined)
  })
}

function noticeOf(chunk: ChunkJob & Pick<Chunk, 'priority'>): QueuedJob<ChunkJob> {
  const { videoId, generation, kind, firstSegment, attempt, priority } = chunk
  return { target: { videoId, generation, kind, firstSegment, attempt }, priority, group: videoId }
}
