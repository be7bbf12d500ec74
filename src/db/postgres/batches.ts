import { setTimeout as pause } from 'node:timers/promises'
import { CompiledQuery } from 'kysely'
import type { Batches, Db } from '../database.ts'
import { type Connection, openConnection, type Statement, toStatementResult } from './connection.ts'
import { createPostgresKysely } from './dialect.ts'
import { isConflict, isEndedWhenIdle, LostConnection, outcomeUnknown, Unreachable } from './failures.ts'

/** Transactions that run at a time: what else is asked for collects meanwhile. */
const CONNECTIONS = 2
/** How often a transaction is tried when those of other servers roll it back: a deadlock is a lost race. */
const MAX_ATTEMPTS = 5
/** How often after a lost connection, where PostgreSQL does not answer or the caller has waited for `MAX_RETRY_MS`. */
const MAX_ATTEMPTS_WHEN_LOST = 2
const MAX_RETRY_MS = 4_000
const MAX_PAUSE_MS = 10
const TIMEOUT_MS = 5_000
const SETTINGS = {
  // Rows are locked before they are read, so each statement must see what has been committed until then.
  default_transaction_isolation: 'read committed',
  lock_timeout: 3_000,
  // A server that is suspended between two statements keeps its locks no longer.
  idle_in_transaction_session_timeout: 1_000,
  // Most commits may be lost in a crash; those that may not say so, which spares the others a statement.
  synchronous_commit: 'off',
}

/** Connections of their own, made when they are first needed: no slow write delays a request of a viewer. */
export function openBatches(url: string, toPublicError: (error: unknown) => unknown): Batches & { close(): Promise<void> } {
  let onConnect: (db: Db) => Promise<void> = async () => undefined
  const lanes = Array.from({ length: CONNECTIONS }, () => openLane(url, (db) => onConnect(db)))
  const idle = [...lanes]
  const waiting: ((lane: Lane) => void)[] = []

  return {
    count: CONNECTIONS,
    onConnect(listener) {
      onConnect = listener
    },
    async transaction(work) {
      const lane = idle.pop() ?? (await new Promise<Lane>((resolve) => waiting.push(resolve)))
      try {
        return await inTransaction(lane, work)
      } catch (error) {
        throw toPublicError(error)
      } finally {
        const next = waiting.shift()
        if (next) next(lane)
        else idle.push(lane)
      }
    },
    async close() {
      await Promise.all(lanes.map(({ connection }) => connection.close()))
    },
  }
}

type Lane = { connection: Connection; db: Db }

function openLane(url: string, onConnect: (db: Db) => Promise<void>): Lane {
  const connection = openConnection({
    ...{ url, settings: SETTINGS, timeoutMs: TIMEOUT_MS },
    async setUp(client) {
      const execute = async <R>({ sql, parameters }: Statement) => toStatementResult<R>(await client.query(sql, [...parameters]))
      await onConnect(createPostgresKysely(execute, async () => undefined))
    },
  })
  return { connection, db: createPostgresKysely(connection.execute, connection.close) }
}

async function inTransaction<T>(
  { connection, db }: Lane,
  work: (db: Db) => Promise<{ result: T; isDurable: boolean }>,
): Promise<T> {
  const send = (statement: string) => connection.execute(CompiledQuery.raw(statement))
  const beganMs = performance.now()
  for (let attempt = 1; ; attempt++) {
    await connection.hold()
    const begun = send('begin') // not awaited: the first statement is sent right after it
    begun.catch(() => undefined)
    try {
      const { result, isDurable } = await work(db)
      await begun
      if (isDurable) send('set local synchronous_commit = on').catch(() => undefined)
      if (!connection.isOpen()) throw new LostConnection('the connection to the database was lost before the commit')
      await send('commit').catch((error) => {
        throw isConflict(error) || isEndedWhenIdle(error) ? error : outcomeUnknown(error)
      })
      return result
    } catch (error) {
      if (connection.isOpen()) await send('rollback').catch(() => undefined)
      if (attempt >= maxAttempts(error, performance.now() - beganMs)) throw error
    } finally {
      connection.release()
    }
    await pause(Math.random() * MAX_PAUSE_MS)
  }
}

/** A connection that PostgreSQL has ended is replaced, as often as transactions are tried; one that cannot be replaced is not waited for. */
function maxAttempts(error: unknown, sinceMs: number): number {
  if (isConflict(error)) return MAX_ATTEMPTS
  if (!(error instanceof LostConnection)) return 1
  return error instanceof Unreachable || sinceMs > MAX_RETRY_MS ? MAX_ATTEMPTS_WHEN_LOST : MAX_ATTEMPTS
}
