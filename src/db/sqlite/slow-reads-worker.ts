import { parentPort, workerData } from 'node:worker_threads'
import SqliteDatabase from 'better-sqlite3'
import { cacheStatements } from './statements.ts'

// The thread of slow-reads.ts: a statement in, its rows out, one at a time.

export type SlowRead = { id: number; sql: string; parameters: readonly unknown[] }
export type SlowReadResult = { id: number; rows: Record<string, unknown>[] } | { id: number; error: unknown }

const connection = cacheStatements(new SqliteDatabase(workerData.path, { readonly: true }))

parentPort?.on('message', ({ id, sql, parameters }: SlowRead) => {
  parentPort?.postMessage(answer(id, sql, parameters))
})

function answer(id: number, sql: string, parameters: readonly unknown[]): SlowReadResult {
  try {
    return { id, rows: connection.prepare(sql).all(parameters) as Record<string, unknown>[] }
  } catch (error) {
    return { id, error }
  }
}
