import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import SqliteDatabase from 'better-sqlite3'
import { type CompiledQuery, type QueryResult, sql } from 'kysely'
import { Failure } from '../../errors.ts'
import type { Database, DatabaseLocation, Db } from '../database.ts'
import { foldCase } from '../fold-case.ts'
import { migrate } from '../migrate.ts'
import { createGroupCommitter, type Write } from '../write.ts'
import { createSqliteCommitter, DISK_FULL, isFull, type ReleaseReserve, type Writer } from './commit.ts'
import { findDamage, findDamageInWorker } from './damage.ts'
import { createSqliteKysely } from './dialect.ts'
import { MIGRATIONS } from './migrations.ts'
import { openSlowReads } from './slow-reads.ts'
import { cacheStatements } from './statements.ts'

/** How long a start waits for another process that holds the database; a running server waits in `write`, by timer. */
const BUSY_TIMEOUT_MS = 5_000

/** Pages in the write-ahead log before they are copied into the database: four times SQLite's usual, since hot pages are copied once then. */
const LOG_PAGES = 4_000

/** What a connection keeps of the database in memory, in KiB. */
const CACHE_KIB = 16_000

/** A database up to this size is checked whole before it is used. */
export const MAX_CHECKED_BYTES = 64 * 2 ** 20

/** An installation's database in its data folder. */
export function sqliteLocation(path: string, giveRoom?: ReleaseReserve): DatabaseLocation {
  return {
    name: path,
    address: undefined,
    olderBecause: 'its log reelgate.db-wal is missing, or it is an old copy',
    exists: async () => existsSync(path),
    peekSetting: async (name) => peekSetting(path, name),
    open: () => openSqlite(path, giveRoom),
  }
}

/**
 * Opens the SQLite database in WAL mode with `synchronous=FULL`, one connection that writes and one that reads.
 * @throws Failure `unavailable` when it is damaged, cannot be written, or belongs to a newer version
 */
export async function openSqlite(path: string, giveRoom: ReleaseReserve = () => false): Promise<Database> {
  const writer = await openWriter(path)
  try {
    await withinRoom(giveRoom, () => migrate(writer.db, MIGRATIONS))
    await sql`pragma busy_timeout = 0`.execute(writer.db)
  } catch (error) {
    await writer.db.destroy()
    throw isFull(error) ? cannotBeOpened(path, error) : error
  }
  const { db: reader } = connect(path, (connection) => connection.pragma('query_only = ON'))
  const slowReader = openSlowReads(path)
  const committer = createSqliteCommitter(writer, giveRoom)
  let full: () => void = () => undefined
  const write = createGroupCommitter({
    ...committer,
    tellable(error) {
      if (isFull(error)) full()
      return committer.tellable(error)
    },
  })
  const checker = openSlowReads(path)
  let isClosing = false
  const isLarge = statSync(path).size > MAX_CHECKED_BYTES
  const damage = isLarge ? findDamageInWorker(checker, write, () => !isClosing) : Promise.resolve(undefined)
  return {
    db: reader,
    slowDb: slowReader,
    write,
    clockS: undefined,
    damage,
    watch(news) {
      full = news.full
    },
    clearLog: () => withinRoom(giveRoom, () => checkpoint(write)),
    async close() {
      isClosing = true
      await checker.destroy()
      await slowReader.destroy()
      await reader.destroy()
      await writer.db.destroy()
    },
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
    accessSync(path, constants.W_OK) // SQLite would open it to read, and say so at the first write
    await refuseDamage(writer.db, path)
    return writer
  } catch (error) {
    throw cannotBeOpened(path, error)
  }
}

/** Does it again with more room as long as the disk is full and there is some in reserve. */
async function withinRoom<T>(giveRoom: ReleaseReserve, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isFull(error) || !giveRoom()) throw error
    }
  }
}

function cannotBeOpened(path: string, cause: unknown): Failure {
  if (isFull(cause)) return new Failure('unavailable', DISK_FULL, { cause })
  return new Failure(
    'unavailable',
    `The database ${path} cannot be opened: it is damaged or not writable. Restore it from a backup, or correct its permissions.`,
    { cause },
  )
}

/** A page that no statement reads at the start would otherwise be found by a viewer, hours later. */
async function refuseDamage(writer: Db, path: string): Promise<void> {
  if (statSync(path).size > MAX_CHECKED_BYTES) return // checked while it serves
  await sql`pragma cache_size = -1000`.execute(writer) // every page is read once: none of them need stay in memory
  const damage = await findDamage(writer)
  await sql.raw(`pragma cache_size = ${-CACHE_KIB}`).execute(writer)
  if (damage) throw new Error(damage)
}

function peekSetting(path: string, name: string): string | undefined {
  if (!existsSync(path)) return undefined
  let connection: SqliteDatabase.Database | undefined
  try {
    connection = new SqliteDatabase(path, { readonly: true, timeout: BUSY_TIMEOUT_MS })
    if (isCutOff(connection)) {
      connection.close()
      connection = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS })
    }
    const isThere = connection.prepare("select 1 from sqlite_master where name = 'setting'").get()
    if (!isThere) return undefined
    return connection.prepare<[string], { value: string }>('select value from setting where name = ?').get(name)?.value
  } catch (error) {
    throw cannotBeOpened(path, error)
  } finally {
    connection?.close()
  }
}

/** Whether a change of before there was a log (WAL), such as the first start's, was cut off: only who may write can undo it. */
function isCutOff(connection: SqliteDatabase.Database): boolean {
  try {
    connection.prepare('select 1 from sqlite_master').get()
    return false
  } catch (error) {
    if (error instanceof SqliteDatabase.SqliteError && error.code === 'SQLITE_READONLY_ROLLBACK') return true
    throw error
  }
}

function connect(path: string, prepare: (connection: SqliteDatabase.Database) => void): Writer {
  const connection = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS })
  prepare(connection)
  const statements = cacheStatements(connection)

  async function executeQuery<R>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const statement = statements.prepare(text)
    if (statement.reader) return { rows: statement.all(parameters) as R[] }
    return { rows: [], numAffectedRows: BigInt(statement.run(parameters).changes) }
  }

  return {
    db: createSqliteKysely(executeQuery, async () => void connection.close()),
    run: (statement) => void statements.prepare(statement).run(),
  }
}

const CHECKPOINT_TRIES = 20
const CHECKPOINT_PAUSE_MS = 100

/** Empties the write-ahead log into the database, so that what was deleted lies in neither. Another's long read may put that off. */
export async function checkpoint(write: Write): Promise<void> {
  for (let tries = 0; tries < CHECKPOINT_TRIES; tries++) {
    const { rows } = await write.outside((db) => sql<{ busy: number }>`pragma wal_checkpoint(TRUNCATE)`.execute(db))
    if (rows[0]?.busy === 0) return
    await pause(CHECKPOINT_PAUSE_MS)
  }
}
