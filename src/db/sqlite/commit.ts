import { type Kysely, sql } from 'kysely'
import { errorCode, Failure } from '../../errors.ts'
import type { ChangedTables } from '../changed-tables.ts'
import type { Tables } from '../tables.ts'
import { type Call, CommitOutcomeUnknown, type Committer } from '../write.ts'

/**
 * A connection. `run` is for the statements around a transaction, which every call needs: synchronous,
 * without a promise.
 */
export type Writer = {
  db: Kysely<Tables>
  run(statement: string): void
  isInTransaction(): boolean
  takeChanges(): ChangedTables
}

/** Releases a part of the space that is reserved for a full disk. False: nothing is left. */
export type ReleaseReservePart = () => boolean

/**
 * Commits on SQLite: a savepoint for each call of more than one statement.
 * @param writer does not wait when the database is locked: SQLite's own wait would block the whole event loop, reads included
 */
export function createSqliteCommitter(writer: Writer, releaseReservePart: ReleaseReservePart): Committer {
  return {
    db: writer.db,
    begin: () => tryBegin(writer.run),
    commit: (group) => commitOnFullDisk(writer, group, releaseReservePart),
    takeChanges: writer.takeChanges,
    toPublicError,
  }
}

/** On a full disk the log is first restarted within its own space; after that, changes that free space may use the reserve. */
async function commitOnFullDisk(writer: Writer, group: readonly Call[], releaseReservePart: ReleaseReservePart): Promise<Call[]> {
  const failed = new Set<Call>()
  for (let attempt = 1; ; attempt++) {
    try {
      return await commitGroup(
        writer,
        group.filter((call) => !failed.has(call)),
        failed,
      )
    } catch (error) {
      if (!isDatabaseFull(error)) throw error
      if (attempt === 1) await restartLog(writer)
      else if (!group.some(({ makesRoom }) => makesRoom) || !releaseReservePart()) throw error
      if (!tryBegin(writer.run)) throw error
    }
  }
}

/** Copies the log into the database, as far as there is space; the next change is then written at the log's beginning. */
async function restartLog({ db }: Writer): Promise<void> {
  await sql`pragma wal_checkpoint(PASSIVE)`.execute(db).catch(() => undefined)
}

/** @returns false when another program writes to the database */
function tryBegin(run: Writer['run']): boolean {
  try {
    run('begin immediate')
    return true
  } catch (error) {
    if (errorCode(error).startsWith('SQLITE_BUSY')) return false
    throw error
  }
}

/** @param failed collects the calls that failed by themselves and were rejected */
async function commitGroup(writer: Writer, group: readonly Call[], failed: Set<Call>): Promise<Call[]> {
  const durable: Call[] = []
  try {
    for (const call of group) {
      if (await (call.isAppend ? runAppend(writer, call) : runInSavepoint(writer, call))) durable.push(call)
      else failed.add(call)
    }
    writer.run('commit')
    return durable
  } catch (error) {
    rollBack(writer)
    throw error
  }
}

function rollBack({ run }: Writer): void {
  try {
    run('rollback')
  } catch {
    // SQLite has rolled it back by itself
  }
}

/** A statement that fails undoes itself, so it needs no savepoint, which is two statements more. */
async function runAppend({ db, isInTransaction }: Writer, call: Call): Promise<boolean> {
  try {
    await call.run(db)
    return true
  } catch (error) {
    if (isDatabaseFull(error) || !isInTransaction()) throw error
    call.reject(toPublicError(error))
    return false
  }
}

async function runInSavepoint({ db, run }: Writer, call: Call): Promise<boolean> {
  run('savepoint call')
  try {
    await call.run(db)
    run('release call')
    return true
  } catch (error) {
    if (isDatabaseFull(error)) throw error // fails the whole group: there may be space for all of it in a moment
    try {
      run('rollback to call')
      run('release call')
    } catch {
      throw error // it made SQLite roll back the whole transaction
    }
    call.reject(toPublicError(error))
    return false
  }
}

/** `SHMSIZE`: no space for the index of the log. */
const FULL = ['SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE']

export function isDatabaseFull(error: unknown): boolean {
  return FULL.includes(errorCode(error)) || (error instanceof Error && error.cause !== undefined && isDatabaseFull(error.cause))
}

export const DISK_FULL = 'The disk is full: nothing was changed. Free some space and try again.'

const SENTENCES: Record<string, string> = {
  SQLITE_READONLY: 'The database cannot be written: nothing was changed. Correct its permissions.',
  SQLITE_CORRUPT: 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.',
  SQLITE_CANTOPEN: 'The database cannot be opened: nothing was changed. Try again in a moment.',
}

function toPublicError(error: unknown): unknown {
  const code = errorCode(error)
  if (isDatabaseFull(error)) return new Failure('unavailable', DISK_FULL, { cause: error })
  // A commit whose fsync failed is in the log all the same: the next commit overwrites it, but after a crash before that it
  // reappears.
  if (code.startsWith('SQLITE_IOERR'))
    return new CommitOutcomeUnknown(
      'The disk reported an error: this change may or may not have been saved. Check the disk, and check before you repeat it.',
      { cause: error },
    )
  const sentence = Object.entries(SENTENCES).find(([prefix]) => code.startsWith(prefix))?.[1]
  return sentence ? new Failure('unavailable', sentence, { cause: error }) : error
}
