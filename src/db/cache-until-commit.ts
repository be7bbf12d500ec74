import type { Write } from './write.ts'

/** More than one installation asks for again and again. */
const MAX_REMEMBERED = 1_000

/**
 * A read whose findings are kept until this process commits a change, which alone writes: what is remembered is what would be read.
 * @param read undefined is never remembered, so that strangers' guesses take no place
 */
export function cachedUntilCommit<Found>(
  write: Pick<Write, 'commits'>,
  read: (key: string) => Promise<Found | undefined>,
): (key: string) => Promise<Found | undefined> | Found {
  const known = new Map<string, Found>()
  let knownAt = -1

  async function find(key: string): Promise<Found | undefined> {
    const readAt = write.commits()
    const found = await read(key)
    if (found !== undefined && readAt === knownAt && known.size < MAX_REMEMBERED) known.set(key, found)
    return found
  }

  return (key) => {
    if (write.commits() !== knownAt) {
      known.clear()
      knownAt = write.commits()
    }
    return known.get(key) ?? find(key)
  }
}
