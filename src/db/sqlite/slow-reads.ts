import { Worker } from 'node:worker_threads'
import type { CompiledQuery, Kysely } from 'kysely'
import { MAX_WAITING_READS, tooManySearches } from '../database.ts'
import type { Tables } from '../tables.ts'
import { createSqliteKysely } from './dialect.ts'
import type { SlowRead, SlowReadResult } from './slow-reads-worker.ts'

/** Kysely whose statements run in a worker thread, on a read-only connection: SQLite blocks the thread that runs a statement. */
export function openSlowReads(path: string): Kysely<Tables> {
  let thread: ReturnType<typeof startThread> | undefined

  // Started by the first slow read: many installations never have one.
  async function executeQuery<R>({ sql, parameters }: CompiledQuery) {
    thread ??= start()
    return { rows: (await thread.read(sql, parameters)) as R[] }
  }

  function start() {
    const started = startThread(path, () => {
      if (thread === started) thread = undefined // its end is reported twice, and another may have been started in between
    })
    return started
  }

  return createSqliteKysely(executeQuery, async () => void (await thread?.stop()))
}

function startThread(path: string, onEnd: () => void) {
  const worker = new Worker(new URL('./slow-reads-worker.ts', import.meta.url), { workerData: { path } })
  const pending = new Map<number, PromiseWithResolvers<unknown[]>>()
  let nextId = 0
  worker.unref()
  worker.on('message', (result: SlowReadResult) => {
    const call = pending.get(result.id)
    pending.delete(result.id)
    if ('rows' in result) call?.resolve(result.rows.map(withBuffers))
    else call?.reject(result.error)
  })
  function fail(error: Error) {
    onEnd()
    for (const call of pending.values()) call.reject(error)
    pending.clear()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('the thread of slow reads has ended')))

  function read(sql: string, parameters: readonly unknown[]): Promise<unknown[]> {
    if (pending.size >= MAX_WAITING_READS) return Promise.reject(tooManySearches())
    const id = nextId++
    const call = Promise.withResolvers<unknown[]>()
    pending.set(id, call)
    const message: SlowRead = { id, sql, parameters }
    worker.postMessage(message)
    return call.promise
  }
  return { read, stop: () => worker.terminate() }
}

/** A `Buffer` arrives from another thread as a plain `Uint8Array`. */
function withBuffers(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row))
    if (value instanceof Uint8Array) row[name] = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return row
}
