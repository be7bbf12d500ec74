import { setTimeout as pause } from 'node:timers/promises'
import { CompiledQuery, type Kysely } from 'kysely'
import type { Tables } from '../tables.ts'
import type { Call, Committer } from '../write.ts'
import type { Connection } from './connection.ts'
import { isConflict, isConstraint, LostConnection, outcomeUnknown } from './failures.ts'

/** How often a group is tried when changes of other sessions roll it back. */
const MAX_ATTEMPTS = 5
/** The same after a lost connection: it may have been lost long before, and each loss may take its time to be noticed. */
const MAX_ATTEMPTS_WHEN_LOST = 2
/**
 * Where several servers write: the first attempt of a group shares this lock, each other one holds it alone. So a group is rolled back once
 * by the others, and not by chance again and again: of two servers that changed one account as fast as they could, one call in nine failed
 * after five attempts.
 */
const GROUP_LOCK = 7_235_118_604_273
/** Longest pause between two attempts, so that two writers do not conflict again and again. */
const MAX_PAUSE_MS = 50

/**
 * Commits on PostgreSQL with serializable isolation: the result is as if all writers had written one after the other. A
 * savepoint would cost each call two more round trips. So a group runs without savepoints; only if one of its calls fails is
 * the group rolled back and run again with them. So is a single call that violated a constraint.
 * @param withOthers other servers write to the database, too
 */
export function createPostgresCommitter(
  db: Kysely<Tables>,
  connection: Connection,
  toPublicError: Committer['toPublicError'],
  withOthers = false,
): Omit<Committer, 'takeChanges'> {
  const run = async (statement: string) => void (await connection.execute(CompiledQuery.raw(statement)))

  async function commit(group: readonly Call[]): Promise<readonly Call[]> {
    try {
      return await inTransaction(() => runTogether(group))
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      // Another session may have added the row since this transaction began: the call, which looks first, now sees it.
      if (group.length > 1 || isConstraint(error.cause)) return commitWithSavepoints(group)
      for (const call of group) call.reject(toPublicError(error.cause))
      return []
    }
  }

  /** Runs `work` again when changes of other sessions rolled it back, or the connection was lost before the commit. */
  async function inTransaction<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      await connection.hold()
      const unlock = withOthers ? lockGroup(attempt === 1 ? '_shared' : '') : () => undefined
      const begun = run('begin') // not awaited: the first statement is sent right after it
      begun.catch(() => undefined)
      try {
        const result = await work()
        await begun
        await commitTransaction()
        return result
      } catch (error) {
        if (connection.isOpen()) await run('rollback').catch(() => undefined)
        if (!isRetryable(error) || attempt >= (isConflict(error) ? MAX_ATTEMPTS : MAX_ATTEMPTS_WHEN_LOST)) throw error
      } finally {
        unlock()
        connection.release()
      }
      if (!withOthers) await pause(Math.random() * MAX_PAUSE_MS)
    }
  }

  /** Before the transaction, whose first statement fixes what it sees. Nothing is waited for: without the lock it is as right, and slower. */
  function lockGroup(mode: '_shared' | ''): () => void {
    const send = (statement: string) => void run(statement).catch(() => undefined)
    send(`select pg_advisory_lock${mode}(${GROUP_LOCK})`)
    return () => {
      if (connection.isOpen()) send(`select pg_advisory_unlock${mode}(${GROUP_LOCK})`)
    }
  }

  async function commitTransaction(): Promise<void> {
    const { command } = await connection.execute(CompiledQuery.raw('commit')).catch((error) => {
      throw isRolledBack(error) ? error : outcomeUnknown(error)
    })
    if (command === 'COMMIT') return
    throw new CallFailed('a call failed', { cause: new Error('a call ignored the failure of one of its statements') })
  }

  async function runTogether(group: readonly Call[]): Promise<readonly Call[]> {
    try {
      await runAll(group, db)
      return group
    } catch (error) {
      throw isRetryable(error) ? error : new CallFailed('a call failed', { cause: error })
    }
  }

  async function commitWithSavepoints(group: readonly Call[]): Promise<readonly Call[]> {
    const outcomes = await inTransaction(async () => {
      const outcomes: (CallFailed | undefined)[] = []
      for (const call of group) outcomes.push(await inSavepoint(call))
      return outcomes
    })
    outcomes.forEach((failure, i) => {
      if (failure) group[i]?.reject(toPublicError(failure.cause))
    })
    return group.filter((_, i) => !outcomes[i])
  }

  async function inSavepoint(call: Call): Promise<CallFailed | undefined> {
    await run('savepoint call')
    try {
      await call.run(db)
      await run('release call')
      return undefined
    } catch (error) {
      if (isRetryable(error)) throw error
      await run('rollback to call')
      await run('release call')
      return new CallFailed('a call failed', { cause: error })
    }
  }

  // `commit` begins the transaction, since it may have to repeat it.
  return { db, begin: () => true, commit, toPublicError }
}

/** A call's own failure: only this call is rejected; the others of its group are run again without it. */
class CallFailed extends Error {}

/**
 * Whether an error of `commit` means that it was rolled back. After any other, such as a full disk under the log, the outcome is
 * unknown.
 */
function isRolledBack(error: unknown): boolean {
  return isConflict(error) || isConstraint(error)
}

/** Whether the whole group was rolled back for a reason outside it, and may be run again. */
function isRetryable(error: unknown): boolean {
  return isConflict(error) || error instanceof LostConnection
}

/** One after the other, in the order of the calls. Consecutive appends, which are single statements, are pipelined. */
async function runAll(group: readonly Call[], db: Kysely<Tables>): Promise<void> {
  let sent: Promise<void>[] = []
  for (const call of group) {
    if (!call.isAppend) {
      await allSettledOrThrow(sent)
      sent = []
      await call.run(db)
    } else sent.push(call.run(db))
  }
  await allSettledOrThrow(sent)
}

/** Waits for all, then throws the first failure: the later ones failed because of it. */
async function allSettledOrThrow(sent: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(sent)
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) throw failed.reason
}
