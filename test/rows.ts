import { join } from 'node:path'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import SqliteDatabase from 'better-sqlite3'
import { foldCase } from '../src/db/fold-case.ts'
import type { Answer, Bound, Question } from './rows-thread.ts'

/** Where an installation's rows are: in a database of this address, or in its folder. */
export type Stored = { dataDir: string; databaseUrl?: string | undefined }

/** Rows of an installation's database, read while its server runs; names as SQL has them. `?` is a value on every database. */
export function readRows<Row extends Record<string, unknown>>(
  { dataDir, databaseUrl }: Stored,
  sql: string,
  ...values: Bound[]
): Row[] {
  if (databaseUrl) return askPostgres({ url: databaseUrl, sql, values, mayWrite: false }).rows.map(withBuffers) as Row[]
  return withSqlite(dataDir, { readonly: true }, (database) => database.prepare<Bound[], Row>(sql).all(...values))
}

/** The tables with rows of ours, sorted; neither the database's own nor those of a search index. */
export function listTables(stored: Stored): string[] {
  const sql = stored.databaseUrl
    ? `select table_name as name from information_schema.tables where table_schema = 'public'`
    : `select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and sql not like '%virtual%'`
  return readRows<{ name: string }>(stored, sql)
    .map(({ name }) => name)
    .sort()
}

/** Those that only requests and work change: not the clock's mark, nor what is measured every hour. */
export function listTablesWithoutClock(stored: Stored): string[] {
  return listTables(stored).filter((name) => name !== 'setting' && name !== 'storage_day')
}

/** Changes rows with or without the server running, by one statement, or several without values. @returns how many the last one changed */
export function changeRows({ dataDir, databaseUrl }: Stored, sql: string, ...values: Bound[]): number {
  if (databaseUrl) return askPostgres({ url: databaseUrl, sql, values, mayWrite: true }).changed
  return withSqlite(dataDir, {}, (database) => {
    if (values.length > 0) return database.prepare(sql).run(...values).changes
    database.exec(sql)
    return database.prepare<[], { changes: number }>('select changes() as changes').get()?.changes ?? 0
  })
}

function withSqlite<T>(dataDir: string, options: SqliteDatabase.Options, work: (database: SqliteDatabase.Database) => T): T {
  const database = new SqliteDatabase(join(dataDir, 'reelgate.db'), options)
  database.function('fold', { deterministic: true }, (text) => foldCase(String(text))) // triggers call it
  try {
    return work(database)
  } finally {
    database.close()
  }
}

/** Bytes cross threads as a plain array of them. */
function withBuffers(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof Uint8Array ? Buffer.from(value) : value]),
  )
}

const PATIENCE_MS = 60_000

let thread: Worker | undefined

/** Waits for another thread's answer, so that tests read rows of both databases alike: in the middle of an expression. */
function askPostgres(question: Omit<Question, 'answered' | 'port'>): Extract<Answer, { rows: unknown }> {
  if (!thread) {
    thread = new Worker(new URL('./rows-thread.ts', import.meta.url))
    thread.unref()
  }
  const answered = new Int32Array(new SharedArrayBuffer(4))
  const { port1: ours, port2: port } = new MessageChannel()
  thread.postMessage({ ...question, answered, port } satisfies Question, [port])
  Atomics.wait(answered, 0, 0, PATIENCE_MS)
  const answer: Answer | undefined = receiveMessageOnPort(ours)?.message
  ours.close()
  if (!answer) throw new Error(`PostgreSQL did not answer within ${PATIENCE_MS} ms: ${question.sql}`)
  if ('error' in answer) throw new Error(`${answer.error}: ${question.sql}`)
  return answer
}
