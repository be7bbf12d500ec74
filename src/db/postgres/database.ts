import { sql } from 'kysely'
import { Failure } from '../../errors.ts'
import type { Database, Db } from '../database.ts'
import { migrate } from '../migrate.ts'
import { createGroupCommitter, errorCode } from '../write.ts'
import { createPostgresCommitter } from './commit.ts'
import { type Connection, openConnection } from './connection.ts'
import { unusable } from './connection-errors.ts'
import { createDatabaseLock } from './database-lock.ts'
import { createPostgresKysely } from './dialect.ts'
import { DISK_FULL, LostConnection, toPublicError } from './failures.ts'
import { MIGRATIONS } from './migrations.ts'
import { createOutageTracker } from './outage.ts'
import { assertSupportedServer, retryUntilReachable } from './probe.ts'
import { readSlowlyWith, readWith } from './readers.ts'
import { serverLock } from './server-lock.ts'

/** Connections for reads that take less than a millisecond; each carries many at once. */
const READERS = 3
/** Connections for reads that take longer: one at a time on each. */
const SLOW_READERS = 4

/** How long a statement may take before its connection counts as lost: a caller must not hang with a peer that says nothing. */
const READ_TIMEOUT_MS = 8_000
const SLOW_READ_TIMEOUT_MS = 20_000
const WRITE_TIMEOUT_MS = 15_000
const LOCK_TIMEOUT_MS = 5_000

/**
 * Opens the database: one connection that writes, some that read.
 * @throws Failure `unavailable` when it cannot be reached, another server writes to it, or it belongs to a newer version
 */
export async function openPostgres(url: string): Promise<Database> {
  const readOnly = { url, settings: { default_transaction_read_only: 'on' } }
  const readers = Array.from({ length: READERS }, () => openConnection({ ...readOnly, timeoutMs: READ_TIMEOUT_MS }))
  const slowReaders = Array.from({ length: SLOW_READERS }, () => openConnection({ ...readOnly, timeoutMs: SLOW_READ_TIMEOUT_MS }))
  const lock = serverLock(url)
  const writer = openConnection({
    url,
    settings: { default_transaction_isolation: 'serializable', lock_timeout: LOCK_TIMEOUT_MS },
    timeoutMs: WRITE_TIMEOUT_MS,
    lost: () => void ask().catch(noticedAndTellable), // soon: another server may have the database by now
    async begin(client) {
      await lock.take(client).catch((error) => {
        if (error instanceof Failure) hold.take()
        throw error
      })
      // Behind the same address may be another server by now: nobody reads from the old one what was written to the new one.
      for (const reader of [...readers, ...slowReaders]) reader.renew()
    },
  })
  const ask = async () => {
    await write.outside((db) => sql`select pg_current_xact_id()`.execute(db)) // which a standby refuses
    await sql`select 1`.execute(db)
  }
  const outages = createOutageTracker(ask)
  let full: () => void = () => undefined
  const hold = createDatabaseLock(url, () => {
    outages.stop()
    for (const connection of [writer, ...readers, ...slowReaders]) void connection.close()
  })
  const noticedAndTellable = (error: unknown) => {
    const held = error instanceof LostConnection ? hold.refusal() : undefined
    if (held) return held
    if (errorCode(error) === DISK_FULL) full()
    outages.notice(error)
    return toPublicError(error)
  }
  const db = readWith(readers, noticedAndTellable)
  const committer = createPostgresCommitter(createPostgresKysely(writer.execute, writer.close), writer, noticedAndTellable)
  const write = createGroupCommitter(committer)
  const close = async () => {
    outages.stop()
    hold.stop()
    await Promise.all([...readers, ...slowReaders].map((reader) => reader.close()))
    await writer.close()
  }
  try {
    await retryUntilReachable(url, async () => {
      await writer.hold()
      writer.letGo()
    })
    await assertSupportedServer(url)
    await migrateOnSingleConnection(url)
  } catch (error) {
    await close()
    throw error
  }
  return {
    db,
    clockS: () => readClock(db),
    slowDb: readSlowlyWith(slowReaders, noticedAndTellable),
    write,
    damage: Promise.resolve(undefined), // PostgreSQL looks after that
    watch(news) {
      outages.watch(news)
      hold.watch(news)
      full = news.full
    },
    clearLog: async () => undefined,
    close,
  }
}

/**
 * The one connection of a piece of work that no server may come in between; once lost it is not made anew.
 * @throws Failure `unavailable` when the database cannot be reached or used, or a server works with it
 */
export async function openSingleConnection(url: string): Promise<Connection> {
  const connection = openConnection({ url, begin: serverLock(url).take })
  try {
    await retryUntilReachable(url, connection.hold)
    await assertSupportedServer(url)
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
export async function migrateOnSingleConnection(url: string): Promise<void> {
  const connection = openConnection({ url })
  try {
    await connection.hold()
    await migrate(createPostgresKysely(connection.execute, connection.close), MIGRATIONS)
  } catch (error) {
    throw unusable(url, error)
  } finally {
    await connection.close()
  }
}
