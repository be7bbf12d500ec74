import type { Db } from '../db/database.ts'

/** A hint at a pending row. The row is the truth: a job whose row is not pending is stale. */
export type QueuedJob<Target> = {
  target: Target
  /** Lower ones come first. */
  priority: number
  /** Jobs of one group are excluded together: a video's id. */
  group: string
}

export type ClaimFilter = {
  /** Only this priority and lower numbers, which come first. */
  upToPriority: number | undefined
  /** Only higher numbers than this one. */
  abovePriority?: number | undefined
  /** Groups to skip. */
  except: readonly string[]
}

/** Claims the row of a job. `redeliveries`: how often a worker died while it ran the job. Undefined: the row is no longer pending. */
export type ClaimRow<Target, Run> = (tx: Db, target: Target, redeliveries: number) => Promise<Run | undefined>

export type ClaimedJob<Run> = {
  run: Run
  /** Keeps the job from other workers while the work runs. When it throws, or its process dies, another worker gets the job. */
  hold(work: () => Promise<void>): Promise<void>
}

/** The claimed job was stale, and is removed. */
export type Stale = 'stale'

/** Called in the transaction that makes the rows pending. */
export type Enqueue<Target> = (tx: Db, jobs: readonly QueuedJob<Target>[]) => Promise<void>

/** Says which rows are pending. Where one process does all the work, the rows themselves are the queue. */
export type Queue<Target> = {
  enqueue: Enqueue<Target>
  /** Claims the most urgent job, in the transaction that claims its row. Undefined: no job is pending. */
  claim<Run>(tx: Db, filter: ClaimFilter, claimRow: ClaimRow<Target, Run>): Promise<ClaimedJob<Run> | Stale | undefined>
  /** Replaces all jobs by those that `enqueueAll` adds. A database that comes from SQLite or from a copy has none, or old ones. */
  rebuild(enqueueAll: (enqueue: Enqueue<Target>) => Promise<void>): Promise<void>
  /** Calls back whenever jobs are pending, also those of another process: one that died, or one that enqueued them. */
  watch(onPending: () => void): void
}
