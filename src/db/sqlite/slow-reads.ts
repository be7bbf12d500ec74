import { Worker } from 'node:worker_threads'
import type { CompiledQuery, Kysely } from 'kysely'
import { Failure } from '../../errors.ts'
import type { Tables } from '../tables.ts'
import { createSqliteKysely } from './dialect.ts'
import type { SlowRead, SlowReadResult } from './slow-reads-worker.ts'

/** Reads that may wait for the thread; more would only be answered after their askers have gone. */
const MAX_WAITING = 500

/** Kysely whose statements run in a worker thread, on a connection that cannot write: SQLite holds up the thread it thinks in. */
export function openSlowReads(path: string): Kysely<Tables> {
  let thread: ReturnType<typeof startThread> | undefined

  // Started by the first slow read: many installations never have one.
  async function executeQuery<R>({ sql, parameters }: CompiledQuery) {
    thread ??= begin()
    return { rows: (await thread.ask(sql, parameters)) as R[] }
  }

  function begin() {
    const begun = startThread(path, () => {
      if (thread === begun) thread = undefined // its end is told twice, and another may have begun in between
    })
    return begun
  }

  return createSqliteKysely(executeQuery, async () => void (await thread?.stop()))
}

function startThread(path: string, ended: () => void) {
  const worker = new Worker(new URL('./slow-reads-worker.ts', import.meta.url), { workerData: { path } })
  const waiting = new Map<number, PromiseWithResolvers<unknown[]>>()
  let asked = 0
  worker.unref()
  worker.on('message', (answer: SlowReadResult) => {
    const asker = waiting.get(answer.id)
    waiting.delete(answer.id)
    if ('rows' in answer) asker?.resolve(answer.rows.map(withBuffers))
    else asker?.reject(answer.error)
  })
  function fail(error: Error) {
    ended()
    for (const asker of waiting.values()) asker.reject(error)
    waiting.clear()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('the thread of slow reads has ended')))

  function ask(sql: string, parameters: readonly unknown[]): Promise<unknown[]> {
    if (waiting.size >= MAX_WAITING)
      return Promise.reject(new Failure('unavailable', 'Too many searches wait already. Try again in a moment.'))
    const id = asked++
    const asker = Promise.withResolvers<unknown[]>()
    waiting.set(id, asker)
    const question: SlowRead = { id, sql, parameters }
    worker.postMessage(question)
    return asker.promise
  }
  return { ask, stop: () => worker.terminate() }
}

/** Bytes cross threads as a plain array of them. */
function withBuffers(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row))
    if (value instanceof Uint8Array) row[name] = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return row
}
