import { existsSync, rmSync, statSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import { Failure } from '../../errors.ts'
import { MIGRATIONS } from '../sqlite/migrations.ts'
import { KEYS, quoteNames, type Row, type TableName, type Value } from './tables.ts'

/** The database that is moved, read-only. */
export type Source = Disposable & {
  /** Changes with the file: rows that were copied before are then out of date. */
  fingerprint: string
  count(table: TableName): number
  /** In the order of their keys, after the row with the key `last`. */
  rows(table: TableName, columns: readonly string[], last?: readonly Value[]): Iterable<Row>
  listColumns(table: TableName): string[]
  /** The highest number that a table ever assigned to a row; 0 when none is known. */
  highestAssignedId(table: TableName): number
}

/** In the form of PostgreSQL, where a text has its account's id, and is removed with the tombstone. */
const VIDEO_TEXTS = `(select video_text.rowid as rowid, account_id, video_text.id as id, video_text.title as title,
    video_text.file_name as file_name
  from video_text cross join video on video.position = video_text.rowid where deleted_at_s is null)`

const fromClause = (table: TableName) => (table === 'video_text' ? VIDEO_TEXTS : `"${table}"`)

/** @throws Failure when it is not a database of this version */
export function openSource(path: string): Source {
  const connection = new SqliteDatabase(path, { readonly: true })
  const all = <R>(sql: string, ...values: Value[]) => connection.prepare<Value[], R>(sql).all(...values)
  const number = (sql: string, ...values: Value[]) => all<{ number: number }>(sql, ...values)[0]?.number ?? 0
  try {
    assertSameVersion(all<{ name: string }>('select name from kysely_migration').map(({ name }) => name))
  } catch (error) {
    connection.close()
    throw error
  }
  return {
    fingerprint: computeFingerprint(path),
    count: (table) => number(`select count(*) as number from ${fromClause(table)}`),
    rows(table, columns, last = []) {
      const key = quoteNames(KEYS[table])
      const after = last.length > 0 ? `where (${key}) > (${last.map(() => '?').join(', ')})` : ''
      return connection
        .prepare<Value[], Row>(`select ${quoteNames(columns)} from ${fromClause(table)} ${after} order by ${key}`)
        .iterate(...last)
    },
    listColumns: (table) => all<{ name: string }>('select name from pragma_table_info(?)', table).map(({ name }) => name),
    highestAssignedId: (table) => number('select seq as number from sqlite_sequence where name = ?', table),
    [Symbol.dispose]: () => void connection.close(),
  }
}

/** Reading a database in WAL mode creates an empty log next to it. On disposal, files that did not exist before are removed. */
export function removeCreatedLogFiles(path: string): Disposable {
  const created = [`${path}-wal`, `${path}-shm`].filter((file) => !existsSync(file))
  return {
    [Symbol.dispose]() {
      for (const file of created) rmSync(file, { force: true })
    },
  }
}

function assertSameVersion(applied: readonly string[]): void {
  const ours = Object.keys(MIGRATIONS)
  if (applied.length === ours.length && applied.every((migration) => ours.includes(migration))) return
  throw new Failure(
    'conflict',
    'The database was made by another version of Reelgate. Start this version on it once, stop it, and try again.',
  )
}

/** Sizes and times of the database and of its log, if that is not empty. */
function computeFingerprint(path: string): string {
  const files = [path, `${path}-wal`].map((file) => statSync(file, { bigint: true, throwIfNoEntry: false }))
  return files.map((file) => (file?.size ? `${file.size} ${file.mtimeNs}` : '')).join('; ')
}
