import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../errors.ts'
import { type Connection, openConnection } from './connection.ts'
import { assertValidUrl, isDatabaseInUse, isTransient, redactedUrl, unreachable, unusable } from './connection-errors.ts'
import { LostConnection } from './failures.ts'

/** How long a start waits for a database that starts, too. */
const PATIENCE_MS = 30_000
/** How long it waits for the server before it to let go. */
const LOCK_PATIENCE_MS = 10_000
const LOOK_AGAIN_MS = 250
const TIMEOUT_MS = 8_000

/**
 * Attempts it again while the database cannot be reached, but may soon.
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
      const patienceMs = isDatabaseInUse(error) ? LOCK_PATIENCE_MS : PATIENCE_MS
      if (performance.now() - beganMs > patienceMs || !isTransient(error)) throw unreachable(url, error)
      await pause(LOOK_AGAIN_MS)
    }
  }
}

/** Looks at a database before anything opens it to write. */
export function withProbeConnection<T>(url: string, ask: (connection: Connection) => Promise<T>): Promise<T> {
  return retryUntilReachable(url, async () => {
    const connection = openConnection({ url, timeoutMs: TIMEOUT_MS, settings: { default_transaction_read_only: 'on' } })
    return ask(connection).finally(connection.close)
  })
}

export const MIN_VERSION = 15

/** @throws Failure `unavailable` when it is too old, or does not keep every text */
export async function assertSupportedServer(url: string): Promise<void> {
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
      `The database ${redactedUrl(url)} keeps texts as ${encoding}. Make one with: create database NAME encoding 'UTF8' template template0.`,
    )
}

export async function tableExists(connection: Connection, table: string): Promise<boolean> {
  const [found] = await rows<{ there: number }>(connection, 'select to_regclass($1) is not null as there', table)
  return found?.there === 1
}

export async function rows<R>(connection: Connection, sql: string, ...parameters: unknown[]): Promise<R[]> {
  return (await connection.execute<R>({ sql, parameters })).rows
}
