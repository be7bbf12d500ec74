import { createHash } from 'node:crypto'
import SqliteDatabase from 'better-sqlite3'
import pg from 'pg'
import { Failure } from '../../errors.ts'
import { redactedUrl, unusable } from '../postgres/connection-errors.ts'
import { LostConnection } from '../postgres/failures.ts'
import { openSource, type Source } from './source.ts'
import { type Columns, type Row, rowSizeBytes, TABLE_NAMES, type TableName } from './tables.ts'
import { type MoveStart, openTarget, type Target } from './target.ts'

export type Move = {
  /** The SQLite database; no other process uses it meanwhile. */
  path: string
  /** The PostgreSQL database: empty, or with the rows that an earlier run moved. */
  url: string
  installation: string
}

export type MovedTable = { table: TableName; rows: number; sha256: string }

export type MoveListener = {
  started(how: MoveStart): void
  /** How many of all rows have passed this step. */
  progress(step: 'moving' | 'comparing' | 'finishing', rows: number, of: number): void
  /** Ends the connection to PostgreSQL, and the move with it. */
  signal: AbortSignal
}

/**
 * Copies every row from SQLite to PostgreSQL in the order of the keys, so that the last row of an earlier run shows where to
 * resume. The source is only read.
 * @returns the tables, equal on both sides, and the high-water mark of the new database
 * @throws Failure with what to do; the next run resumes
 */
export async function moveToPostgres(
  { path, url, installation }: Move,
  listener: MoveListener,
): Promise<{ tables: MovedTable[]; highWaterMark: number }> {
  try {
    using source = openSource(path)
    await using target = await openTarget(url)
    listener.signal.addEventListener('abort', () => void target[Symbol.asyncDispose](), { once: true })
    listener.started(await target.begin({ installation, fingerprint: source.fingerprint }))
    const tables = await findTables(source, target)
    const totalRows = tables.reduce((sum, { count }) => sum + count, 0)
    const reportProgress = (step: Parameters<MoveListener['progress']>[0]) => (rows: number) => {
      listener.signal.throwIfAborted()
      listener.progress(step, rows, totalRows)
    }
    await moveAll(source, target, tables, reportProgress('moving'))
    const moved = await compareAll(source, target, tables, reportProgress('comparing'))
    reportProgress('finishing')(totalRows)
    return { tables: moved, highWaterMark: await target.finish(source.highestAssignedId) }
  } catch (error) {
    throw listener.signal.aborted ? stopped() : toFailure(error, path, url)
  }
}

type Table = { name: TableName; columns: Columns; names: readonly string[]; count: number }

async function findTables(source: Source, target: Target): Promise<Table[]> {
  const tables: Table[] = []
  for (const name of TABLE_NAMES) {
    const columns = await target.listColumns(name)
    const names = columns.map((column) => column.name)
    const missing = source.listColumns(name).find((column) => !names.includes(column))
    if (missing !== undefined) throw new Error(`PostgreSQL has no column ${name}.${missing}`)
    tables.push({ name, columns, names, count: source.count(name) })
  }
  return tables
}

/** A batch is large enough to be sent efficiently, and small enough for any memory. */
const MAX_BATCH_ROWS = 1_000
const MAX_BATCH_BYTES = 4 * 2 ** 20

async function moveAll(source: Source, target: Target, tables: readonly Table[], reportRows: (rows: number) => void) {
  let rows = 0
  for (const { name, columns, names } of tables) {
    rows += await target.count(name)
    let inserting = Promise.resolve()
    for (const batch of batches(source.rows(name, names, await target.lastKey(name)))) {
      // The next batch is read while this one is inserted, but sent only after that: a gap would not be noticed by a run that
      // resumes.
      await inserting
      reportRows(rows)
      inserting = target.insert(name, columns, batch)
      inserting.catch(() => undefined) // the error is thrown where it is awaited
      rows += batch.length
    }
    await inserting
  }
}

function* batches(rows: Iterable<Row>): Generator<Row[], undefined> {
  let batch: Row[] = []
  let sizeBytes = 0
  for (const row of rows) {
    batch.push(row)
    sizeBytes += rowSizeBytes(row)
    if (batch.length < MAX_BATCH_ROWS && sizeBytes < MAX_BATCH_BYTES) continue
    yield batch
    batch = []
    sizeBytes = 0
  }
  if (batch.length > 0) yield batch
}

async function compareAll(source: Source, target: Target, tables: readonly Table[], reportRows: (rows: number) => void) {
  const moved: MovedTable[] = []
  let rows = 0
  for (const { name, names } of tables) {
    const [before, after] = [createChecksum(names), createChecksum(names)]
    const batchesBefore = batches(source.rows(name, names))
    for await (const page of target.pages(name, names)) {
      reportRows(rows)
      after.add(page)
      before.add(batchesBefore.next().value ?? []) // while the next page is read
      rows += page.length
    }
    for (const batch of batchesBefore) before.add(batch)
    const [expected, actual] = [before.end(), after.end()]
    if (expected.rows !== actual.rows || expected.sha256 !== actual.sha256)
      throw new TableDiffers(name, expected.rows, actual.rows)
    moved.push({ table: name, ...expected })
  }
  return moved
}

/**
 * The number of rows and the hash of all their values in the order of their keys. The form does not depend on the database that
 * a row comes from; bytes differ from text by being in a list.
 */
function createChecksum(names: readonly string[]) {
  const hash = createHash('sha256')
  let rows = 0
  return {
    add(batch: readonly Row[]): void {
      const lines = batch.map((row) => {
        const values = names.map((name) => {
          const value = row[name]
          return Buffer.isBuffer(value) ? [value.toString('base64')] : value
        })
        return `${JSON.stringify(values)}\n`
      })
      hash.update(lines.join(''))
      rows += batch.length
    },
    end: () => ({ rows, sha256: hash.digest('hex') }),
  }
}

class TableDiffers extends Error {
  constructor(table: string, before: number, after: number) {
    super(`the table ${table} differs: ${before} rows in the source, ${after} here`)
  }
}

const HOW_TO_RESUME = 'Run the same command again: it resumes.'

function stopped(): Failure {
  return new Failure('unavailable', `Stopped: the installation is as it was. ${HOW_TO_RESUME}`)
}

function toFailure(cause: unknown, path: string, url: string): unknown {
  if (cause instanceof Failure) return cause
  const fail = (sentence: string) => new Failure('unavailable', sentence, { cause })
  if (cause instanceof LostConnection) return fail(`The connection to ${redactedUrl(url)} was lost. ${HOW_TO_RESUME}`)
  if (cause instanceof SqliteDatabase.SqliteError)
    return fail(`The database ${path} cannot be read: ${cause.message}. Restore it from a backup, or correct its permissions.`)
  if (cause instanceof TableDiffers)
    return fail(
      `${redactedUrl(url)} is not an exact copy: ${cause.message}. Move into another, empty database; this one is unusable.`,
    )
  if (!(cause instanceof pg.DatabaseError)) return cause
  const reason = unusable(url, cause)
  return fail(
    `${reason instanceof Failure ? reason.message : `${redactedUrl(url)} reported an error: ${cause.message}.`} ${HOW_TO_RESUME}`,
  )
}
