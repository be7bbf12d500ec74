import pg from 'pg'
import { DatabaseUnavailable, Failure } from '../../errors.ts'
import { CommitOutcomeUnknown, DATABASE_IN_USE } from '../write.ts'

/** The connection was lost, or could not be made: what it was to do may have been done. */
export class LostConnection extends Error {}

/** There was no connection, and none could be made: nothing was done. */
export class Unreachable extends LostConnection {}

/** SQLSTATEs with which a server ends a connection, or says that it takes no changes: it stops, starts, or is a standby by now. */
const LOST = /^(08|57P0|25006|25P0[34])/

/** What a statement failed with, told apart from a connection that failed. */
export function toConnectionError(error: unknown): unknown {
  if (error instanceof pg.DatabaseError && !LOST.test(error.code ?? '')) return error
  return error instanceof LostConnection ? error : new LostConnection('the connection to the database was lost', { cause: error })
}

/** Whether the same may succeed when it is done once more: another writer came in between. */
export function isConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '40001' || error.code === '40P01')
}

/** Whether rows contradicted what a table promises. */
export function isConstraint(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith('23') === true
}

const UNREACHABLE = 'The database cannot be reached now: nothing was changed. Try again in a moment.'
const CONFLICTS = 'Others change the same in the database all the time: nothing was changed. Try again in a moment.'

export const DISK_FULL = '53100'

/** By SQLSTATE, or what it begins with: the first that fits. */
const SENTENCES: readonly (readonly [string, string])[] = [
  ['40', CONFLICTS],
  [DISK_FULL, 'The disk of the database is full: nothing was changed. Free some space and try again.'],
  ['53', 'The database is short of connections or memory: nothing was changed. Try again in a moment.'],
  ['58', 'The disk of the database reported an error: nothing was changed. Check that disk.'],
  ['XX001', 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.'],
  ['XX002', 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.'],
]

/** What is told of an error: trouble of the database becomes a Failure with a sentence. */
export function toPublicError(error: unknown): unknown {
  if (error instanceof LostConnection) return new DatabaseUnavailable(UNREACHABLE, { cause: error })
  if (!(error instanceof pg.DatabaseError)) return error
  const code = error.code ?? ''
  if (code === '55P03' || code === '57014') return new Failure('unavailable', DATABASE_IN_USE.message, { cause: error })
  const sentence = SENTENCES.find(([prefix]) => code.startsWith(prefix))?.[1]
  return sentence ? new Failure('unavailable', sentence, { cause: error }) : error
}

/** The connection went while a commit was on its way. */
export function outcomeUnknown(cause: unknown): CommitOutcomeUnknown {
  return new CommitOutcomeUnknown(
    'The database did not say what became of this: it may or may not have been kept. Look before you repeat it.',
    { cause },
  )
}
