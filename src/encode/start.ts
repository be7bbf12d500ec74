import type { Logger } from 'pino'
import type { Db } from '../db/database.ts'
import { startDispatcher } from '../jobs/dispatcher.ts'
import { type ChunkJob, type ChunkQueue, resumeChunks, rowQueue } from './chunk-queue.ts'
import type { EncodeCounters } from './encode-counters.ts'
import type { EncodeDeps } from './encode-deps.ts'
import { reencryptVideo } from './next-generation.ts'
import { createSegmentEvents, type SegmentEvents } from './publication.ts'
import { type Damage, reportDamage } from './repair.ts'
import { retryVideo } from './retry.ts'
import { createEncodeScheduler } from './scheduler.ts'

export type EncodingDeps = Omit<EncodeDeps, 'chunkQueue' | 'segmentEvents' | 'stopJobs' | 'counters'> & {
  /** PostgreSQL, where the chunks are queued in it. */
  databaseUrl: string | undefined
  /** How many chunks are encoded concurrently. */
  slots: number
  /** Another server has taken the database: encoding ends. */
  databaseLost: Promise<void>
  /** Runs when a segment was found damaged, so that no cache keeps sending it. */
  forgetSegment(damage: Damage): void
}

export type Encoding = {
  chunkQueue: ChunkQueue
  segmentEvents: SegmentEvents
  counters: EncodeCounters
  /** Has a damaged segment encoded again. @returns false when it is no longer published */
  repairSegment(damage: Damage): Promise<boolean>
  /** Has a video encoded again under a new content key: see `reencryptVideo`. */
  reencrypt(videoId: string, alsoInTransaction: (tx: Db, accountId: string) => Promise<void>): Promise<void>
  /** Has a failed video encoded again: see `retryVideo`. */
  retry(video: { accountId: string; videoId: string }, alsoInTransaction: (tx: Db) => Promise<void>): Promise<void>
  /** Looks for work now. */
  wake(): void
  stopJobs(videoId: string): Promise<void>
}

/** How often to look for work that nothing announced: a source whose commit got no answer may have been kept. */
const POLL_INTERVAL_MS = 5_000

/** Encodes what is uploaded, from now on. @param opened stops it */
export async function startEncoding(
  { databaseUrl, slots, databaseLost, forgetSegment, ...deps }: EncodingDeps,
  opened: AsyncDisposableStack,
): Promise<Encoding> {
  const { write, log } = deps
  const segmentEvents = createSegmentEvents()
  const chunkQueue = await openChunkQueue(databaseUrl, log, opened)
  const stopJobs = (videoId: string) => dispatcher.stopJobs(videoId)
  const counters = { segments: 0, failures: 0 }
  const encodeDeps = { ...deps, chunkQueue, segmentEvents, counters, stopJobs }
  const scheduler = createEncodeScheduler(encodeDeps, () => dispatcher.wake())
  const dispatcher = startDispatcher({ slots, claim: scheduler.claim, pollIntervalMs: POLL_INTERVAL_MS, log })
  opened.defer(() => dispatcher.stop())
  void databaseLost.then(() => dispatcher.stop()) // the queue has connections of its own
  await resumeChunks(write, chunkQueue)
  chunkQueue.watch(dispatcher.wake)
  return {
    chunkQueue,
    segmentEvents,
    counters,
    async repairSegment(damage) {
      const isDamaged = await reportDamage({ write, chunkQueue, log }, damage)
      forgetSegment(damage)
      dispatcher.wake()
      return isDamaged
    },
    async reencrypt(videoId, alsoInTransaction) {
      await reencryptVideo(encodeDeps, videoId, alsoInTransaction)
      dispatcher.wake()
    },
    async retry(video, alsoInTransaction) {
      await retryVideo(encodeDeps, video, alsoInTransaction)
      dispatcher.wake()
    },
    wake: dispatcher.wake,
    stopJobs,
  }
}

/** pg-boss is loaded only where there is a PostgreSQL. */
async function openChunkQueue(databaseUrl: string | undefined, log: Logger, opened: AsyncDisposableStack): Promise<ChunkQueue> {
  if (databaseUrl === undefined) return rowQueue
  const { openBossQueue } = await import('../jobs/boss.ts')
  const queue = await openBossQueue<ChunkJob>({ url: databaseUrl, name: 'chunk', log })
  opened.defer(() => queue.stop())
  return queue
}
