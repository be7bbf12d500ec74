import type { Signals } from './signals.ts'

/** More keys than one installation reads repeatedly. */
const MAX_CACHED = 1_000
/** A change by another process is seen after this at the latest, also when its signal is lost. */
const MAX_AGE_MS = 1_000

/** `servers`: of the database. */
export type CacheDeps = { signals: Pick<Signals, 'on'>; servers: { mayOthersAnswer(): boolean } }

/**
 * Caches the results of a read of rows until they may have changed: see 'account-changed'. What this process commits is seen by the next
 * call, and so is what another server commits: where there is one, nothing is cached.
 * @param read undefined is never cached, so that guessed keys take no space
 */
export function cachedRows<Key extends readonly string[], Found>(
  { signals, servers }: CacheDeps,
  read: (...key: Key) => Promise<Found | undefined>,
  nowMs: () => number = () => performance.now(),
): (...key: Key) => Promise<Found | undefined> | Found {
  const cache = new Map<string, { found: Found; readAtMs: number }>()
  let changes = 0
  signals.on('account-changed', () => {
    changes++
    cache.clear()
  })

  async function find(name: string, key: Key): Promise<Found | undefined> {
    const [readAtMs, readAtChange] = [nowMs(), changes]
    const found = await read(...key)
    if (readAtChange !== changes) return found // it may be from before the change
    if (cache.size >= MAX_CACHED) cache.clear()
    if (found === undefined) cache.delete(name)
    else cache.set(name, { found, readAtMs })
    return found
  }

  return (...key) => {
    if (servers.mayOthersAnswer()) return read(...key)
    const name = key.join('\0')
    const cached = cache.get(name)
    return cached && nowMs() - cached.readAtMs < MAX_AGE_MS ? cached.found : find(name, key)
  }
}
