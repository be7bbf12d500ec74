import { type Kysely, sql } from 'kysely'
import { Failure } from '../../errors.ts'
import type { Tables } from '../tables.ts'
import { type Call, CommitOutcomeUnknown, type Committer, errorCode } from '../write.ts'

/** The one connection that writes. `run` is for the statements around a transaction, which every call needs: at once, without a promise. */
export type Writer = { db: Kysely<Tables>; run(statement: string): void }

/** Gives up a part of the space that is kept for a full disk. False: nothing is left. */
export type ReleaseReserve = () => boolean

/**
 * Commits on SQLite: a savepoint for each call.
 * @param writer does not wait when the database is locked: SQLite's own wait would hold up the whole event loop, reads as well
 */
export function createSqliteCommitter(writer: Writer, giveRoom: ReleaseReserve): Committer {
  return {
    db: writer.db,
    begin: () => isBegun(writer.run),
    commit: (group) => commitWithinRoom(writer, group, giveRoom),
    tellable,
  }
}

/** On a full disk the log begins again within the room that it has; after that, changes that make room get what is kept for them. */
async function commitWithinRoom(writer: Writer, group: readonly Call[], giveRoom: ReleaseReserve): Promise<Call[]> {
  const failed = new Set<Call>()
  for (let tries = 1; ; tries++) {
    try {
      return await commitGroup(
        writer,
        group.filter((call) => !failed.has(call)),
        failed,
      )
    } catch (error) {
      if (!isFull(error)) throw error
      if (tries === 1) await reuseLog(writer)
      else if (!group.some(({ makesRoom }) => makesRoom) || !giveRoom()) throw error
      if (!isBegun(writer.run)) throw error
    }
  }
}

/** Copies the log into the database, as far as there is room; the next change is then written at its beginning. */
async function reuseLog({ db }: Writer): Promise<void> {
  await sql`pragma wal_checkpoint(PASSIVE)`.execute(db).catch(() => undefined)
}

function isBegun(run: Writer['run']): boolean {
  try {
    run('begin immediate')
    return true
  } catch (error) {
    if (errorCode(error).startsWith('SQLITE_BUSY')) return false
    throw error
  }
}

/** @param failed gets the calls that failed by themselves and were refused */
async function commitGroup(writer: Writer, group: readonly Call[], failed: Set<Call>): Promise<Call[]> {
  const done: Call[] = []
  try {
    for (const call of group) {
      if (await runInSavepoint(writer, call)) done.push(call)
      else failed.add(call)
    }
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
    if (isFull(error)) throw error // of the whole group: there may be room for all of it in a moment
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

/** `SHMSIZE`: no room for the index of the log. */
const FULL = ['SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE']

export function isFull(error: unknown): boolean {
  return FULL.includes(errorCode(error)) || (error instanceof Error && error.cause !== undefined && isFull(error.cause))
}

export const DISK_FULL = 'The disk is full: nothing was changed. Free some space and try again.'

const SENTENCES: Record<string, string> = {
  SQLITE_READONLY: 'The database cannot be written: nothing was changed. Correct its permissions.',
  SQLITE_CORRUPT: 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.',
  SQLITE_CANTOPEN: 'The database cannot be opened: nothing was changed. Try again in a moment.',
}

function tellable(error: unknown): unknown {
  const code = errorCode(error)
  if (isFull(error)) return new Failure('unavailable', DISK_FULL, { cause: error })
  // A commit whose fsync failed lies in the log all the same: the next commit writes over it, but a crash before that brings it back.
  if (code.startsWith('SQLITE_IOERR'))
    return new CommitOutcomeUnknown(
      'The disk reported an error: this may or may not have been kept. Check the disk, and look before you repeat it.',
      { cause: error },
    )
  const sentence = Object.entries(SENTENCES).find(([prefix]) => code.startsWith(prefix))?.[1]
  return sentence ? new Failure('unavailable', sentence, { cause: error }) : error
}
