import type { Connection } from '../postgres/connection.ts'
import { rows } from '../postgres/probe.ts'
import { type Columns, KEYS, quoteNames, type Row, rowSizeBytes, type TableName, type Value } from './tables.ts'

export async function listColumns(connection: Connection, table: TableName): Promise<Columns> {
  return rows(
    connection,
    `select column_name as name, data_type as type from information_schema.columns
      where table_schema = current_schema() and table_name = $1 order by ordinal_position`,
    table,
  )
}

/** Rows of a page: few at first, then as many as have `PAGE_BYTES`. */
const FIRST_PAGE_ROWS = 50
const MAX_PAGE_ROWS = 1_000
const PAGE_BYTES = 2 ** 20

/**
 * All rows, in the order of their keys; the next page is read while the caller handles one. A table of an earlier version, which is
 * backed up before an upgrade, may lack columns that its key has got since; the others were its key.
 */
export async function* readPages(connection: Connection, table: TableName, columns: readonly string[]): AsyncGenerator<Row[]> {
  const keyColumns = KEYS[table].filter((name) => columns.includes(name))
  const key = quoteNames(keyColumns)
  const read = (limit: number, last: readonly Value[] = []) => {
    const after = last.length > 0 ? `where (${key}) > (${last.map((_, i) => `$${i + 2}`).join(', ')})` : ''
    const statement = `select ${quoteNames(columns)} from "${table}" ${after} order by ${key} limit $1`
    const page = rows<Row>(connection, statement, limit, ...last)
    page.catch(() => undefined) // the error is thrown where the page is awaited
    return page
  }
  let next = read(FIRST_PAGE_ROWS)
  for (;;) {
    const page = await next
    const last = page.at(-1)
    if (!last) return
    const meanRowBytes = page.reduce((sum, row) => sum + rowSizeBytes(row), 0) / page.length
    next = read(Math.ceil(Math.min(MAX_PAGE_ROWS, PAGE_BYTES / meanRowBytes)), keyValues(keyColumns, last))
    yield page
  }
}

export function keyValues(key: readonly string[], row: Row): Value[] {
  return key.map((column) => row[column] ?? null)
}
