import type { BlobStore } from './blob-store.ts'

/** How long a blob without a row is kept: its row may be about to be committed. */
export const ORPHANS_KEPT_S = 24 * 3600
const NAMES_PER_QUERY = 200

/** Which of the blobs are named by a row. */
type FindReferenced = (names: readonly string[]) => Promise<ReadonlySet<string>>

/**
 * Removes what a crash left: blobs that no row names and that are older than a day. A store of any size is listed in constant memory,
 * a part of it in each run; blobs with other names are left alone.
 * @param pattern of the blobs' names in this store
 * @returns one run: looks at `maxNames` names, from where the last run stopped, and resolves with how many blobs it removed
 */
export function createOrphanSweep(store: BlobStore, pattern: RegExp, findReferenced: FindReferenced) {
  let last = ''

  return async function sweep(nowS: number, maxNames: number): Promise<number> {
    let removed = 0
    let seen = 0
    for await (const names of inBatches(store.list('', last))) {
      removed += await removeUnreferenced(names, nowS)
      last = names.at(-1) ?? ''
      seen += names.length
      if (seen >= maxNames) return removed
    }
    last = ''
    return removed
  }

  async function removeUnreferenced(names: readonly string[], nowS: number): Promise<number> {
    const candidates = names.filter((name) => pattern.test(name))
    if (candidates.length === 0) return 0
    const referenced = await findReferenced(candidates)
    let removed = 0
    for (const name of candidates) {
      if (referenced.has(name) || !(await isOld(name, nowS))) continue
      await store.remove(name)
      removed += 1
    }
    return removed
  }

  /** By its last change. A clock that went back makes a blob look younger than it is, never older. */
  async function isOld(name: string, nowS: number): Promise<boolean> {
    const found = await store.stat(name).catch(() => undefined) // the last one may be gone meanwhile
    return found !== undefined && found.changedAtS < nowS - ORPHANS_KEPT_S
  }
}

async function* inBatches(list: AsyncIterable<string>): AsyncGenerator<string[]> {
  let names: string[] = []
  for await (const name of list) {
    names.push(name)
    if (names.length < NAMES_PER_QUERY) continue
    yield names
    names = []
  }
  if (names.length > 0) yield names
}
