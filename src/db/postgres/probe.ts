import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../errors.ts'
import { type Connection, openConnection } from './connection.ts'
import {
  assertValidUrl,
  isDatabaseInUse,
  isTransient,
  redactedUrl,
  sharedSession,
  unreachable,
  unusable,
} from './connection-errors.ts'
import { LostConnection } from './failures.ts'

/** How long a start waits for a database that is starting, too. */
const MAX_WAIT_MS = 30_000
/** How long it waits for the previous server to release the database. */
const MAX_LOCK_WAIT_MS = 10_000
const RETRY_INTERVAL_MS = 250
const TIMEOUT_MS = 8_000

/**
 * Repeats an attempt while the database is temporarily unreachable.
 * @throws Failure when waiting does not help
 */
export async function retryUntilReachable<T>(url: string, attempt: () => Promise<T>): Promise<T> {
  assertValidUrl(url)
  const beganMs = performance.now()
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof LostConnection)) throw unusable(url, error)
      const maxWaitMs = isDatabaseInUse(error) ? MAX_LOCK_WAIT_MS : MAX_WAIT_MS
      if (performance.now() - beganMs > maxWaitMs || !isTransient(error)) throw unreachable(url, error)
      await pause(RETRY_INTERVAL_MS)
    }
  }
}

/** Reads from a database before anything opens it to write. */
export function withProbeConnection<T>(url: string, read: (connection: Connection) => Promise<T>): Promise<T> {
  return retryUntilReachable(url, async () => {
    const connection = openConnection({ url, timeoutMs: TIMEOUT_MS, settings: { default_transaction_read_only: 'on' } })
    return read(connection).finally(connection.close)
  })
}

export const MIN_VERSION = 15

/** @throws Failure `unavailable` when a pooler shares sessions, it is too old, or its encoding cannot store every text */
export async function assertSupportedServer(url: string): Promise<void> {
  await assertOwnSessions(url)
  const settings = await withProbeConnection(url, (connection) =>
    rows<{ value: string }>(
      connection,
      `select current_setting(name) as value from unnest(array['server_version_num', 'server_encoding']) as name`,
    ),
  )
  const [number, encoding] = settings.map(({ value }) => value)
  const version = Math.floor(Number(number) / 10_000)
  if (version < MIN_VERSION)
    throw new Failure(
      'unavailable',
      `The database ${redactedUrl(url)} is PostgreSQL ${version}, which is too old. Use PostgreSQL ${MIN_VERSION} or newer.`,
    )
  if (encoding !== 'UTF8')
    throw new Failure(
      'unavailable',
      `The database ${redactedUrl(url)} has the encoding ${encoding}, expected UTF8. Create one with: create database NAME encoding 'UTF8' template template0.`,
    )
}

/** Locks, settings and prepared statements belong to a session: two connections must not get the same one in turn. */
async function assertOwnSessions(url: string): Promise<void> {
  const processes = await withProbeConnection(url, (one) =>
    withProbeConnection(url, async (other) => [await readProcess(one), await readProcess(other)]),
  )
  if (new Set(processes).size < processes.length) throw sharedSession(url)
}

async function readProcess(connection: Connection): Promise<number | undefined> {
  const [row] = await rows<{ pid: number }>(connection, 'select pg_backend_pid() as pid')
  return row?.pid
}

export async function tableExists(connection: Connection, table: string): Promise<boolean> {
  const [found] = await rows<{ there: number }>(connection, 'select to_regclass($1) is not null as there', table)
  return found?.there === 1
}

export async function rows<R>(connection: Connection, sql: string, ...parameters: unknown[]): Promise<R[]> {
  return (await connection.execute<R>({ sql, parameters })).rows
}
