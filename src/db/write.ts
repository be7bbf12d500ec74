import { performance } from 'node:perf_hooks'
import type { Kysely } from 'kysely'
import { Failure } from '../errors.ts'
import type { Tables } from './tables.ts'

/**
 * Runs `change` in a transaction and resolves when it is durable. Calls of one turn of the event loop share a transaction and
 * one fsync; each has a savepoint of its own, so one that throws undoes itself alone.
 * The callback awaits nothing but its own statements: whatever else it awaited would hold up every other writer.
 */
export type Write = {
  <T>(change: (tx: Kysely<Tables>) => Promise<T>): Promise<T>
  /** Runs a statement that no transaction may surround, between two groups. */
  outside<T>(statement: (db: Kysely<Tables>) => Promise<T>): Promise<T>
  /** How many groups were committed: as long as it stands, whatever was read would be read again. */
  commits(): number
}

type Call = { run(db: Kysely<Tables>): Promise<void>; committed(): void; failed(error: unknown): void; madeMs: number }

/** What a caller of a feature wants written in the transaction of the effect, which it is told of: both are durable, or neither. */
export type Alongside<Outcome> = (tx: Kysely<Tables>, outcome: Outcome) => Promise<void>

/** The one connection that writes. `run` is for the statements around a transaction, which every call needs: at once, without a promise. */
export type Writer = { db: Kysely<Tables>; run(statement: string): void }

/** How long a call waits for another program that writes to the database. */
const PATIENCE_MS = 5_000
const LOOK_AGAIN_MS = 25

/**
 * The durable form of writing for a database with one writer: group commit.
 * @param writer does not wait when the database is locked: SQLite's own wait would hold up the whole event loop, reads as well
 */
export function groupCommits({ db, run }: Writer): Write & { forbid(why: Failure): void } {
  let waiting: Call[] = []
  let forbidden: Failure | undefined
  let turn: Promise<void> = Promise.resolve()
  let commits = 0

  // One after the other on the single connection; calls that arrive while a group commits form the next one.
  function next(work: () => Promise<void>) {
    turn = turn.then(() => new Promise((resolve) => setImmediate(resolve))).then(work)
  }

  function write<T>(change: (tx: Kysely<Tables>) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let result: T
      if (waiting.length === 0) next(commitWaiting)
      waiting.push({
        madeMs: performance.now(),
        run: async (db) => {
          result = await change(db)
        },
        committed: () => resolve(result),
        failed: reject,
      })
    })
  }

  async function commitWaiting(): Promise<void> {
    try {
      if (forbidden) throw forbidden
      while (waiting.length > 0 && !isBegun(run)) {
        const tooLateMs = performance.now() - PATIENCE_MS
        refuse(
          take(({ madeMs }) => madeMs <= tooLateMs),
          DATABASE_IN_USE,
        )
        if (waiting.length > 0) await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
      }
      const group = take(() => true)
      if (group.length > 0) await commitGroup({ db, run }, group, () => commits++)
    } catch (error) {
      refuse(
        take(() => true),
        error,
      ) // no transaction could be begun
    }
  }

  function take(which: (call: Call) => boolean): Call[] {
    const taken = waiting.filter(which)
    waiting = waiting.filter((call) => !which(call))
    return taken
  }

  function outside<T>(statement: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    // `try`: a statement that throws before it has a promise must not stop the turns of all that come after it.
    return new Promise<T>((resolve, reject) => next(() => Promise.try(statement, db).then(resolve, reject)))
  }

  /** Refuses every call from now on. */
  function forbid(why: Failure): void {
    forbidden = why
  }

  return Object.assign(write, { outside, commits: () => commits, forbid })
}

/** Begins a transaction. False: another program writes to the database. */
function isBegun(run: Writer['run']): boolean {
  try {
    run('begin immediate')
    return true
  } catch (error) {
    if (codeOf(error).startsWith('SQLITE_BUSY')) return false
    throw error
  }
}

/** Runs the calls in the transaction that has been begun, and ends it. */
async function commitGroup(writer: Writer, group: readonly Call[], committed: () => void): Promise<void> {
  const done: Call[] = []
  try {
    for (const call of group) if (await runInSavepoint(writer, call)) done.push(call)
    writer.run('commit')
  } catch (error) {
    undo(writer)
    return refuse(group, error)
  }
  committed()
  for (const call of done) call.committed()
}

function undo({ run }: Writer): void {
  try {
    run('rollback')
  } catch {
    // SQLite has undone it by itself
  }
}

function refuse(calls: readonly Call[], error: unknown): void {
  const failure = asFailure(error)
  for (const call of calls) call.failed(failure)
}

async function runInSavepoint({ db, run }: Writer, call: Call): Promise<boolean> {
  run('savepoint call')
  try {
    await call.run(db)
    run('release call')
    return true
  } catch (error) {
    try {
      run('rollback to call')
      run('release call')
    } catch {
      throw error // SQLite has undone the whole transaction by itself, for this reason
    }
    call.failed(asFailure(error))
    return false
  }
}

const DATABASE_IN_USE = new Failure('unavailable', 'The database is in use by another program. Try again in a moment.')

const SENTENCES: Record<string, string> = {
  SQLITE_FULL: 'The disk is full: nothing was changed. Free some space and try again.',
  SQLITE_READONLY: 'The database cannot be written: nothing was changed. Correct its permissions.',
  // A commit whose fsync failed lies in the log all the same: the next commit writes over it, but a crash before that brings it back.
  SQLITE_IOERR: 'The disk reported an error: this may or may not have been kept. Check the disk, and look before you repeat it.',
  SQLITE_CORRUPT: 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.',
  SQLITE_CANTOPEN: 'The database cannot be opened: nothing was changed. Try again in a moment.',
}

function asFailure(error: unknown): unknown {
  const sentence = Object.entries(SENTENCES).find(([prefix]) => codeOf(error).startsWith(prefix))?.[1]
  return sentence ? new Failure('unavailable', sentence, { cause: error }) : error
}

/** Whether a refused call may come back after a crash: what it names on disk must stay, and the sweep takes it if nothing does. */
export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof Failure && codeOf(error.cause).startsWith('SQLITE_IOERR')
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
