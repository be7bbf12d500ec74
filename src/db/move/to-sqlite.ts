import SqliteDatabase from 'better-sqlite3'
import { type Connection, openConnection } from '../postgres/connection.ts'
import { retryUntilReachable, rows, tableExists } from '../postgres/probe.ts'
import { createTables } from '../sqlite/database.ts'
import { makeSingleFile } from '../sqlite/snapshot.ts'
import { listColumns, readPages } from './postgres-rows.ts'
import { quoteNames, type Row, TABLE_NAMES, type TableName } from './tables.ts'

/**
 * Writes all rows of a PostgreSQL database, as of one moment, to a new SQLite file with the same tables. A server may use the
 * database meanwhile.
 * @throws Failure `unavailable` when the database cannot be reached; LostConnection when it is lost meanwhile
 */
export async function writePostgresSnapshot(url: string, target: string): Promise<void> {
  const connection = openConnection({ url, settings: { default_transaction_read_only: 'on' } })
  try {
    await retryUntilReachable(url, connection.hold) // not replaced when it is lost: another one would see another moment
    await rows(connection, 'begin transaction isolation level repeatable read')
    const migrations = await rows<{ name: string }>(connection, 'select name from kysely_migration')
    await createTables(
      target,
      migrations.map(({ name }) => name),
    )
    await copyTables(connection, target)
    await rows(connection, 'commit')
  } finally {
    await connection.close()
  }
  makeSingleFile(target)
}

async function copyTables(connection: Connection, target: string): Promise<void> {
  const copy = new SqliteDatabase(target)
  try {
    copy.pragma('foreign_keys = OFF') // tables refer to each other in both directions of their order
    copy.pragma('synchronous = OFF') // made durable at the end
    const triggers = copy
      .prepare<[], { name: string; sql: string }>("select name, sql from sqlite_master where type = 'trigger'")
      .all()
    for (const { name } of triggers) copy.exec(`drop trigger "${name}"`) // counters and search texts are copied as they are
    for (const table of TABLE_NAMES) if (await tableExists(connection, table)) await copyTable(connection, copy, table)
    await copyIdentities(connection, copy)
    for (const { sql } of triggers) copy.exec(sql)
  } finally {
    copy.close()
  }
}

async function copyTable(connection: Connection, copy: SqliteDatabase.Database, table: TableName): Promise<void> {
  copy.exec(`delete from "${table}"`)
  const inSqlite = copy.prepare<[string], { name: string }>('select name from pragma_table_info(?)').all(table)
  const wanted = new Set([...inSqlite.map(({ name }) => name), ...(table === 'video_text' ? ['rowid'] : [])])
  const names = (await listColumns(connection, table)).map(({ name }) => name).filter((name) => wanted.has(name))
  const insert = copy.prepare(`insert into "${table}" (${quoteNames(names)}) values (${names.map(() => '?').join(', ')})`)
  const insertPage = copy.transaction((page: readonly Row[]) => {
    for (const row of page) insert.run(names.map((name) => row[name]))
  })
  for await (const page of readPages(connection, table, names)) insertPage(page)
}

/** A number that PostgreSQL has assigned is not assigned again, whether its row still exists or not. */
async function copyIdentities(connection: Connection, copy: SqliteDatabase.Database): Promise<void> {
  const columns = await rows<{ table: string; sequence: string }>(
    connection,
    `select table_name as table, pg_get_serial_sequence(table_name, column_name) as sequence from information_schema.columns
      where table_schema = current_schema() and is_identity = 'YES'`,
  )
  const find = copy.prepare<[string], { seq: number }>('select seq from sqlite_sequence where name = ?')
  for (const { table, sequence } of columns) {
    const [last] = await rows<{ value: number }>(
      connection,
      `select case when is_called then last_value else 0 end as value from ${sequence}`,
    )
    const value = Math.max(last?.value ?? 0, find.get(table)?.seq ?? 0)
    copy.prepare('delete from sqlite_sequence where name = ?').run(table)
    copy.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(table, value)
  }
}
