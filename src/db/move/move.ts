import { createHash } from 'node:crypto'
import SqliteDatabase from 'better-sqlite3'
import pg from 'pg'
import { Failure } from '../../errors.ts'
import { redactedUrl, unusable } from '../postgres/connection-errors.ts'
import { LostConnection } from '../postgres/failures.ts'
import { openSource, type Source } from './source.ts'
import { type Columns, type Row, sizeBytesOf, TABLE_NAMES, type TableName } from './tables.ts'
import { openTarget, type Target, type UnfinishedMove } from './target.ts'

export type Move = {
  /** The SQLite database, which nobody uses meanwhile. */
  path: string
  /** The PostgreSQL database: empty, or with what an earlier run moved. */
  url: string
  /** What tells this installation from others. */
  installation: string
}

export type MovedTable = { table: TableName; rows: number; sha256: string }

/** Whoever watches a move. */
export type MoveListener = {
  begun(how: UnfinishedMove): void
  /** How many rows are through this step, of all. */
  show(step: 'moving' | 'comparing' | 'finishing', rows: number, of: number): void
  /** Ends the connection to PostgreSQL, and the move with it. */
  signal: AbortSignal
}

/**
 * Moves every row from SQLite to PostgreSQL, in the order of the keys: what is there tells how far an earlier run came, and this
 * one goes on. The source is only read.
 * @returns what was moved, equal on both sides, and the mark of the database that is now the installation's
 * @throws Failure with what to do; the next run goes on then
 */
export async function moveToPostgres(
  { path, url, installation }: Move,
  watch: MoveListener,
): Promise<{ tables: MovedTable[]; mark: number }> {
  try {
    using source = openSource(path)
    await using target = await openTarget(url)
    watch.signal.addEventListener('abort', () => void target[Symbol.asyncDispose](), { once: true })
    watch.begun(await target.begin(installation, source.state))
    const tables = await findTables(source, target)
    const all = tables.reduce((sum, { count }) => sum + count, 0)
    const shown = (step: Parameters<MoveListener['show']>[0]) => (rows: number) => {
      watch.signal.throwIfAborted()
      watch.show(step, rows, all)
    }
    await moveAll(source, target, tables, shown('moving'))
    const moved = await compareAll(source, target, tables, shown('comparing'))
    shown('finishing')(all)
    return { tables: moved, mark: await target.finish(source.highestGiven) }
  } catch (error) {
    throw watch.signal.aborted ? STOPPED : inWords(error, path, url)
  }
}

type Table = { name: TableName; columns: Columns; names: readonly string[]; count: number }

async function findTables(source: Source, target: Target): Promise<Table[]> {
  const tables: Table[] = []
  for (const name of TABLE_NAMES) {
    const columns = await target.columnsOf(name)
    const names = columns.map((column) => column.name)
    const left = source.columnsOf(name).find((column) => !names.includes(column))
    if (left !== undefined) throw new Error(`the column ${name}.${left} has no place in PostgreSQL`)
    tables.push({ name, columns, names, count: source.count(name) })
  }
  return tables
}

/** A batch is as large as is quick to send, and small enough for any memory. */
const BATCH_ROWS = 1_000
const BATCH_BYTES = 4 * 2 ** 20

async function moveAll(source: Source, target: Target, tables: readonly Table[], show: (rows: number) => void): Promise<void> {
  let through = 0
  for (const { name, columns, names } of tables) {
    through += await target.count(name)
    let adding = Promise.resolve()
    for (const batch of batches(source.rows(name, names, await target.lastKey(name)))) {
      // The next batch is read while this one is on its way, but sent only when it is there: a gap would be noticed by nobody.
      await adding
      show(through)
      adding = target.add(name, columns, batch)
      adding.catch(() => undefined) // heard when it is awaited
      through += batch.length
    }
    await adding
  }
}

function* batches(rows: Iterable<Row>): Generator<Row[], undefined> {
  let batch: Row[] = []
  let sizeBytes = 0
  for (const row of rows) {
    batch.push(row)
    sizeBytes += sizeBytesOf(row)
    if (batch.length < BATCH_ROWS && sizeBytes < BATCH_BYTES) continue
    yield batch
    batch = []
    sizeBytes = 0
  }
  if (batch.length > 0) yield batch
}

async function compareAll(
  source: Source,
  target: Target,
  tables: readonly Table[],
  show: (rows: number) => void,
): Promise<MovedTable[]> {
  const moved: MovedTable[] = []
  let through = 0
  for (const { name, names } of tables) {
    const [before, after] = [summing(names), summing(names)]
    const batchesBefore = batches(source.rows(name, names))
    for await (const page of target.pages(name, names)) {
      show(through)
      after.add(page)
      before.add(batchesBefore.next().value ?? []) // while the next page is on its way
      through += page.length
    }
    for (const batch of batchesBefore) before.add(batch)
    const [sum, sumAfter] = [before.end(), after.end()]
    if (sum.rows !== sumAfter.rows || sum.sha256 !== sumAfter.sha256) throw new Differs(name, sum.rows, sumAfter.rows)
    moved.push({ table: name, ...sum })
  }
  return moved
}

/**
 * How many rows there are, and the hash of all their values in the order of their keys. In one form, whichever database a row comes
 * from: bytes are told from text by standing in a list.
 */
function summing(names: readonly string[]) {
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

class Differs extends Error {
  constructor(table: string, before: number, after: number) {
    super(`the table ${table} came over differently: ${before} rows there, ${after} here`)
  }
}

const GOES_ON = 'Run the same command again: it goes on where it was.'

const STOPPED = new Failure('unavailable', `Stopped: the installation is as it was. ${GOES_ON}`)

function inWords(cause: unknown, path: string, url: string): unknown {
  if (cause instanceof Failure) return cause
  const fail = (sentence: string) => new Failure('unavailable', sentence, { cause })
  if (cause instanceof LostConnection) return fail(`The connection to ${redactedUrl(url)} was lost. ${GOES_ON}`)
  if (cause instanceof SqliteDatabase.SqliteError)
    return fail(`The database ${path} cannot be read: ${cause.message}. Restore it from a backup, or correct its permissions.`)
  if (cause instanceof Differs)
    return fail(
      `${redactedUrl(url)} is no true copy: ${cause.message}. Move into another, empty database; this one is of no use.`,
    )
  if (!(cause instanceof pg.DatabaseError)) return cause
  const told = unusable(url, cause)
  return fail(`${told instanceof Failure ? told.message : `${redactedUrl(url)} refused it: ${cause.message}.`} ${GOES_ON}`)
}
