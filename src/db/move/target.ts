import { Failure } from '../../errors.ts'
import { HIGH_WATER_MARK } from '../high-water-mark.ts'
import { redactedUrl } from '../postgres/connection-errors.ts'
import { migrateOnSingleConnection, openSingleConnection } from '../postgres/database.ts'
import { UNFINISHED_MOVE_TABLE } from '../postgres/location.ts'
import { rows, tableExists } from '../postgres/probe.ts'
import { type Columns, KEYS, list, type Row, sizeBytesOf, TABLE_NAMES, type TableName, type Value } from './tables.ts'

/** Anew: what an earlier run moved was removed, for the source has changed since. */
export type UnfinishedMove = 'first' | 'on' | 'anew'

/** The database that is moved into. */
export type Target = AsyncDisposable & {
  /**
   * Makes the tables, or goes on with those that an earlier move of the same installation began.
   * @throws Failure `conflict` when anything else is in the database; nothing is changed then
   */
  begin(installation: string, state: string): Promise<UnfinishedMove>
  columnsOf(table: TableName): Promise<Columns>
  /** The key of the last row that came; empty when there is none. */
  lastKey(table: TableName): Promise<Value[]>
  count(table: TableName): Promise<number>
  add(table: TableName, columns: Columns, rows: readonly Row[]): Promise<void>
  /** All rows, in the order of their keys; the next page is asked for while its asker looks at one. */
  pages(table: TableName, columns: readonly string[]): AsyncIterable<Row[]>
  /**
   * Makes it a database that a server may use, whose next row of a table gets a number above `highestGiven`.
   * @returns its mark, which is ahead of the source's: a server starts on one of them alone
   */
  finish(highestGiven: (table: TableName) => number): Promise<number>
}

/** Rows that are read at once: few at first, then as many as have this size. */
const FIRST_PAGE = 50
const LARGEST_PAGE = 1_000
const PAGE_BYTES = 2 ** 20

/** As the database's one server: neither another nor a second move works on it meanwhile. */
export async function openTarget(url: string): Promise<Target> {
  const connection = await openSingleConnection(url) // its loss is the end of this run: the next one goes on

  const all = <R>(sql: string, ...values: unknown[]) => rows<R>(connection, sql, ...values)

  async function inTransaction(work: () => Promise<void>): Promise<void> {
    await all('begin')
    await work()
    await all('commit')
  }

  async function begin(installation: string, state: string): Promise<UnfinishedMove> {
    const isThere = await tableExists(connection, UNFINISHED_MOVE_TABLE)
    if (!isThere) {
      await refuseOccupied()
      await inTransaction(async () => {
        await all(`create table ${UNFINISHED_MOVE_TABLE} (installation text not null, state text not null)`)
        await all(`insert into ${UNFINISHED_MOVE_TABLE} values ($1, $2)`, installation, state)
      })
    }
    const [begun] = await all<{ installation: string; state: string }>(`select * from ${UNFINISHED_MOVE_TABLE}`)
    if (begun?.installation !== installation)
      throw new Failure(
        'conflict',
        `${redactedUrl(url)} holds the beginnings of another installation’s move. Finish that one, or name an empty database. Nothing was changed.`,
      )
    await migrateOnSingleConnection(url)
    await inTransaction(async () => {
      if (begun.state !== state) await all(`truncate ${list(TABLE_NAMES)}`)
      await all(`update ${UNFINISHED_MOVE_TABLE} set state = $1`, state)
      // Counters and what is searched for come as they are.
      for (const table of TABLE_NAMES) await all(`alter table "${table}" disable trigger user`)
    })
    // What a crash of PostgreSQL takes is the last of the rows, and the next run brings it.
    await all('set synchronous_commit = off')
    if (!isThere) return 'first'
    return begun.state === state ? 'on' : 'anew'
  }

  async function refuseOccupied(): Promise<void> {
    const [other] = await all<{ name: string }>(OTHERS)
    if (other)
      throw new Failure(
        'conflict',
        `${redactedUrl(url)} is not empty: it has ${other.name}. Make an empty database and name that one. Nothing was changed.`,
      )
  }

  async function columnsOf(table: TableName): Promise<Columns> {
    return all(
      `select column_name as name, data_type as type from information_schema.columns
        where table_schema = current_schema() and table_name = $1 order by ordinal_position`,
      table,
    )
  }

  async function* pages(table: TableName, columns: readonly string[]): AsyncGenerator<Row[]> {
    const key = list(KEYS[table])
    const read = (limit: number, last: readonly Value[] = []) => {
      const behind = last.length > 0 ? `where (${key}) > (${last.map((_, i) => `$${i + 2}`).join(', ')})` : ''
      const page = all<Row>(`select ${list(columns)} from "${table}" ${behind} order by ${key} limit $1`, limit, ...last)
      page.catch(() => undefined) // heard when it is awaited
      return page
    }
    let next = read(FIRST_PAGE)
    for (;;) {
      const page = await next
      const last = page.at(-1)
      if (!last) return
      const rowBytes = page.reduce((sum, row) => sum + sizeBytesOf(row), 0) / page.length
      next = read(Math.ceil(Math.min(LARGEST_PAGE, PAGE_BYTES / rowBytes)), keyOf(table, last))
      yield page
    }
  }

  async function finish(highestGiven: (table: TableName) => number): Promise<number> {
    await all(`vacuum (analyze) ${list(TABLE_NAMES)}`)
    await all('set synchronous_commit = on')
    let mark = 0
    await inTransaction(async () => {
      for (const table of TABLE_NAMES) await all(`alter table "${table}" enable trigger user`)
      const numbered = await all<{ table: TableName; column: string }>(NUMBERED_COLUMNS)
      for (const { table, column } of numbered)
        await all(
          `select setval(pg_get_serial_sequence($1, $2), greatest(highest, 1), highest > 0)
            from (select greatest(max("${column}"), $3::bigint) as highest from "${table}") as given`,
          table,
          column,
          highestGiven(table),
        )
      const [clock] = await all<{ value: string }>(
        `insert into setting values ($1, '1')
          on conflict (name) do update set value = (setting.value::bigint + 1)::text returning value`,
        HIGH_WATER_MARK,
      )
      mark = Number(clock?.value ?? 0)
      await all(`drop table ${UNFINISHED_MOVE_TABLE}`)
    })
    return mark
  }

  return {
    begin,
    columnsOf,
    async lastKey(table) {
      const key = KEYS[table]
      const [row] = await all<Row>(
        `select ${list(key)} from "${table}" order by ${key.map((column) => `"${column}" desc`).join(', ')} limit 1`,
      )
      return row ? keyOf(table, row) : []
    },
    count: async (table) => (await all<{ number: number }>(`select count(*) as number from "${table}"`))[0]?.number ?? 0,
    async add(table, columns, rows) {
      const arrays = columns.map(({ type }, i) => `$${i + 1}::${type}[]`).join(', ')
      const names = columns.map(({ name }) => name)
      const values = names.map((name) => rows.map((row) => row[name]))
      await all(`insert into "${table}" (${list(names)}) select * from unnest(${arrays})`, ...values)
    },
    pages,
    finish,
    [Symbol.asyncDispose]: () => connection.close(),
  }
}

function keyOf(table: TableName, row: Row): Value[] {
  return KEYS[table].map((column) => row[column] ?? null)
}

/** Of any schema and kind that could be in the way, but none that an extension brought. */
const OTHERS = `select format('%I.%I', nspname, name) as name from (
    select oid, relnamespace as schema, relname as name from pg_class where relkind in ('r', 'p', 'v', 'm', 'f', 'S', 'c')
    union all select oid, pronamespace, proname from pg_proc
    union all select oid, typnamespace, typname from pg_type where typtype in ('e', 'd', 'r')
  ) as object join pg_namespace on pg_namespace.oid = schema
  where nspname <> 'information_schema' and nspname not like 'pg\\_%'
    and not exists (select from pg_depend where objid = object.oid and deptype = 'e')
  order by 1 limit 1`

const NUMBERED_COLUMNS = `select table_name as table, column_name as column from information_schema.columns
  where table_schema = current_schema() and is_identity = 'YES'`
