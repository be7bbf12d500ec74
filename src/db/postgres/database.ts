import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { Failure } from '../../errors.ts'
import type { Database, DatabasePlace, Db } from '../database.ts'
import { migrate } from '../migrate.ts'
import { groupCommits } from '../write.ts'
import { postgresCommitter } from './commit.ts'
import { type Connection, clientOptions, openConnection, prepared, toAnswer } from './connection.ts'
import { postgresOver } from './dialect.ts'
import { LostConnection, lossOrError, tellable } from './failures.ts'
import { MIGRATIONS } from './migrations.ts'

/** Connections for reads that take less than a millisecond; each carries many at once. */
const READERS = 3
/** Connections for reads that take longer: one at a time on each. */
const SLOW_READERS = 4
/** Reads that may wait for one of those; more would only be answered after their askers have gone. */
const MAX_WAITING = 500

const READ_TIMEOUT_MS = 30_000
const WRITE_TIMEOUT_MS = 60_000
const LOCK_TIMEOUT_MS = 5_000

/** How long a start waits for a database that starts, too, and for the server before it to let go. */
const PATIENCE_MS = 10_000
const LOOK_AGAIN_MS = 250

/** An installation's database on a PostgreSQL server. */
export function postgresPlace(url: string): DatabasePlace {
  const name = nameOf(url)
  return {
    name,
    olderBecause: 'it is an old copy, or a standby that had not heard of the last changes',
    exists: () => withClient(url, async (client) => (await tableExists(client, 'setting')) && !(await isEmpty(client))),
    peekSetting: (setting) =>
      withClient(url, async (client) => {
        if (!(await tableExists(client, 'setting'))) return undefined
        const { rows } = await client.query<{ value: string }>('select value from setting where name = $1', [setting])
        return rows[0]?.value
      }),
    open: () => openPostgres(url),
  }
}

/** Without user and password. */
function nameOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/**
 * Opens the database: one connection that writes, some that read.
 * @throws Failure `unavailable` when it cannot be reached, another server writes to it, or it belongs to a newer version
 */
async function openPostgres(url: string): Promise<Database> {
  const settings = { default_transaction_isolation: 'serializable', lock_timeout: LOCK_TIMEOUT_MS }
  const writer = openConnection({ url, settings, timeoutMs: WRITE_TIMEOUT_MS, begin: (client) => takeServerLock(client, url) })
  await reach(writer, url)
  const readers = Array.from({ length: READERS }, () =>
    openConnection({ url, settings: { default_transaction_read_only: 'on' }, timeoutMs: READ_TIMEOUT_MS }),
  )
  const slowReaders = new pg.Pool({
    ...clientOptions({ url, settings: { default_transaction_read_only: 'on' }, timeoutMs: READ_TIMEOUT_MS }),
    max: SLOW_READERS,
  })
  slowReaders.on('error', () => undefined) // an idle one was lost: the next read makes another
  const write = groupCommits(postgresCommitter(postgresOver(writer.execute, writer.close), writer))
  const close = async () => {
    await Promise.all([slowReaders.end(), ...readers.map((reader) => reader.close())])
    await writer.close()
  }
  try {
    await migrateAlone(url)
  } catch (error) {
    await close()
    throw error
  }
  return {
    db: readWith(readers),
    slowDb: readSlowlyWith(slowReaders),
    write,
    damage: Promise.resolve(undefined), // PostgreSQL looks after that
    clearLog: async () => undefined,
    close,
  }
}

/** On a connection of its own: a migration may take as long as it needs. */
async function migrateAlone(url: string): Promise<void> {
  const connection = openConnection({ url })
  try {
    await migrate(postgresOver(connection.execute, connection.close), MIGRATIONS)
  } finally {
    await connection.close()
  }
}

/** Each read goes to the connection with the fewest on their way. A connection may have been lost unnoticed: then it is read again, once. */
function readWith(readers: readonly Connection[]): Db {
  const idlest = () => readers.reduce((least, reader) => (reader.pending() < least.pending() ? reader : least))
  return postgresOver(
    async (query) => {
      try {
        return await idlest().execute(query)
      } catch (error) {
        if (!(error instanceof LostConnection)) throw tellable(error)
        return await idlest()
          .execute<never>(query)
          .catch((again) => Promise.reject(tellable(again)))
      }
    },
    async () => undefined,
  )
}

function readSlowlyWith(pool: pg.Pool): Db {
  return postgresOver(
    async (query) => {
      if (pool.waitingCount >= MAX_WAITING)
        throw new Failure('unavailable', 'Too many searches wait already. Try again in a moment.')
      try {
        return toAnswer(await pool.query(prepared(query)))
      } catch (error) {
        throw tellable(lossOrError(error))
      }
    },
    async () => undefined,
  )
}

/** Any number that no other program of the same database is likely to lock. */
const SERVER_LOCK = 7_235_118_604_271

/** The connection that writes holds this lock, and PostgreSQL gives it up when the connection ends, however it ends. */
async function takeServerLock(client: pg.Client, url: string): Promise<void> {
  const { rows } = await client.query<{ taken: number }>('select pg_try_advisory_lock($1) as taken', [SERVER_LOCK])
  if (rows[0]?.taken !== 1)
    throw new Failure(
      'unavailable',
      `Another Reelgate server works with the database ${nameOf(url)}. Stop it first, or set REELGATE_DATABASE_URL to another.`,
    )
}

/** Waits for a database that starts, and for the lock of a server that ends. */
async function reach(writer: Connection, url: string): Promise<void> {
  const tooLateMs = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      await writer.hold()
      return writer.letGo()
    } catch (error) {
      if (performance.now() > tooLateMs || !mayPass(error)) throw cannotBeReached(url, error)
      await pause(LOOK_AGAIN_MS)
    }
  }
}

const WRONG: Readonly<Record<string, string>> = {
  '28P01': 'the password is wrong',
  '28000': 'it does not let this user in',
  '3D000': 'there is no such database',
  ENOTFOUND: 'its host name is not known',
}

function mayPass(error: unknown): boolean {
  return !(reasonOf(error) in WRONG)
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}

function cannotBeReached(url: string, error: unknown): Failure {
  if (error instanceof Failure) return error
  const why = WRONG[reasonOf(error)] ?? 'it does not answer'
  return new Failure(
    'unavailable',
    `The database ${nameOf(url)} cannot be opened: ${why}. Correct REELGATE_DATABASE_URL, or start PostgreSQL.`,
    { cause: error },
  )
}

/** A look before anything is opened to write. */
async function withClient<T>(url: string, look: (client: pg.Client) => Promise<T>): Promise<T> {
  const tooLateMs = performance.now() + PATIENCE_MS
  for (;;) {
    const client = new pg.Client(clientOptions({ url, timeoutMs: READ_TIMEOUT_MS }))
    client.on('error', () => undefined) // whatever it was doing is told
    try {
      await client.connect()
      return await look(client)
    } catch (cause) {
      const error = new LostConnection('the database cannot be reached', { cause })
      if (performance.now() > tooLateMs || !mayPass(error)) throw cannotBeReached(url, error)
      await pause(LOOK_AGAIN_MS)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}

async function tableExists(client: pg.Client, table: string): Promise<boolean> {
  const { rows } = await client.query<{ there: number }>('select to_regclass($1) is not null as there', [table])
  return rows[0]?.there === 1
}

async function isEmpty(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('select 1 from setting limit 1')
  return rows.length === 0
}
