import { existsSync, rmSync, statSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import { Failure } from '../../errors.ts'
import { MIGRATIONS } from '../sqlite/migrations.ts'
import { KEYS, list, type Row, type TableName, type Value } from './tables.ts'

/** The database that is left, read-only. */
export type Source = Disposable & {
  /** Changes with the file: what was taken before is of no use then. */
  state: string
  count(table: TableName): number
  /** In the order of their keys, from behind the row with the key `last`. */
  rows(table: TableName, columns: readonly string[], last?: readonly Value[]): Iterable<Row>
  columnsOf(table: TableName): string[]
  /** The highest number that a table ever gave a row; 0 when nothing tells. */
  highestGiven(table: TableName): number
}

/** What PostgreSQL keeps otherwise: a text has its account beside it, and goes with the tombstone. */
const VIDEO_TEXTS = `(select video_text.rowid as rowid, account_id, video_text.id as id, video_text.title as title,
    video_text.file_name as file_name
  from video_text cross join video on video.position = video_text.rowid where deleted_at_s is null)`

const read = (table: TableName) => (table === 'video_text' ? VIDEO_TEXTS : `"${table}"`)

/** @throws Failure when it is not a database of this version */
export function openSource(path: string): Source {
  const connection = new SqliteDatabase(path, { readonly: true })
  const all = <R>(sql: string, ...values: Value[]) => connection.prepare<Value[], R>(sql).all(...values)
  const number = (sql: string, ...values: Value[]) => all<{ number: number }>(sql, ...values)[0]?.number ?? 0
  try {
    refuseOtherVersion(all<{ name: string }>('select name from kysely_migration').map(({ name }) => name))
  } catch (error) {
    connection.close()
    throw error
  }
  return {
    state: stateOf(path),
    count: (table) => number(`select count(*) as number from ${read(table)}`),
    rows(table, columns, last = []) {
      const key = list(KEYS[table])
      const behind = last.length > 0 ? `where (${key}) > (${last.map(() => '?').join(', ')})` : ''
      return connection
        .prepare<Value[], Row>(`select ${list(columns)} from ${read(table)} ${behind} order by ${key}`)
        .iterate(...last)
    },
    columnsOf: (table) => all<{ name: string }>('select name from pragma_table_info(?)', table).map(({ name }) => name),
    highestGiven: (table) => number('select seq as number from sqlite_sequence where name = ?', table),
    [Symbol.dispose]: () => void connection.close(),
  }
}

/** Whoever looks at a database with a log (WAL) leaves an empty one beside it. What the folder did not have goes again. */
export function withoutLeftoverLog(path: string): Disposable {
  const made = [`${path}-wal`, `${path}-shm`].filter((file) => !existsSync(file))
  return {
    [Symbol.dispose]() {
      for (const file of made) rmSync(file, { force: true })
    },
  }
}

function refuseOtherVersion(steps: readonly string[]): void {
  const ours = Object.keys(MIGRATIONS)
  if (steps.length === ours.length && steps.every((step) => ours.includes(step))) return
  throw new Failure(
    'conflict',
    'The installation is of another version of Reelgate. Start this version on it once, stop it, and try again.',
  )
}

/** Sizes and times of the database and of its log, where that holds anything. */
function stateOf(path: string): string {
  const files = [path, `${path}-wal`].map((file) => statSync(file, { bigint: true, throwIfNoEntry: false }))
  return files.map((file) => (file?.size ? `${file.size} ${file.mtimeNs}` : '')).join('; ')
}
