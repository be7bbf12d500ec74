import pg from 'pg'
import { DatabaseUnavailable, Failure } from '../../errors.ts'
import { CommitOutcomeUnknown, databaseLocked } from '../write.ts'

/** The connection was lost, or could not be made: the statement may have been executed. */
export class LostConnection extends Error {}

/** There was no connection, and none could be made: nothing was executed. */
export class Unreachable extends LostConnection {}

/** SQLSTATEs with which a server ends a connection, or rejects changes: it is stopping, starting, or has become a standby. */
const LOST = /^(08|57P0|25006|25P0[34])/

/** The error of a statement as it is, or `LostConnection` for one of the connection. */
export function toConnectionError(error: unknown): unknown {
  if (error instanceof pg.DatabaseError && !LOST.test(error.code ?? '')) return error
  return error instanceof LostConnection ? error : new LostConnection('the connection to the database was lost', { cause: error })
}

/** Whether the same may succeed when it is tried again: it conflicted with another transaction, or a table has got columns since. */
export function isConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '40001' || error.code === '40P01' || isOutdated(error))
}

/** Whether a prepared statement did not run since its result has other columns by now: the next version has added to a table. */
export function isOutdated(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
}

/** Whether the session was ended, and its transaction rolled back, because no statement came for too long. */
export function isEndedWhenIdle(error: unknown): boolean {
  return error instanceof LostConnection && error.cause instanceof pg.DatabaseError && error.cause.code === '25P03'
}

/** Whether rows violated a constraint. */
export function isConstraint(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith('23') === true
}

const UNREACHABLE = 'The database cannot be reached now: nothing was changed. Try again in a moment.'
const CONFLICTS = 'Other changes to the same data keep conflicting with this one: nothing was changed. Try again in a moment.'

export const DISK_FULL = '53100'

/** By SQLSTATE or the beginning of it; the first match counts. */
const SENTENCES: readonly (readonly [string, string])[] = [
  ['40', CONFLICTS],
  [DISK_FULL, 'The disk of the database is full: nothing was changed. Free some space and try again.'],
  ['53', 'The database is short of connections or memory: nothing was changed. Try again in a moment.'],
  ['58', 'The disk of the database reported an error: nothing was changed. Check that disk.'],
  ['XX001', 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.'],
  ['XX002', 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.'],
]

/** The error for the caller: a problem of the database becomes a `Failure` with a sentence. */
export function toPublicError(error: unknown): unknown {
  if (error instanceof LostConnection) return new DatabaseUnavailable(UNREACHABLE, { cause: error })
  if (!(error instanceof pg.DatabaseError)) return error
  const code = error.code ?? ''
  if (code === '55P03' || code === '57014') return databaseLocked(error)
  const sentence = SENTENCES.find(([prefix]) => code.startsWith(prefix))?.[1]
  return sentence ? new Failure('unavailable', sentence, { cause: error }) : error
}

/** The connection was lost while a commit was pending. */
export function outcomeUnknown(cause: unknown): CommitOutcomeUnknown {
  return new CommitOutcomeUnknown(
    'The database did not confirm this change: it may or may not have been saved. Check before you repeat it.',
    { cause: toPublicError(cause) },
  )
}
