import { performance } from 'node:perf_hooks'
import type { Kysely } from 'kysely'
import { Failure } from '../errors.ts'
import type { Tables } from './tables.ts'

/**
 * Runs `change` in a transaction and resolves when it is durable. Calls of one turn of the event loop share a transaction and
 * one fsync; one that throws undoes itself alone.
 * The callback awaits nothing but its own statements: whatever else it awaited would hold up every other writer. It may run more than
 * once, until it is committed: it changes nothing but what it writes and returns.
 */
export type Write = {
  <T>(change: (tx: Kysely<Tables>) => Promise<T>): Promise<T>
  /** The same for a change that is one statement: those of a group may be sent at once. */
  one<T>(statement: (tx: Kysely<Tables>) => Promise<T>): Promise<T>
  /** The same for a change that frees space, such as a deletion: on a full disk it may use what is kept in reserve. */
  makingRoom<T>(change: (tx: Kysely<Tables>) => Promise<T>): Promise<T>
  /** Runs a statement that no transaction may surround, between two groups. */
  outside<T>(statement: (db: Kysely<Tables>) => Promise<T>): Promise<T>
  /** Grows with each group that was committed, or may have been: as long as it stands, whatever was read would be read again. */
  commits(): number
}

/** What a caller of a feature wants written in the transaction of the effect, which it is told of: both are durable, or neither. */
export type AlsoInTransaction<Outcome> = (tx: Kysely<Tables>, outcome: Outcome) => Promise<void>

/** A call that waits for its group. */
export type Call = {
  isOneStatement: boolean
  makesRoom: boolean
  run(db: Kysely<Tables>): Promise<void>
  /** Tells the caller that it is durable. */
  committed(): void
  failed(error: unknown): void
}

/** How a database commits what calls of one turn want changed. */
export type Committer = {
  db: Kysely<Tables>
  /** Begins a transaction, if it can at once. False: another program writes to the database. */
  begin(): boolean | Promise<boolean>
  /**
   * Runs the calls in the transaction that has begun, and ends it; a call that fails by itself is told so.
   * @returns those that are durable now
   * @throws what befell the whole group
   */
  commit(group: readonly Call[]): Promise<readonly Call[]>
  /** What is told of an error: trouble of the database becomes a Failure with a sentence. */
  tellable(error: unknown): unknown
}

/** How long a call waits for another program that writes to the database. */
const PATIENCE_MS = 5_000
const LOOK_AGAIN_MS = 25

type Waiting = Call & { madeMs: number }

/** The durable form of writing, on one connection: group commit. */
export function createGroupCommitter({ db, begin, commit, tellable }: Committer): Write & { forbid(why: Failure): void } {
  let waiting: Waiting[] = []
  let forbidden: Failure | undefined
  let turn: Promise<void> = Promise.resolve()
  let commits = 0

  // One after the other on the single connection; calls that arrive while a group commits form the next one.
  function next(work: () => Promise<void>) {
    turn = turn.then(() => new Promise((resolve) => setImmediate(resolve))).then(work)
  }

  type Change<T> = (tx: Kysely<Tables>) => Promise<T>
  const PLAIN = { isOneStatement: false, makesRoom: false }

  function write<T>(change: Change<T>, kind: Pick<Call, 'isOneStatement' | 'makesRoom'> = PLAIN): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let result: T
      if (waiting.length === 0) next(commitWaiting)
      waiting.push({
        ...kind,
        madeMs: performance.now(),
        run: async (tx) => {
          result = await change(tx)
        },
        committed: () => resolve(result),
        failed: reject,
      })
    })
  }

  async function commitWaiting(): Promise<void> {
    try {
      if (forbidden) throw forbidden
      while (waiting.length > 0 && !(await begin())) {
        const tooLateMs = performance.now() - PATIENCE_MS
        refuse(
          take(({ madeMs }) => madeMs <= tooLateMs),
          DATABASE_IN_USE,
        )
        if (waiting.length > 0) await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
      }
    } catch (error) {
      return refuse(
        take(() => true),
        error,
      ) // no transaction could be begun
    }
    const group = take(() => true)
    if (group.length > 0) await commitGroup(group)
  }

  async function commitGroup(group: readonly Call[]): Promise<void> {
    try {
      const done = await commit(group)
      commits++
      for (const call of done) call.committed()
    } catch (error) {
      commits++ // it may have been kept
      refuse(group, error)
    }
  }

  function take(which: (call: Waiting) => boolean): Call[] {
    const taken = waiting.filter(which)
    waiting = waiting.filter((call) => !which(call))
    return taken
  }

  function refuse(calls: readonly Call[], error: unknown): void {
    const told = tellable(error)
    for (const call of calls) call.failed(told)
  }

  function outside<T>(statement: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    // `try`: a statement that throws before it has a promise must not stop the turns of all that come after it.
    return new Promise<T>((resolve, reject) => next(() => Promise.try(statement, db).then(resolve, reject)))
  }

  /** Refuses every call from now on. */
  function forbid(why: Failure): void {
    forbidden = why
  }

  return Object.assign(<T>(change: Change<T>) => write(change), {
    one: <T>(statement: Change<T>) => write(statement, { ...PLAIN, isOneStatement: true }),
    makingRoom: <T>(change: Change<T>) => write(change, { ...PLAIN, makesRoom: true }),
    outside,
    commits: () => commits,
    forbid,
  })
}

export const DATABASE_IN_USE = new Failure('unavailable', 'The database is in use by another program. Try again in a moment.')

/** Refusal of a call that may come back after a crash, or may have been kept: only a look tells. */
export class CommitOutcomeUnknown extends Failure {
  constructor(sentence: string, options?: ErrorOptions) {
    super('unavailable', sentence, options)
  }
}

/** Whether a refused call may have been kept: what it names on disk must stay, and the sweep takes it if nothing does. */
export function isCommitOutcomeUnknown(error: unknown): boolean {
  return error instanceof CommitOutcomeUnknown
}

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
