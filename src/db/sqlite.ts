import { statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import SqliteDatabase from 'better-sqlite3'
import { type CompiledQuery, type Kysely, type QueryResult, sql } from 'kysely'
import { Failure } from '../errors.ts'
import { fold } from './fold.ts'
import { kyselyOver } from './kysely-over.ts'
import { migrate } from './migrations.ts'
import { openSlowReads } from './slow-reads.ts'
import { keepStatements } from './statements.ts'
import type { Tables } from './tables.ts'
import { groupCommits, type Write } from './write.ts'

/** A handle to read with, or inside `write` the transaction. */
export type Db = Kysely<Tables>

export type Database = {
  /** Reads only: the connection cannot write. */
  db: Db
  /** For reads that may take milliseconds: in a thread of their own, where they hold up nobody. */
  slowDb: Db
  write: Write
  close(): Promise<void>
}

/** How long a start waits for another process that holds the database; a running server waits in `write`, by timer. */
const BUSY_TIMEOUT_MS = 5_000

/** A database up to this size is checked whole at the start: about a millisecond per MiB. */
const CHECKED_BYTES = 64 * 2 ** 20

/**
 * Opens the SQLite database in WAL mode with `synchronous=FULL`, one connection that writes and one that reads.
 * @throws Failure `unavailable` when it is damaged, cannot be written, or belongs to a newer version
 */
export async function openSqlite(path: string): Promise<Database> {
  const writer = await openWriter(path)
  try {
    await migrate(writer)
    await sql`pragma busy_timeout = 0`.execute(writer)
  } catch (error) {
    await writer.destroy()
    throw error
  }
  const reader = connect(path, (connection) => connection.pragma('query_only = ON'))
  const slowReader = openSlowReads(path)
  return {
    db: reader,
    slowDb: slowReader,
    write: groupCommits(writer),
    async close() {
      await slowReader.destroy()
      await reader.destroy()
      await writer.destroy()
    },
  }
}

async function openWriter(path: string): Promise<Db> {
  try {
    const writer = connect(path, (connection) => {
      connection.pragma('journal_mode = WAL')
      connection.pragma('synchronous = FULL')
      connection.pragma('foreign_keys = ON')
      connection.pragma('secure_delete = ON')
      connection.function('fold', { deterministic: true }, (text) => fold(String(text)))
    })
    await sql`select count(*) from sqlite_master`.execute(writer)
    await refuseDamage(writer, path)
    return writer
  } catch (error) {
    throw new Failure(
      'unavailable',
      `The database ${path} cannot be opened: it is damaged or not writable. Restore it from a backup, or correct its permissions.`,
      { cause: error },
    )
  }
}

/** A page that no statement reads at the start would otherwise be found by a viewer, hours later. */
async function refuseDamage(writer: Db, path: string): Promise<void> {
  if (statSync(path).size > CHECKED_BYTES) return
  const { rows } = await sql<{ quickCheck: string }>`pragma quick_check(1)`.execute(writer)
  if (rows[0]?.quickCheck !== 'ok') throw new Error(`quick_check: ${rows[0]?.quickCheck}`)
}

function connect(path: string, prepare: (connection: SqliteDatabase.Database) => void): Db {
  const connection = new SqliteDatabase(path, { timeout: BUSY_TIMEOUT_MS })
  prepare(connection)
  const statements = keepStatements(connection)

  async function executeQuery<R>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const statement = statements.prepare(text)
    if (statement.reader) return { rows: statement.all(parameters) as R[] }
    return { rows: [], numAffectedRows: BigInt(statement.run(parameters).changes) }
  }

  return kyselyOver(executeQuery, async () => void connection.close())
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

/** Proof that this process alone writes to a data folder; the kernel gives it up when the process ends, however it ends. */
export type FolderLock = { release(): void }

/** Takes the lock of a data folder. Undefined: another process holds it. */
export function takeFolderLock(path: string): FolderLock | undefined {
  const connection = new SqliteDatabase(path, { timeout: 0 })
  try {
    connection.pragma('journal_mode = DELETE')
    connection.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    connection.close()
    if (error instanceof SqliteDatabase.SqliteError && error.code.startsWith('SQLITE_BUSY')) return undefined
    throw error
  }
  // The closure keeps the handle referenced: a collected handle would free the lock.
  return { release: () => connection.close() }
}
