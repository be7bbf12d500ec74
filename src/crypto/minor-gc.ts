import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

let collect: ((options: { type: 'minor' }) => void) | undefined

/** So many MiB are read and written between two collections. */
const COLLECT_EVERY = 4
let blocks = 0

/**
 * Frees buffers that have been read and written; called by a thread for each MiB. V8 lets 64 MiB of them accumulate before it collects,
 * because it counts only their small handles. An occasional scavenge takes about a millisecond, and saves more processor time than it costs.
 */
export function countBlockForGc(): void {
  blocks = (blocks + 1) % COLLECT_EVERY
  if (blocks > 0) return
  if (!collect) {
    setFlagsFromString('--expose-gc') // only contexts created after this have it
    collect = runInNewContext('gc')
  }
  collect?.({ type: 'minor' })
}
