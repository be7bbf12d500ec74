import type { Kysely } from 'kysely'
import { Failure } from '../../errors.ts'
import type { Tables } from '../tables.ts'
import { type Call, type Committer, codeOf, OutcomeUnknown } from '../write.ts'

/** The one connection that writes. `run` is for the statements around a transaction, which every call needs: at once, without a promise. */
export type Writer = { db: Kysely<Tables>; run(statement: string): void }

/**
 * Commits on SQLite: a savepoint for each call.
 * @param writer does not wait when the database is locked: SQLite's own wait would hold up the whole event loop, reads as well
 */
export function sqliteCommitter(writer: Writer): Committer {
  return {
    db: writer.db,
    begin: () => isBegun(writer.run),
    commit: (group) => commitGroup(writer, group),
    tellable,
  }
}

function isBegun(run: Writer['run']): boolean {
  try {
    run('begin immediate')
    return true
  } catch (error) {
    if (codeOf(error).startsWith('SQLITE_BUSY')) return false
    throw error
  }
}

async function commitGroup(writer: Writer, group: readonly Call[]): Promise<Call[]> {
  const done: Call[] = []
  try {
    for (const call of group) if (await runInSavepoint(writer, call)) done.push(call)
    writer.run('commit')
    return done
  } catch (error) {
    undo(writer)
    throw error
  }
}

function undo({ run }: Writer): void {
  try {
    run('rollback')
  } catch {
    // SQLite has undone it by itself
  }
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
    call.failed(tellable(error))
    return false
  }
}

const SENTENCES: Record<string, string> = {
  SQLITE_FULL: 'The disk is full: nothing was changed. Free some space and try again.',
  SQLITE_READONLY: 'The database cannot be written: nothing was changed. Correct its permissions.',
  SQLITE_CORRUPT: 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.',
  SQLITE_CANTOPEN: 'The database cannot be opened: nothing was changed. Try again in a moment.',
}

function tellable(error: unknown): unknown {
  const code = codeOf(error)
  // A commit whose fsync failed lies in the log all the same: the next commit writes over it, but a crash before that brings it back.
  if (code.startsWith('SQLITE_IOERR'))
    return new OutcomeUnknown(
      'The disk reported an error: this may or may not have been kept. Check the disk, and look before you repeat it.',
      { cause: error },
    )
  const sentence = Object.entries(SENTENCES).find(([prefix]) => code.startsWith(prefix))?.[1]
  return sentence ? new Failure('unavailable', sentence, { cause: error }) : error
}
