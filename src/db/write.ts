import { performance } from 'node:perf_hooks'
import type { Kysely } from 'kysely'
import { Failure } from '../errors.ts'
import type { ChangedTables } from './changed-tables.ts'
import type { Tables } from './tables.ts'

/**
 * Runs `change` in a transaction and resolves when it is durable. Calls of one turn of the event loop share a transaction and
 * one fsync; one that throws is rolled back alone. The callback awaits nothing but its own statements: anything else would
 * delay every other writer. It may run more than once before it is committed, so it has no effects besides what it writes and
 * returns.
 */
export type Write = {
  <T>(change: (tx: Kysely<Tables>) => Promise<T>): Promise<T>
  /** The same for one statement that adds rows, such as an OTP: those of a group may be sent concurrently. */
  append<T>(statement: (tx: Kysely<Tables>) => Promise<T>): Promise<T>
  /** The same for a change that frees space, such as a deletion: on a full disk it may use what is kept in reserve. */
  makingRoom<T>(change: (tx: Kysely<Tables>) => Promise<T>): Promise<T>
  /** Runs a statement that must not be in a transaction, between two groups. */
  outsideTransaction<T>(statement: (db: Kysely<Tables>) => Promise<T>): Promise<T>
  /**
   * Calls `listener` after each group that was committed, or may have been, before its calls resolve. Features listen to `src/signals/`
   * instead.
   */
  onCommit(listener: (changed: ChangedTables) => void): void
}

/**
 * What the caller of a feature wants written in the same transaction as the effect, whose outcome it gets: both are durable, or
 * neither.
 */
export type AlsoInTransaction<Outcome> = (tx: Kysely<Tables>, outcome: Outcome) => Promise<void>

/** A call of `write` that waits for its group. */
export type Call = {
  isAppend: boolean
  makesRoom: boolean
  run(db: Kysely<Tables>): Promise<void>
  /** Reports to the caller that it is durable. */
  resolve(): void
  reject(error: unknown): void
}

/** How a database commits the calls of one turn. */
export type Committer = {
  db: Kysely<Tables>
  /** Begins a transaction without waiting. False: another program writes to the database. */
  begin(): boolean | Promise<boolean>
  /**
   * Runs the calls in the transaction that was begun, and ends it; a call that fails by itself is rejected.
   * @returns those that are durable now
   * @throws an error of the whole group
   */
  commit(group: readonly Call[]): Promise<readonly Call[]>
  /** The tables that have been changed since the last call. */
  takeChanges(): ChangedTables
  /** The error for the caller: a problem of the database becomes a `Failure` with a sentence. */
  toPublicError(error: unknown): unknown
}

/** How long a call waits for another program that writes to the database. */
const MAX_LOCK_WAIT_MS = 5_000
const LOCK_RETRY_MS = 25

type PendingCall = Call & { calledAtMs: number }

/** Durable writes on one connection by group commit. */
export function createGroupCommitter({
  db,
  begin,
  commit,
  takeChanges,
  toPublicError,
}: Committer): Write & { blockWrites(reason: Failure): void } {
  let pending: PendingCall[] = []
  let blockedBy: Failure | undefined
  let lastTurn: Promise<void> = Promise.resolve()
  const listeners: ((changed: ChangedTables) => void)[] = []

  // One turn after the other on the single connection; calls that arrive while a group commits form the next group.
  function enqueue(work: () => Promise<void>) {
    lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve))).then(work)
  }

  type Change<T> = (tx: Kysely<Tables>) => Promise<T>
  const PLAIN = { isAppend: false, makesRoom: false }

  function write<T>(change: Change<T>, kind: Pick<Call, 'isAppend' | 'makesRoom'> = PLAIN): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let result: T
      if (pending.length === 0) enqueue(commitPending)
      pending.push({
        ...kind,
        calledAtMs: performance.now(),
        run: async (tx) => {
          result = await change(tx)
        },
        resolve: () => resolve(result),
        reject: reject,
      })
    })
  }

  async function commitPending(): Promise<void> {
    try {
      if (blockedBy) throw blockedBy
      while (pending.length > 0 && !(await begin())) {
        const latestMs = performance.now() - MAX_LOCK_WAIT_MS
        const timedOut = pending.filter(({ calledAtMs }) => calledAtMs <= latestMs)
        pending = pending.filter(({ calledAtMs }) => calledAtMs > latestMs)
        rejectAll(timedOut, databaseLocked())
        if (pending.length > 0) await new Promise((resolve) => setTimeout(resolve, LOCK_RETRY_MS))
      }
    } catch (error) {
      return rejectAll(takePending(), error) // no transaction could be begun
    }
    const group = takePending()
    if (group.length > 0) await commitGroup(group)
  }

  async function commitGroup(group: readonly Call[]): Promise<void> {
    try {
      const durable = await commit(group)
      reportChanges()
      for (const call of durable) call.resolve()
    } catch (error) {
      reportChanges() // it may have been committed
      rejectAll(group, error)
    }
  }

  function reportChanges(): void {
    const changed = takeChanges()
    for (const listener of listeners) listener(changed)
  }

  function takePending(): Call[] {
    const calls = pending
    pending = []
    return calls
  }

  function rejectAll(calls: readonly Call[], error: unknown): void {
    const publicError = toPublicError(error)
    for (const call of calls) call.reject(publicError)
  }

  function outsideTransaction<T>(statement: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    // `try`: a statement that throws before it returns a promise must not stop all later turns.
    return new Promise<T>((resolve, reject) => enqueue(() => Promise.try(statement, db).then(resolve, reject)))
  }

  /** Rejects every call from now on. */
  function blockWrites(reason: Failure): void {
    blockedBy = reason
  }

  return Object.assign(<T>(change: Change<T>) => write(change), {
    append: <T>(statement: Change<T>) => write(statement, { ...PLAIN, isAppend: true }),
    makingRoom: <T>(change: Change<T>) => write(change, { ...PLAIN, makesRoom: true }),
    outsideTransaction,
    onCommit: (listener: (changed: ChangedTables) => void) => void listeners.push(listener),
    blockWrites,
  })
}

export function databaseLocked(cause?: unknown): Failure {
  return new Failure('unavailable', 'The database is in use by another program. Try again in a moment.', { cause })
}

/** The change may have been committed, or may reappear after a crash: the caller must check before it repeats the call. */
export class CommitOutcomeUnknown extends Failure {
  constructor(sentence: string, options?: ErrorOptions) {
    super('unavailable', sentence, options)
  }
}

/**
 * Whether a rejected call may have been committed: then files that it names must stay; the sweep removes them if no row names
 * them.
 */
export function isCommitOutcomeUnknown(error: unknown): boolean {
  return error instanceof CommitOutcomeUnknown
}
