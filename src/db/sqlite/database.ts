import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import SqliteDatabase from 'better-sqlite3'
import { type CompiledQuery, type QueryResult, sql } from 'kysely'
import { Failure } from '../../errors.ts'
import { collectChanges } from '../changed-tables.ts'
import type { Database, DatabaseLocation, Db } from '../database.ts'
import { foldCase } from '../fold-case.ts'
import { migrate } from '../migrate.ts'
import { createGroupCommitter, type Write } from '../write.ts'
import { createSqliteCommitter, DISK_FULL, isDatabaseFull, type ReleaseReservePart, type Writer } from './commit.ts'
import { findDamage, findDamageInWorker } from './damage.ts'
import { createSqliteKysely } from './dialect.ts'
import { MIGRATIONS } from './migrations.ts'
import { openSlowReads } from './slow-reads.ts'
import { cacheStatements } from './statements.ts'

/** How long a start waits for another process that holds the database; a running server waits in `write`, by timer. */
const BUSY_TIMEOUT_MS = 5_000

/** Pages in the write-ahead log before a checkpoint: four times SQLite's default, so that hot pages are copied less often. */
const LOG_PAGES = 4_000

/** Page cache of a connection. */
const CACHE_KIB = 16_000

/** A database up to this size is checked completely before it is used; a larger one while it is used. */
export const MAX_BYTES_CHECKED_AT_START = 64 * 2 ** 20

/** An installation's database in its data folder. */
export function sqliteLocation(path: string, releaseReservePart?: ReleaseReservePart): DatabaseLocation {
  return {
    name: path,
    address: undefined,
    possibleRollbackCause: 'its log reelgate.db-wal is missing, or it is an old copy',
    exists: async () => existsSync(path),
    assertWritable: async () => assertWritable(path),
    peekSetting: async (name) => peekSetting(path, name),
    peekRows: async <Row>(table: string, query: string) =>
      peek(path, (connection) => (hasTable(connection, table) ? connection.prepare<[], Row>(query).all() : [])) ?? [],
    appliedMigrations: async () => peek(path, listAppliedMigrations) ?? [],
    migrations: Object.keys(MIGRATIONS),
    open: () => openSqlite(path, releaseReservePart),
  }
}

/**
 * Opens the SQLite database in WAL mode with `synchronous=FULL`: one connection that writes, one for quick reads, and threads of their
 * own for slow reads and for the check of a large database.
 * @throws Failure `unavailable` when it is damaged, cannot be written, or belongs to a newer version
 */
export async function openSqlite(path: string, releaseReservePart: ReleaseReservePart = () => false): Promise<Database> {
  const writer = await openWriter(path)
  try {
    await retryOnFullDisk(releaseReservePart, () => migrate(writer.db, MIGRATIONS))
    await sql`pragma busy_timeout = 0`.execute(writer.db)
  } catch (error) {
    await writer.db.destroy()
    throw isDatabaseFull(error) ? openError(path, error) : error
  }
  const { db: reader } = connect(path, (connection) => connection.pragma('query_only = ON'))
  const slowReader = openSlowReads(path)
  const committer = createSqliteCommitter(writer, releaseReservePart)
  let onDiskFull: () => void = () => undefined
  const write = createGroupCommitter({
    ...committer,
    toPublicError(error) {
      if (isDatabaseFull(error)) onDiskFull()
      return committer.toPublicError(error)
    },
  })
  const checker = openSlowReads(path)
  let isClosing = false
  const isLarge = statSync(path).size > MAX_BYTES_CHECKED_AT_START
  const damage = isLarge ? findDamageInWorker(checker, write, () => !isClosing) : Promise.resolve(undefined)
  return {
    db: reader,
    slowQueryDb: slowReader,
    write,
    serverClockS: undefined,
    batches: undefined,
    damage,
    watch(listener) {
      onDiskFull = listener.diskFull
    },
    truncateWal: () => retryOnFullDisk(releaseReservePart, () => truncateWal(write)),
    channel: undefined,
    async close() {
      isClosing = true
      await checker.destroy()
      await slowReader.destroy()
      await reader.destroy()
      await writer.db.destroy()
    },
  }
}

/** Creates a database with the tables that these migrations make, and without rows. */
export async function createTables(path: string, migrations: readonly string[]): Promise<void> {
  const { db } = await openWriter(path)
  try {
    await migrate(db, Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => migrations.includes(name))))
  } finally {
    await db.destroy()
  }
}

/** Changes rows in one transaction, whatever version made the tables: they stay as they are. */
export async function changeRowsUnmigrated(path: string, change: (tx: Db) => Promise<void>): Promise<void> {
  const { db } = await openWriter(path)
  try {
    await db.transaction().execute(change)
  } finally {
    await db.destroy()
  }
}

async function openWriter(path: string): Promise<Writer> {
  try {
    const writer = connect(path, (connection) => {
      connection.pragma('journal_mode = WAL')
      connection.pragma('synchronous = FULL')
      connection.pragma(`wal_autocheckpoint = ${LOG_PAGES}`)
      connection.pragma('foreign_keys = ON')
      connection.pragma('secure_delete = ON')
      connection.function('fold', { deterministic: true }, (text) => foldCase(String(text)))
    })
    await sql`select count(*) from sqlite_master`.execute(writer.db)
    assertWritable(path)
    await assertUndamagedIfSmall(writer.db, path)
    return writer
  } catch (error) {
    throw error instanceof Failure ? error : openError(path, error)
  }
}

/** SQLite would open a file that cannot be written read-only, and fail at the first write. */
function assertWritable(path: string): void {
  try {
    if (existsSync(path)) accessSync(path, constants.W_OK)
  } catch (error) {
    throw openError(path, error)
  }
}

/** Tries again with more space while the disk is full and the reserve is not used up. */
async function retryOnFullDisk<T>(releaseReservePart: ReleaseReservePart, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isDatabaseFull(error) || !releaseReservePart()) throw error
    }
  }
}

function openError(path: string, cause: unknown): Failure {
  if (isDatabaseFull(cause)) return new Failure('unavailable', DISK_FULL, { cause })
  return new Failure(
    'unavailable',
    `The database ${path} cannot be opened: it is damaged or not writable. Restore it from a backup, or correct its permissions.`,
    { cause },
  )
}

/** Finds damage before a viewer's request reads the damaged page, hours later. A large database is checked while it is used. */
async function assertUndamagedIfSmall(writer: Db, path: string): Promise<void> {
  if (statSync(path).size > MAX_BYTES_CHECKED_AT_START) return
  await sql`pragma cache_size = -1000`.execute(writer) // each page is read once, so caching it is useless
  const damage = await findDamage(writer)
  await sql.raw(`pragma cache_size = ${-CACHE_KIB}`).execute(writer)
  if (damage) throw new Error(damage)
}

function peekSetting(path: string, name: string): string | undefined {
  return peek(path, (connection) => {
    if (!hasTable(connection, 'setting')) return undefined
    return connection.prepare<[string], { value: string }>('select value from setting where name = ?').get(name)?.value
  })
}

function listAppliedMigrations(connection: SqliteDatabase.Database): string[] {
  if (!hasTable(connection, 'kysely_migration')) return []
  const rows = connection.prepare<[], { name: string }>('select name from kysely_migration').all()
  return rows.map(({ name }) => name)
}

function hasTable(connection: SqliteDatabase.Database, name: string): boolean {
  return connection.prepare('select 1 from sqlite_master where name = ?').get(name) !== undefined
}

/** Reads from a database before anything opens it to write. Undefined when it does not exist. */
function peek<T>(path: string, read: (connection: SqliteDatabase.Database) => T): T | undefined {
  if (!existsSync(path)) return undefined
  let connection: SqliteDatabase.Database | undefined
  try {
    connection = new SqliteDatabase(path, { readonly: true, timeout: BUSY_TIMEOUT_MS })
    if (hasHotJournal(connection)) {
      connection.close()
      connection = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS })
    }
    return read(connection)
  } catch (error) {
    throw openError(path, error)
  } finally {
    connection?.close()
  }
}

/**
 * Whether the process crashed before the first start had switched to WAL. That leaves a hot journal, which only a connection that may
 * write can roll back.
 */
function hasHotJournal(connection: SqliteDatabase.Database): boolean {
  try {
    connection.prepare('select 1 from sqlite_master').get()
    return false
  } catch (error) {
    if (error instanceof SqliteDatabase.SqliteError && error.code === 'SQLITE_READONLY_ROLLBACK') return true
    throw error
  }
}

function connect(path: string, configure: (connection: SqliteDatabase.Database) => void): Writer {
  const connection = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS })
  configure(connection)
  const statements = cacheStatements(connection)

  async function executeQuery<R>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const statement = statements.prepare(text)
    if (statement.reader) return { rows: statement.all(parameters) as R[] }
    return { rows: [], numAffectedRows: BigInt(statement.run(parameters).changes) }
  }

  const { execute, takeChanges } = collectChanges(executeQuery)
  return {
    db: createSqliteKysely(execute, async () => void connection.close()),
    takeChanges,
    run: (statement) => void statements.prepare(statement).run(),
    isInTransaction: () => connection.inTransaction,
  }
}

const MAX_CHECKPOINT_ATTEMPTS = 20
const CHECKPOINT_PAUSE_MS = 100

/** Empties the write-ahead log into the database, so that neither contains deleted data. Gives up after some attempts while a long read needs the log. */
export async function truncateWal(write: Write): Promise<void> {
  for (let attempt = 0; attempt < MAX_CHECKPOINT_ATTEMPTS; attempt++) {
    const { rows } = await write.outsideTransaction((db) => sql<{ busy: number }>`pragma wal_checkpoint(TRUNCATE)`.execute(db))
    if (rows[0]?.busy === 0) return
    await pause(CHECKPOINT_PAUSE_MS)
  }
}
