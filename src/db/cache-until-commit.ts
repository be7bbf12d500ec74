import type { Write } from './write.ts'

/** More keys than one installation reads repeatedly. */
const MAX_CACHED = 1_000

/**
 * Caches the results of a read until this process commits a change. No other process writes, so a cached result is what would
 * be read. It reads no appended rows (see `Write`).
 * @param read undefined is never cached, so that guessed keys take no space
 */
export function cachedUntilCommit<Key extends readonly string[], Found>(
  write: Pick<Write, 'commits'>,
  read: (...key: Key) => Promise<Found | undefined>,
): (...key: Key) => Promise<Found | undefined> | Found {
  const cache = new Map<string, Found>()
  let cachedAtCommit = -1

  async function find(name: string, key: Key): Promise<Found | undefined> {
    const readAtCommit = write.commits()
    const found = await read(...key)
    if (found !== undefined && readAtCommit === cachedAtCommit && cache.size < MAX_CACHED) cache.set(name, found)
    return found
  }

  return (...key) => {
    if (write.commits() !== cachedAtCommit) {
      cache.clear()
      cachedAtCommit = write.commits()
    }
    const name = key.join('\0')
    return cache.get(name) ?? find(name, key)
  }
}
