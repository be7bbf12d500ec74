import { sql } from 'kysely'
import { errorCode, Failure } from '../../errors.ts'
import { collectChanges } from '../changed-tables.ts'
import type { Database, Db } from '../database.ts'
import { migrate } from '../migrate.ts'
import { createGroupCommitter } from '../write.ts'
import { openBatches } from './batches.ts'
import { openChannel } from './channel.ts'
import { createPostgresCommitter } from './commit.ts'
import { type Connection, openConnection } from './connection.ts'
import { unusable } from './connection-errors.ts'

import { createPostgresKysely } from './dialect.ts'
import { DISK_FULL, isConflict, LostConnection, toPublicError } from './failures.ts'
import { MIGRATIONS } from './migrations.ts'
import { createOutageTracker } from './outage.ts'
import { assertSupportedServer, retryUntilReachable } from './probe.ts'
import { createReader, createSlowReader } from './readers.ts'
import { createServerLock } from './server-lock.ts'
import { createTakeoverHandler } from './takeover.ts'

/** Connections for reads that take less than a millisecond; each runs many concurrently. */
const READERS = 3
/** Connections for reads that take longer: one at a time on each. */
const SLOW_READERS = 4

/**
 * How long a statement may take before its connection counts as lost: a caller must not hang with a server that does not
 * answer.
 */
const READ_TIMEOUT_MS = 8_000
const SLOW_READ_TIMEOUT_MS = 20_000
const WRITE_TIMEOUT_MS = 15_000
const LOCK_TIMEOUT_MS = 5_000

/**
 * Opens the database: one connection that writes, some that read.
 * @param withOthers other servers may use it at the same time, and one more connection reaches them
 * @throws Failure `unavailable` when it cannot be reached, another server writes to it, or it belongs to a newer version
 */
export async function openPostgres(url: string, withOthers = false): Promise<Database> {
  const readOnly = { url, settings: { default_transaction_read_only: 'on' } }
  const readers = Array.from({ length: READERS }, () => openConnection({ ...readOnly, timeoutMs: READ_TIMEOUT_MS }))
  const slowReaders = Array.from({ length: SLOW_READERS }, () => openConnection({ ...readOnly, timeoutMs: SLOW_READ_TIMEOUT_MS }))
  const lock = createServerLock(url, withOthers)
  const channel = withOthers ? openChannel(url, lock.own) : undefined
  const writer = openConnection({
    url,
    settings: { default_transaction_isolation: 'serializable', lock_timeout: LOCK_TIMEOUT_MS },
    timeoutMs: WRITE_TIMEOUT_MS,
    onLost: () => void poll().catch(recordError), // soon: another server may have the database by now
    async setUp(client) {
      await lock.acquire(client).catch((error) => {
        if (error instanceof Failure) takeover.handleTakeover()
        throw error
      })
      // Another server may have replaced the one at this address: nothing may be read from the old one after a write to the new
      // one.
      for (const reader of [...readers, ...slowReaders]) reader.reconnect()
    },
  })
  const poll = async () => {
    await write.outsideTransaction((db) => sql`select pg_current_xact_id()`.execute(db)) // a standby rejects this
    await sql`select 1`.execute(db)
  }
  const outages = createOutageTracker(poll)
  let onDiskFull: () => void = () => undefined
  const takeover = createTakeoverHandler(url, withOthers, () => {
    outages.stop()
    void channel?.close()
    for (const connection of [writer, ...readers, ...slowReaders, batches]) void connection.close()
  })
  /** Passes an error to those who watch the database. @returns the error for the caller */
  const recordError = (error: unknown) => {
    const takenOver = error instanceof LostConnection ? takeover.error() : undefined
    if (takenOver) return takenOver
    if (errorCode(error) === DISK_FULL) onDiskFull()
    outages.record(error)
    return toPublicError(error)
  }
  const batches = openBatches(url, recordError)
  const db = createReader(readers, recordError)
  const { execute, takeChanges } = collectChanges(writer.execute)
  const committer = createPostgresCommitter(createPostgresKysely(execute, writer.close), writer, recordError, withOthers)
  const write = createGroupCommitter({ ...committer, takeChanges })
  const close = async () => {
    outages.stop()
    takeover.stop()
    await Promise.all([...readers, ...slowReaders, batches, ...(channel ? [channel] : [])].map((each) => each.close()))
    await writer.close()
  }
  try {
    await assertSupportedServer(url) // first: a pooler would keep the lock of a server that it refuses
    await retryUntilReachable(url, async () => {
      await writer.hold()
      writer.release()
    })
    await channel?.lockStart()
    await migrateOnSingleConnection(url)
  } catch (error) {
    await close()
    throw error
  }
  return {
    db,
    serverClockS: () => readClock(db),
    slowQueryDb: createSlowReader(slowReaders, recordError),
    write,
    batches,
    damage: Promise.resolve(undefined), // PostgreSQL checks its own files
    watch(listener) {
      outages.watch(listener)
      takeover.watch(listener)
      onDiskFull = listener.diskFull
    },
    truncateWal: async () => undefined,
    channel,
    close,
  }
}

/**
 * A single connection that holds the server lock, for work during which no server may use the database. Once lost it is not
 * replaced.
 * @throws Failure `unavailable` when the database cannot be reached or used, or a server works with it
 */
export async function openSingleConnection(url: string): Promise<Connection> {
  const connection = openConnection({ url, setUp: createServerLock(url, false).acquire })
  try {
    await assertSupportedServer(url)
    await retryUntilReachable(url, connection.hold)
    return connection
  } catch (error) {
    await connection.close()
    throw error
  }
}

async function readClock(db: Db): Promise<number> {
  const { rows } = await sql<{ nowS: number }>`select extract(epoch from clock_timestamp()) as now_s`.execute(db)
  return Number(rows[0]?.nowS)
}

/**
 * On a connection of its own, which is not replaced when it is lost: a migration takes as long as it needs, and is done as a
 * whole.
 */
export async function migrateOnSingleConnection(url: string): Promise<void> {
  const connection = openConnection({ url })
  try {
    await connection.hold()
    await migrateAmongOthers(createPostgresKysely(connection.execute, connection.close))
  } catch (error) {
    throw unusable(url, error)
  } finally {
    await connection.close()
  }
}

/** Servers of the version before, which serve meanwhile, lock the same tables in other orders: a deadlock rolls one of both back. */
const MAX_ATTEMPTS_TO_MIGRATE = 10

async function migrateAmongOthers(db: Db): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await migrate(db, MIGRATIONS)
    } catch (error) {
      const isRolledBack = error instanceof Failure && isConflict(error.cause)
      if (!isRolledBack || attempt === MAX_ATTEMPTS_TO_MIGRATE) throw error
    }
  }
}
