import { setTimeout as pause } from 'node:timers/promises'
import { CompiledQuery, type Kysely } from 'kysely'
import type { Tables } from '../tables.ts'
import type { Call, Committer } from '../write.ts'
import type { Connection } from './connection.ts'
import { toPublicError as inWords, isConflict, isConstraint, LostConnection, outcomeUnknown } from './failures.ts'

/** How often a group is run that others' changes undid. */
const TRIES = 5
/** The same for a connection that was lost: it may have been lost long before, and each loss may take its time to be noticed. */
const TRIES_WHEN_LOST = 2
/** Longest pause before a try, so that two writers do not meet again and again. */
const PAUSE_MS = 50

/**
 * Commits on PostgreSQL, serializable: whoever else writes, it is as if all wrote one after the other.
 * A savepoint would cost each call two more ways to the server. So a group runs without any; only when one of its calls fails
 * is it undone and run again with them.
 */
export function createPostgresCommitter(
  db: Kysely<Tables>,
  connection: Connection,
  tellable: Committer['tellable'] = inWords,
): Committer {
  const run = async (statement: string) => void (await connection.execute(CompiledQuery.raw(statement)))

  async function commit(group: readonly Call[]): Promise<readonly Call[]> {
    try {
      return await inTransaction(() => runTogether(group))
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      if (group.length > 1) return commitApart(group)
      for (const call of group) call.failed(tellable(error.cause))
      return []
    }
  }

  /** Runs `work` again when others' changes, or a connection that was lost before the commit, undid it. */
  async function inTransaction<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      await connection.hold()
      const begun = run('begin') // not awaited: the first statement is sent behind it
      begun.catch(() => undefined)
      try {
        const done = await work()
        await begun
        await end()
        return done
      } catch (error) {
        if (connection.isOpen()) await run('rollback').catch(() => undefined)
        if (!isOfTheGroup(error) || tries >= (isConflict(error) ? TRIES : TRIES_WHEN_LOST)) throw error
      } finally {
        connection.letGo()
      }
      await pause(Math.random() * PAUSE_MS)
    }
  }

  async function end(): Promise<void> {
    const { command } = await connection.execute(CompiledQuery.raw('commit')).catch((error) => {
      throw wasUndone(error) ? error : outcomeUnknown(error)
    })
    if (command !== 'COMMIT') throw new CallFailed('a call failed', { cause: WENT_ON })
  }

  async function runTogether(group: readonly Call[]): Promise<readonly Call[]> {
    try {
      await runAll(group, db)
      return group
    } catch (error) {
      throw isOfTheGroup(error) ? error : new CallFailed('a call failed', { cause: error })
    }
  }

  async function commitApart(group: readonly Call[]): Promise<readonly Call[]> {
    const outcomes = await inTransaction(async () => {
      const outcomes: (CallFailed | undefined)[] = []
      for (const call of group) outcomes.push(await inSavepoint(call))
      return outcomes
    })
    outcomes.forEach((failure, i) => {
      if (failure) group[i]?.failed(tellable(failure.cause))
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
      if (isOfTheGroup(error)) throw error
      await run('rollback to call')
      await run('release call')
      return new CallFailed('a call failed', { cause: error })
    }
  }

  return { db, begin: () => true, commit, tellable }
}

/** One call's own failure, which its neighbours do not share. */
class CallFailed extends Error {}

const WENT_ON = new Error('a call went on after a statement of it had failed')

/** What a commit says when it has kept nothing. Of whatever else ends it, such as a disk that does not take the log, nobody knows. */
function wasUndone(error: unknown): boolean {
  return isConflict(error) || isConstraint(error)
}

/** What undid the whole group; nothing of it was kept. */
function isOfTheGroup(error: unknown): boolean {
  return isConflict(error) || error instanceof LostConnection
}

/** One after the other, as they were made; calls of one statement that follow each other are sent together. */
async function runAll(group: readonly Call[], db: Kysely<Tables>): Promise<void> {
  let sent: Promise<void>[] = []
  for (const call of group) {
    if (!call.isOneStatement) {
      await settled(sent)
      sent = []
      await call.run(db)
    } else sent.push(call.run(db))
  }
  await settled(sent)
}

/** Waits for all, then throws what the first that failed threw: those behind it were refused because of it. */
async function settled(sent: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(sent)
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) throw failed.reason
}
