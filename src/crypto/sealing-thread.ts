import { Worker } from 'node:worker_threads'
import { countBlockForGc } from './minor-gc.ts'
import type { SealBlock, SealedBlock } from './sealing-worker.ts'

let thread: ReturnType<typeof startThread> | undefined

/**
 * Seals a block on the one thread for that, which the first block starts: encrypting and hashing take as long as receiving, and their buffers
 * would have the main thread collect garbage for as long again.
 */
export async function sealOnThread(block: SealBlock): Promise<SealedBlock> {
  thread ??= startThread()
  countBlockForGc()
  return thread.seal(block)
}

function startThread() {
  const worker = new Worker(new URL('./sealing-worker.ts', import.meta.url))
  const pending = new Map<number, PromiseWithResolvers<SealedBlock>>()
  let nextId = 0
  worker.unref()
  worker.on('message', ({ id, sealed }: { id: number; sealed: SealedBlock }) => {
    pending.get(id)?.resolve(sealed)
    pending.delete(id)
    if (pending.size === 0) worker.unref()
  })
  const started = { seal }
  function fail(error: Error) {
    if (thread === started) thread = undefined // its end is reported twice, and another may have been started in between
    for (const call of pending.values()) call.reject(error)
    pending.clear()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('the thread that seals files has ended')))

  function seal(block: SealBlock): Promise<SealedBlock> {
    const id = nextId++
    const call = Promise.withResolvers<SealedBlock>()
    pending.set(id, call)
    worker.ref()
    worker.postMessage({ id, block })
    return call.promise
  }
  return started
}
