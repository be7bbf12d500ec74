import { Failure } from '../../errors.ts'
import type { Db } from '../database.ts'
import type { Connection, Statement } from './connection.ts'
import { createPostgresKysely } from './dialect.ts'
import { LostConnection, Unreachable } from './failures.ts'

/** Long reads that may wait for a connection; more would only be answered after their askers have gone. */
const MAX_WAITING = 500

/** What is told of an error. */
type Tellable = (error: unknown) => unknown

/** Each read goes to the connection with the fewest on their way. */
export function readWith(readers: readonly Connection[], tellable: Tellable): Db {
  const idlest = () => readers.reduce((least, reader) => (reader.pending() < least.pending() ? reader : least))
  return createPostgresKysely(
    <R>(query: Statement) => readTwice(() => idlest().execute<R>(query), tellable),
    async () => undefined,
  )
}

/** One read at a time on each connection; the others wait for their turn. */
export function readSlowlyWith(readers: readonly Connection[], tellable: Tellable): Db {
  const idle = [...readers]
  const waiting: ((reader: Connection) => void)[] = []

  async function take(): Promise<Connection> {
    if (waiting.length >= MAX_WAITING) throw new Failure('unavailable', 'Too many searches wait already. Try again in a moment.')
    return idle.pop() ?? new Promise((resolve) => waiting.push(resolve))
  }

  function giveBack(reader: Connection): void {
    const next = waiting.shift()
    if (next) next(reader)
    else idle.push(reader)
  }

  return createPostgresKysely(
    async <R>(query: Statement) => {
      const reader = await take()
      return readTwice(() => reader.execute<R>(query), tellable).finally(() => giveBack(reader))
    },
    async () => undefined,
  )
}

/** A connection may have been lost unnoticed: then it is read again, once. */
async function readTwice<T>(read: () => Promise<T>, tellable: Tellable): Promise<T> {
  try {
    return await read().catch((error) => {
      if (!(error instanceof LostConnection) || error instanceof Unreachable) throw error
      return read()
    })
  } catch (error) {
    throw tellable(error)
  }
}
