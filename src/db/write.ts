import { type Kysely, sql } from 'kysely'
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
}

type Call = { run(db: Kysely<Tables>): Promise<void>; committed(): void; failed(error: unknown): void }

/** The durable form of writing for a database with one writer: group commit. */
export function groupCommits(writer: Kysely<Tables>): Write {
  let waiting: Call[] = []
  let turn: Promise<void> = Promise.resolve()

  // One after the other on the single connection; calls that arrive while a group commits form the next one.
  function next(work: () => Promise<void>) {
    turn = turn.then(() => new Promise((resolve) => setImmediate(resolve))).then(work)
  }

  function write<T>(change: (tx: Kysely<Tables>) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let result: T
      if (waiting.length === 0) next(() => commitGroup(writer, takeWaiting()))
      waiting.push({
        run: async (db) => {
          result = await change(db)
        },
        committed: () => resolve(result),
        failed: reject,
      })
    })
  }

  function takeWaiting(): Call[] {
    const group = waiting
    waiting = []
    return group
  }

  function outside<T>(statement: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => next(() => statement(writer).then(resolve, reject)))
  }

  return Object.assign(write, { outside })
}

async function commitGroup(writer: Kysely<Tables>, group: Call[]): Promise<void> {
  let done: Call[] = []
  try {
    await writer.connection().execute(async (db) => {
      await sql`begin immediate`.execute(db)
      try {
        for (const call of group) if (await runInSavepoint(db, call)) done.push(call)
        await sql`commit`.execute(db)
      } catch (error) {
        done = []
        await sql`rollback`.execute(db).catch(() => undefined)
        throw error
      }
    })
  } catch (error) {
    const failure = asFailure(error)
    for (const call of group) call.failed(failure)
  }
  for (const call of done) call.committed()
}

async function runInSavepoint(db: Kysely<Tables>, call: Call): Promise<boolean> {
  await sql`savepoint call`.execute(db)
  try {
    await call.run(db)
    await sql`release call`.execute(db)
    return true
  } catch (error) {
    try {
      await sql`rollback to call`.execute(db)
      await sql`release call`.execute(db)
    } catch {
      throw error // SQLite has undone the whole transaction by itself, for this reason
    }
    call.failed(error)
    return false
  }
}

const SENTENCES: Record<string, string> = {
  SQLITE_BUSY: 'The database is in use by another program. Try again in a moment.',
  SQLITE_FULL: 'The disk is full: nothing was changed. Free some space and try again.',
  SQLITE_READONLY: 'The database cannot be written: nothing was changed. Correct its permissions.',
  SQLITE_IOERR: 'The disk reported an error: nothing was changed. Check the disk, then start Reelgate again.',
}

function asFailure(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const sentence = Object.entries(SENTENCES).find(([prefix]) => code.startsWith(prefix))?.[1]
  return sentence ? new Failure('unavailable', sentence, { cause: error }) : error
}
