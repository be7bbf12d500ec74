import { createHash, type Hash } from 'node:crypto'
import SqliteDatabase from 'better-sqlite3'
import { Failure } from '../../errors.ts'
import { LostConnection, tellable } from '../postgres/failures.ts'
import { nameOf } from '../postgres/refusals.ts'
import { openSource, type Source } from './source.ts'
import { type Columns, type Row, TABLE_NAMES, type TableName } from './tables.ts'
import { openTarget, type Target } from './target.ts'

export type Move = {
  /** The SQLite database, which nobody uses meanwhile. */
  path: string
  /** The PostgreSQL database: empty, or with what an earlier run moved. */
  url: string
  /** What tells this installation from others. */
  installation: string
}

export type Moved = { table: TableName; rows: number; sha256: string }

/** Told how many rows are through, of all that are moved and then compared. */
export type Show = (step: 'moving' | 'comparing', rows: number, of: number) => void

/**
 * Moves every row from SQLite to PostgreSQL, in the order of the keys: what is there tells how far an earlier run came, and this
 * one goes on. The source is only read.
 * @returns what was moved, equal on both sides, and the mark of the database that is now the installation's
 * @throws Failure with what to do; the next run goes on then
 */
export async function moveToPostgres({ path, url, installation }: Move, show: Show): Promise<{ tables: Moved[]; mark: number }> {
  try {
    using source = openSource(path)
    await using target = await openTarget(url)
    await target.begin(installation, source.state)
    const tables = await findTables(source, target)
    await moveAll(source, target, tables, show)
    const moved = await compareAll(source, target, tables, show)
    return { tables: moved, mark: await target.finish(source.highestGiven) }
  } catch (error) {
    throw inWords(error, path, url)
  }
}

type Table = { name: TableName; columns: Columns; count: number }

async function findTables(source: Source, target: Target): Promise<Table[]> {
  const tables: Table[] = []
  for (const name of TABLE_NAMES) {
    const columns = await target.columnsOf(name)
    const left = source.columnsOf(name).find((column) => !columns.some(({ name }) => name === column))
    if (left !== undefined) throw new Error(`the column ${name}.${left} has no place in PostgreSQL`)
    tables.push({ name, columns, count: source.count(name) })
  }
  return tables
}

/** A batch is as large as is quick to send, and small enough for any memory. */
const BATCH_ROWS = 1_000
const BATCH_BYTES = 4 * 2 ** 20

async function moveAll(source: Source, target: Target, tables: readonly Table[], show: Show): Promise<void> {
  const all = sumOf(tables)
  let through = 0
  for (const { name, columns } of tables) {
    const names = columns.map((column) => column.name)
    through += await target.count(name)
    for (const batch of batches(source.rows(name, names, await target.lastKey(name)))) {
      show('moving', through, all)
      await target.add(name, columns, batch)
      through += batch.length
    }
  }
}

function* batches(rows: Iterable<Row>): Generator<Row[]> {
  let batch: Row[] = []
  let sizeBytes = 0
  for (const row of rows) {
    batch.push(row)
    for (const value of Object.values(row)) sizeBytes += typeof value === 'number' ? 8 : (value?.length ?? 0)
    if (batch.length < BATCH_ROWS && sizeBytes < BATCH_BYTES) continue
    yield batch
    batch = []
    sizeBytes = 0
  }
  if (batch.length > 0) yield batch
}

async function compareAll(source: Source, target: Target, tables: readonly Table[], show: Show): Promise<Moved[]> {
  const all = 2 * sumOf(tables)
  let through = 0
  const read = () => {
    if (through++ % BATCH_ROWS === 0) show('comparing', through, all)
  }
  const moved: Moved[] = []
  for (const { name, columns } of tables) {
    const names = columns.map((column) => column.name)
    const before = await summed(source.rows(name, names), names, read)
    const after = await summed(target.rows(name, names), names, read)
    if (before.rows !== after.rows || before.sha256 !== after.sha256) throw new Differs(name, before.rows, after.rows)
    moved.push({ table: name, ...before })
  }
  return moved
}

/** How many rows there are, and the hash of all their values in the order of their keys. */
async function summed(
  rows: Iterable<Row> | AsyncIterable<Row>,
  names: readonly string[],
  read: () => void,
): Promise<{ rows: number; sha256: string }> {
  const hash = createHash('sha256')
  let count = 0
  for await (const row of rows) {
    addTo(hash, row, names)
    count++
    read()
  }
  return { rows: count, sha256: hash.digest('hex') }
}

/** In one form, whichever database a row comes from: bytes are told from text by standing in a list. */
function addTo(hash: Hash, row: Row, names: readonly string[]): void {
  const values = names.map((name) => {
    const value = row[name]
    return Buffer.isBuffer(value) ? [value.toString('base64')] : value
  })
  hash.update(`${JSON.stringify(values)}\n`)
}

function sumOf(tables: readonly Table[]): number {
  return tables.reduce((sum, { count }) => sum + count, 0)
}

class Differs extends Error {
  constructor(table: string, before: number, after: number) {
    super(`the table ${table} came over differently: ${before} rows there, ${after} here`)
  }
}

function inWords(cause: unknown, path: string, url: string): unknown {
  if (cause instanceof Failure) return cause
  const fail = (sentence: string) => new Failure('unavailable', sentence, { cause })
  if (cause instanceof LostConnection)
    return fail(`The connection to ${nameOf(url)} was lost. Run the same command again: it goes on where it was.`)
  if (cause instanceof SqliteDatabase.SqliteError)
    return fail(`The database ${path} cannot be read: ${cause.message}. Restore it from a backup, or correct its permissions.`)
  if (cause instanceof Differs)
    return fail(`${nameOf(url)} is no true copy: ${cause.message}. Move into another, empty database; this one is of no use.`)
  return tellable(cause)
}
