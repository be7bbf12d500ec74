import { Failure } from '../../errors.ts'
import { HIGH_WATER_MARK } from '../high-water-mark.ts'
import type { Connection } from '../postgres/connection.ts'
import { redactedUrl } from '../postgres/connection-errors.ts'
import { migrateOnSingleConnection, openSingleConnection } from '../postgres/database.ts'
import { UNFINISHED_MOVE_TABLE } from '../postgres/location.ts'
import { rows, tableExists } from '../postgres/probe.ts'
import { keyValues, listColumns, readPages } from './postgres-rows.ts'
import { type Columns, KEYS, quoteNames, type Row, TABLE_NAMES, type TableName, type Value } from './tables.ts'

/** Restarted: the source has changed since an earlier run, so the rows that it moved were removed. */
export type MoveStart = 'new' | 'resumed' | 'restarted'

/** Which installation is moved, and the state of its database (`Source.fingerprint`). */
type MoveSource = { installation: string; fingerprint: string }

/** The database that is moved into. */
export type Target = AsyncDisposable & {
  /**
   * Creates the tables, or resumes with those that an earlier move of the same installation created.
   * @throws Failure `conflict` when anything else is in the database; nothing is changed then
   */
  begin(source: MoveSource): Promise<MoveStart>
  listColumns(table: TableName): Promise<Columns>
  /** The key of the last row that was inserted; empty when there is none. */
  lastKey(table: TableName): Promise<Value[]>
  count(table: TableName): Promise<number>
  insert(table: TableName, columns: Columns, rows: readonly Row[]): Promise<void>
  /** All rows, in the order of their keys; the next page is read while the caller handles one. */
  pages(table: TableName, columns: readonly string[]): AsyncIterable<Row[]>
  /**
   * Turns it into a database that a server may use. The next row of a table gets a number above `highestAssignedId`.
   * @returns its high-water mark, which is ahead of the source's: a server starts on only one of the two
   */
  finish(highestAssignedId: (table: TableName) => number): Promise<number>
}

/** As the database's only server: meanwhile neither a server nor a second move can use it. A lost connection ends the run. */
export async function openTarget(url: string): Promise<Target> {
  const connection = await openSingleConnection(url)
  return {
    begin: (source) => begin(connection, url, source),
    listColumns: (table) => listColumns(connection, table),
    lastKey: (table) => findLastKey(connection, table),
    async count(table) {
      const [row] = await rows<{ number: number }>(connection, `select count(*) as number from "${table}"`)
      return row?.number ?? 0
    },
    insert: (table, columns, batch) => insertRows(connection, table, columns, batch),
    pages: (table, columns) => readPages(connection, table, columns),
    finish: (highestAssignedId) => finish(connection, highestAssignedId),
    [Symbol.asyncDispose]: () => connection.close(),
  }
}

async function begin(connection: Connection, url: string, { installation, fingerprint }: MoveSource): Promise<MoveStart> {
  const isBegun = await tableExists(connection, UNFINISHED_MOVE_TABLE)
  if (!isBegun) {
    await assertEmpty(connection, url)
    await inTransaction(connection, async () => {
      await rows(connection, `create table ${UNFINISHED_MOVE_TABLE} (installation text not null, fingerprint text not null)`)
      await rows(connection, `insert into ${UNFINISHED_MOVE_TABLE} values ($1, $2)`, installation, fingerprint)
    })
  }
  const [begun] = await rows<MoveSource>(connection, `select * from ${UNFINISHED_MOVE_TABLE}`)
  if (begun?.installation !== installation)
    throw new Failure(
      'conflict',
      `${redactedUrl(url)} contains the unfinished move of another installation. Finish that one, or name an empty database. Nothing was changed.`,
    )
  await migrateOnSingleConnection(url)
  await inTransaction(connection, async () => {
    if (begun.fingerprint !== fingerprint) await rows(connection, `truncate ${quoteNames(TABLE_NAMES)}`)
    await rows(connection, `update ${UNFINISHED_MOVE_TABLE} set fingerprint = $1`, fingerprint)
    // Counters and search texts are copied as they are.
    for (const table of TABLE_NAMES) await rows(connection, `alter table "${table}" disable trigger user`)
  })
  // A crash of PostgreSQL loses only the last rows, and the next run copies them again.
  await rows(connection, 'set synchronous_commit = off')
  if (!isBegun) return 'new'
  return begun.fingerprint === fingerprint ? 'resumed' : 'restarted'
}

async function assertEmpty(connection: Connection, url: string): Promise<void> {
  const [other] = await rows<{ name: string }>(connection, FIRST_FOREIGN_OBJECT)
  if (other)
    throw new Failure(
      'conflict',
      `${redactedUrl(url)} is not empty: it has ${other.name}. Make an empty database and name that one. Nothing was changed.`,
    )
}

async function findLastKey(connection: Connection, table: TableName): Promise<Value[]> {
  const key = KEYS[table]
  const order = key.map((column) => `"${column}" desc`).join(', ')
  const [row] = await rows<Row>(connection, `select ${quoteNames(key)} from "${table}" order by ${order} limit 1`)
  return row ? keyValues(key, row) : []
}

async function insertRows(connection: Connection, table: TableName, columns: Columns, batch: readonly Row[]): Promise<void> {
  const arrays = columns.map(({ type }, i) => `$${i + 1}::${type}[]`).join(', ')
  const names = columns.map(({ name }) => name)
  const values = names.map((name) => batch.map((row) => row[name]))
  await rows(connection, `insert into "${table}" (${quoteNames(names)}) select * from unnest(${arrays})`, ...values)
}

async function finish(connection: Connection, highestAssignedId: (table: TableName) => number): Promise<number> {
  await rows(connection, `vacuum (analyze) ${quoteNames(TABLE_NAMES)}`)
  await rows(connection, 'set synchronous_commit = on')
  let highWaterMark = 0
  await inTransaction(connection, async () => {
    for (const table of TABLE_NAMES) await rows(connection, `alter table "${table}" enable trigger user`)
    const identityColumns = await rows<{ table: TableName; column: string }>(connection, IDENTITY_COLUMNS)
    for (const { table, column } of identityColumns)
      await rows(
        connection,
        `select setval(pg_get_serial_sequence($1, $2), greatest(highest, 1), highest > 0)
          from (select greatest(max("${column}"), $3::bigint) as highest from "${table}") as assigned`,
        table,
        column,
        highestAssignedId(table),
      )
    const [setting] = await rows<{ value: string }>(
      connection,
      `insert into setting values ($1, '1')
        on conflict (name) do update set value = (setting.value::bigint + 1)::text returning value`,
      HIGH_WATER_MARK,
    )
    highWaterMark = Number(setting?.value ?? 0)
    await rows(connection, `drop table ${UNFINISHED_MOVE_TABLE}`)
  })
  return highWaterMark
}

async function inTransaction(connection: Connection, work: () => Promise<void>): Promise<void> {
  await rows(connection, 'begin')
  await work()
  await rows(connection, 'commit')
}

/** The first object of any schema and kind that could conflict with our tables; those of extensions do not count. */
const FIRST_FOREIGN_OBJECT = `select format('%I.%I', nspname, name) as name from (
    select oid, relnamespace as schema, relname as name from pg_class where relkind in ('r', 'p', 'v', 'm', 'f', 'S', 'c')
    union all select oid, pronamespace, proname from pg_proc
    union all select oid, typnamespace, typname from pg_type where typtype in ('e', 'd', 'r')
  ) as object join pg_namespace on pg_namespace.oid = schema
  where nspname <> 'information_schema' and nspname not like 'pg\\_%'
    and not exists (select from pg_depend where objid = object.oid and deptype = 'e')
  order by 1 limit 1`

const IDENTITY_COLUMNS = `select table_name as table, column_name as column from information_schema.columns
  where table_schema = current_schema() and is_identity = 'YES'`
