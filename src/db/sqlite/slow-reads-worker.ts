import { parentPort, workerData } from 'node:worker_threads'
import SqliteDatabase from 'better-sqlite3'
import { cacheStatements } from './statements.ts'

// The thread of slow-reads.ts: receives statements and sends their rows, one statement at a time.

export type SlowRead = { id: number; sql: string; parameters: readonly unknown[] }
export type SlowReadResult = { id: number; rows: Record<string, unknown>[] } | { id: number; error: unknown }

const connection = cacheStatements(new SqliteDatabase(workerData.path, { readonly: true }))

parentPort?.on('message', ({ id, sql, parameters }: SlowRead) => {
  parentPort?.postMessage(runRead(id, sql, parameters))
})

function runRead(id: number, sql: string, parameters: readonly unknown[]): SlowReadResult {
  try {
    return { id, rows: connection.prepare(sql).all(parameters) as Record<string, unknown>[] }
  } catch (error) {
    return { id, error }
  }
}
