import type { Db } from '../db/database.ts'

/** Says where to look: the row that waits is the truth, whatever the queue says of it. */
export type QueuedJob<Target> = {
  target: Target
  /** Lower ones come first. */
  priority: number
  /** What rests together: a video's id. */
  group: string
}

export type ClaimFilter = {
  /** Leaves what is wanted less. */
  upToPriority: number | undefined
  /** Leaves what is of these groups. */
  except: readonly string[]
}

/** Claims the row. `deaths`: how many runs died since the notice was given. Undefined: there is nothing to do for it any more. */
export type Claim<Target, Run> = (tx: Db, target: Target, deaths: number) => Promise<Run | undefined>

export type ClaimedJob<Run> = {
  run: Run
  /** Keeps the notice from others while the work goes on. Work that throws, or dies with its process, is given to another. */
  hold(work: () => Promise<void>): Promise<void>
}

/** The notice led to nothing, and is gone. */
export type Stale = 'stale'

/** In the transaction that makes the rows wait. */
export type Enqueue<Target> = (tx: Db, notices: readonly QueuedJob<Target>[]) => Promise<void>

/** What tells workers which rows wait. Where one process does all the work the rows themselves are the queue. */
export type Queue<Target> = {
  tell: Enqueue<Target>
  /** Takes the notice that is most wanted, in the transaction that claims its row. Undefined: none waits. */
  take<Run>(tx: Db, which: ClaimFilter, claim: Claim<Target, Run>): Promise<ClaimedJob<Run> | Stale | undefined>
  /** Forgets all notices for those that `tellAll` gives, of what waits now: a database may come from SQLite or from a copy, with none or old ones. */
  rebuild(tellAll: (tell: Enqueue<Target>) => Promise<void>): Promise<void>
  /** Says from now on when something waits that nobody here told of: a dead process held it, or another one told. */
  watch(found: () => void): void
}
