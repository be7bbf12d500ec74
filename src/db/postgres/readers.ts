import { type Db, MAX_WAITING_READS, tooManySearches } from '../database.ts'
import type { Committer } from '../write.ts'
import type { Connection, Statement } from './connection.ts'
import { createPostgresKysely } from './dialect.ts'
import { LostConnection, Unreachable } from './failures.ts'

/** Each read goes to the connection with the fewest statements pending. */
export function createReader(readers: readonly Connection[], toPublicError: Committer['toPublicError']): Db {
  const leastBusy = () => readers.reduce((least, reader) => (reader.pending() < least.pending() ? reader : least))
  return createPostgresKysely(
    <R>(query: Statement) => readWithRetry(() => leastBusy().execute<R>(query), toPublicError),
    async () => undefined,
  )
}

/** One read at a time on each connection; the others wait for their turn. */
export function createSlowReader(readers: readonly Connection[], toPublicError: Committer['toPublicError']): Db {
  const idle = [...readers]
  const waiting: ((reader: Connection) => void)[] = []

  async function acquire(): Promise<Connection> {
    if (waiting.length >= MAX_WAITING_READS) throw tooManySearches()
    return idle.pop() ?? new Promise((resolve) => waiting.push(resolve))
  }

  function release(reader: Connection): void {
    const next = waiting.shift()
    if (next) next(reader)
    else idle.push(reader)
  }

  return createPostgresKysely(
    async <R>(query: Statement) => {
      const reader = await acquire()
      return readWithRetry(() => reader.execute<R>(query), toPublicError).finally(() => release(reader))
    },
    async () => undefined,
  )
}

/** A connection may have been lost without our noticing: the read is tried once more. */
async function readWithRetry<T>(read: () => Promise<T>, toPublicError: Committer['toPublicError']): Promise<T> {
  try {
    return await read().catch((error) => {
      if (!(error instanceof LostConnection) || error instanceof Unreachable) throw error
      return read()
    })
  } catch (error) {
    throw toPublicError(error)
  }
}
