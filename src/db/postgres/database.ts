import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { Failure } from '../../errors.ts'
import type { Database, DatabasePlace, Db } from '../database.ts'
import { migrate } from '../migrate.ts'
import { groupCommits } from '../write.ts'
import { postgresCommitter } from './commit.ts'
import { type Connection, clientOptions, openConnection, type Statement } from './connection.ts'
import { postgresOver } from './dialect.ts'
import { LostConnection, tellable, Unreachable } from './failures.ts'
import { MIGRATIONS } from './migrations.ts'

/** Connections for reads that take less than a millisecond; each carries many at once. */
const READERS = 3
/** Connections for reads that take longer: one at a time on each. */
const SLOW_READERS = 4
/** Reads that may wait for one of those; more would only be answered after their askers have gone. */
const MAX_WAITING = 500

/** How long a statement may take before its connection counts as lost: a caller must not hang with a peer that says nothing. */
const READ_TIMEOUT_MS = 8_000
const SLOW_READ_TIMEOUT_MS = 20_000
const WRITE_TIMEOUT_MS = 15_000
const LOCK_TIMEOUT_MS = 5_000

/** How long a start waits for a database that starts, too. */
const PATIENCE_MS = 30_000
/** How long it waits for the server before it to let go. */
const LOCK_PATIENCE_MS = 10_000
const LOOK_AGAIN_MS = 250

/** An installation's database on a PostgreSQL server. */
export function postgresPlace(url: string): DatabasePlace {
  const name = nameOf(url)
  const look = <T>(work: (client: pg.Client) => Promise<T>) =>
    withClient(url, async (client) => {
      await refuseUnfinishedMove(client, url)
      return work(client)
    })
  return {
    name,
    olderBecause: 'it is an old copy, or a standby that had not heard of the last changes',
    exists: () => look(async (client) => (await tableExists(client, 'setting')) && !(await isEmpty(client))),
    peekSetting: (setting) =>
      look(async (client) => {
        if (!(await tableExists(client, 'setting'))) return undefined
        const { rows } = await client.query<{ value: string }>('select value from setting where name = $1', [setting])
        return rows[0]?.value
      }),
    open: () => openPostgres(url),
  }
}

/** Without user and password. */
export function nameOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/**
 * Opens the database: one connection that writes, some that read.
 * @throws Failure `unavailable` when it cannot be reached, another server writes to it, or it belongs to a newer version
 */
async function openPostgres(url: string): Promise<Database> {
  const readOnly = { url, settings: { default_transaction_read_only: 'on' } }
  const readers = Array.from({ length: READERS }, () => openConnection({ ...readOnly, timeoutMs: READ_TIMEOUT_MS }))
  const slowReaders = Array.from({ length: SLOW_READERS }, () => openConnection({ ...readOnly, timeoutMs: SLOW_READ_TIMEOUT_MS }))
  const lock = serverLock(url)
  const writer = openConnection({
    url,
    settings: { default_transaction_isolation: 'serializable', lock_timeout: LOCK_TIMEOUT_MS },
    timeoutMs: WRITE_TIMEOUT_MS,
    async begin(client) {
      await lock.take(client)
      // Behind the same address may be another server by now: nobody reads from the old one what was written to the new one.
      for (const reader of [...readers, ...slowReaders]) reader.renew()
    },
  })
  const close = async () => {
    await Promise.all([...readers, ...slowReaders].map((reader) => reader.close()))
    await writer.close()
  }
  try {
    await reach(writer, url)
    await refuseUnfit(url)
    await migrateAlone(url)
  } catch (error) {
    await close()
    throw error
  }
  const db = readWith(readers)
  return {
    db,
    clockS: () => readClock(db),
    slowDb: readSlowlyWith(slowReaders),
    write: groupCommits(postgresCommitter(postgresOver(writer.execute, writer.close), writer)),
    damage: Promise.resolve(undefined), // PostgreSQL looks after that
    clearLog: async () => undefined,
    close,
  }
}

/**
 * The one connection of a piece of work that no server may come in between; once lost it is not made anew.
 * @throws Failure `unavailable` when the database cannot be reached or used, or a server works with it
 */
export async function openAlone(url: string): Promise<Connection> {
  const connection = openConnection({ url, begin: serverLock(url).take })
  try {
    await reach(connection, url)
    await refuseUnfit(url)
    await connection.hold()
    return connection
  } catch (error) {
    await connection.close()
    throw error
  }
}

async function readClock(db: Db): Promise<number> {
  const { rows } = await sql<{ nowS: number }>`select floor(extract(epoch from clock_timestamp())) as now_s`.execute(db)
  return Number(rows[0]?.nowS)
}

/** On a connection of its own, which is not made anew in the middle: a migration may take as long as it needs, and is done whole. */
export async function migrateAlone(url: string): Promise<void> {
  const connection = openConnection({ url })
  try {
    await connection.hold()
    await migrate(postgresOver(connection.execute, connection.close), MIGRATIONS)
  } catch (error) {
    const why = UNMADE[reasonOf(error)]
    throw why === undefined
      ? error
      : new Failure('unavailable', `The database ${nameOf(url)} cannot be used: ${why}`, { cause: error })
  } finally {
    await connection.close()
  }
}

/** Why the tables cannot be made, by what PostgreSQL says. */
const UNMADE: Readonly<Record<string, string>> = {
  42501: 'its user may not make tables there. Make that user the owner of the database.',
  '58P01': 'this PostgreSQL lacks the extension pg_trgm. Install its contrib modules.',
  '0A000': 'this PostgreSQL lacks the extension pg_trgm. Install its contrib modules.',
}

/** Each read goes to the connection with the fewest on their way. */
function readWith(readers: readonly Connection[]): Db {
  const idlest = () => readers.reduce((least, reader) => (reader.pending() < least.pending() ? reader : least))
  return postgresOver(
    <R>(query: Statement) => readTwice(() => idlest().execute<R>(query)),
    async () => undefined,
  )
}

/** One read at a time on each connection; the others wait for their turn. */
function readSlowlyWith(readers: readonly Connection[]): Db {
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

  return postgresOver(
    async <R>(query: Statement) => {
      const reader = await take()
      return readTwice(() => reader.execute<R>(query)).finally(() => giveBack(reader))
    },
    async () => undefined,
  )
}

/** A connection may have been lost unnoticed: then it is read again, once. */
async function readTwice<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read().catch((error) => {
      if (!(error instanceof LostConnection) || error instanceof Unreachable) throw error
      return read()
    })
  } catch (error) {
    throw tellable(error)
  }
}

/** Any number that no other program of the same database is likely to lock. */
const SERVER_LOCK = 7_235_118_604_271

/**
 * The connection that writes holds this lock, and PostgreSQL gives it up when the connection ends, however it ends. Where it has not
 * noticed yet that our last one is gone, that one is ended: whatever was on its way there is then done or undone.
 */
function serverLock(url: string) {
  let last: { pid: number; begun: string } | undefined

  async function take(client: pg.Client): Promise<void> {
    const { rows } = await client.query<{ taken: number; pid: number; begun: string }>(
      'select pg_try_advisory_lock($1) as taken, pid, backend_start::text as begun from pg_stat_activity where pid = pg_backend_pid()',
      [SERVER_LOCK],
    )
    const [own] = rows
    if (own?.taken !== 1) {
      if (!(await endLast(client))) throw heldByAnother(url)
      await client.query('select pg_advisory_lock($1)', [SERVER_LOCK])
    }
    last = own
  }

  async function endLast(client: pg.Client): Promise<boolean> {
    if (!last) return false
    const { rowCount } = await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity join pg_locks using (pid)
       where locktype = 'advisory' and (classid::bigint << 32) + objid::bigint = $1 and pid = $2 and backend_start::text = $3`,
      [SERVER_LOCK, last.pid, last.begun],
    )
    return rowCount !== 0
  }

  return { take }
}

function heldByAnother(url: string): Failure {
  return new Failure(
    'unavailable',
    `Another Reelgate server works with the database ${nameOf(url)}. Stop it first, or set REELGATE_DATABASE_URL to another.`,
  )
}

function isHeldByAnother(error: unknown): error is Error & { cause: Failure } {
  return error instanceof Error && error.cause instanceof Failure
}

/** Waits for a database that starts, and for the lock of a server that ends. */
async function reach(writer: Connection, url: string): Promise<void> {
  const beganMs = performance.now()
  for (;;) {
    try {
      await writer.hold()
      return writer.letGo()
    } catch (error) {
      const patienceMs = isHeldByAnother(error) ? LOCK_PATIENCE_MS : PATIENCE_MS
      if (performance.now() - beganMs > patienceMs || !mayPass(error)) throw cannotBeReached(url, error)
      await pause(LOOK_AGAIN_MS)
    }
  }
}

/** Why a database cannot be opened, by what it or the network says. */
const WRONG: Readonly<Record<string, string>> = {
  '28P01': 'the password is wrong',
  'no password': 'it asks for a password',
  '28000': 'it does not let this user in',
  '3D000': 'there is no such database',
  ENOTFOUND: 'its host name is not known',
}
/** The same, where waiting may help. */
const NOT_YET: Readonly<Record<string, string>> = {
  '0A000': 'it is a standby, which takes no changes',
  '57P03': 'it is starting up or shutting down',
  53300: 'it has no connection left',
}

function mayPass(error: unknown): boolean {
  return !(reasonOf(error) in WRONG)
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error)) return ''
  if (cause.message.includes('client password must be a string')) return 'no password'
  return 'code' in cause ? String(cause.code) : ''
}

export function cannotBeReached(url: string, error: unknown): Failure {
  if (isHeldByAnother(error)) return error.cause
  const why = { ...WRONG, ...NOT_YET }[reasonOf(error)] ?? 'it does not answer'
  return new Failure(
    'unavailable',
    `The database ${nameOf(url)} cannot be opened: ${why}. Correct REELGATE_DATABASE_URL, or start PostgreSQL.`,
    { cause: error },
  )
}

export const OLDEST_VERSION = 15

/** @throws Failure `unavailable` when it is too old, or does not keep every text */
async function refuseUnfit(url: string): Promise<void> {
  const [version, encoding] = await withClient(url, async (client) => {
    const { rows } = await client.query<{ version: number; encoding: string }>(
      `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding`,
    )
    return [Math.floor((rows[0]?.version ?? 0) / 10_000), rows[0]?.encoding] as const
  })
  if (version < OLDEST_VERSION)
    throw new Failure(
      'unavailable',
      `The database ${nameOf(url)} is PostgreSQL ${version}, which is too old. Use PostgreSQL ${OLDEST_VERSION} or newer.`,
    )
  if (encoding !== 'UTF8')
    throw new Failure(
      'unavailable',
      `The database ${nameOf(url)} keeps texts as ${encoding}. Make one with: create database NAME encoding 'UTF8' template template0.`,
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
      if (cause instanceof Failure) throw cause
      const error = new LostConnection('the database cannot be reached', { cause })
      if (performance.now() > tooLateMs || !mayPass(error)) throw cannotBeReached(url, error)
      await pause(LOOK_AGAIN_MS)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}

/** The table that stands in a database while an installation is moved into it (db/move). */
export const UNFINISHED_MOVE = 'unfinished_move'

async function refuseUnfinishedMove(client: pg.Client, url: string): Promise<void> {
  if (await tableExists(client, UNFINISHED_MOVE))
    throw new Failure(
      'unavailable',
      `An installation was moved to ${nameOf(url)} in part only. Run reelgate migrate again: it goes on where it was. Or start without REELGATE_DATABASE_URL, as before the move.`,
    )
}

async function tableExists(client: pg.Client, table: string): Promise<boolean> {
  const { rows } = await client.query<{ there: number }>('select to_regclass($1) is not null as there', [table])
  return rows[0]?.there === 1
}

async function isEmpty(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('select 1 from setting limit 1')
  return rows.length === 0
}
