import { type BlobStore, RETIRED_KEPT_S, type Retired } from './blob-store.ts'

/** How long a blob without a row is kept: its row may be about to be committed. */
export const ORPHANS_KEPT_S = 24 * 3600
const NAMES_PER_QUERY = 200

/** Which of the blobs are named by a row. */
type FindReferenced = (names: readonly string[]) => Promise<ReadonlySet<string>>

/**
 * Removes what was retired long enough ago, and retires what a crash left: blobs that no row names and that are older than a day. Rows
 * that were restored from a backup may name retired blobs again: those stay, and what they do not name is kept as long as everything that
 * is retired. A store of any size is listed in constant memory, a part of it in each run; blobs with other names are left alone.
 * @param pattern of the blobs' names in this store
 * @returns one run: looks at `maxNames` names, from where the last run stopped, and resolves with how many blobs it removed or retired
 */
export function createOrphanSweep(store: BlobStore, pattern: RegExp, findReferenced: FindReferenced) {
  let last = ''

  return async function sweep(nowS: number, maxNames: number): Promise<number> {
    const retired = new Set<string>()
    let removed = 0
    for await (const each of store.listRetired()) {
      if (each.retiredAtS < nowS - RETIRED_KEPT_S) removed += await removeRetired(each)
      else retired.add(each.isFolder ? `${each.name}/` : each.name)
    }
    let seen = 0
    for await (const names of inBatches(store.list('', last))) {
      removed += await retireUnreferenced(names, retired, nowS)
      last = names.at(-1) ?? ''
      seen += names.length
      if (seen >= maxNames) return removed
    }
    last = ''
    return removed
  }

  async function removeRetired(retired: Retired): Promise<number> {
    let removed = 0
    for await (const names of inBatches(retired.isFolder ? store.list(retired.name, '') : [retired.name]))
      for (const name of await findUnreferenced(names)) {
        await store.remove(name)
        removed += 1
      }
    await store.endRetirement(retired)
    return removed
  }

  async function retireUnreferenced(names: readonly string[], retired: ReadonlySet<string>, nowS: number): Promise<number> {
    let count = 0
    for (const name of await findUnreferenced(names)) {
      if (isRetired(name, retired) || !(await isOld(name, nowS))) continue
      await store.retire(name)
      count += 1
    }
    return count
  }

  async function findUnreferenced(names: readonly string[]): Promise<string[]> {
    const candidates = names.filter((name) => pattern.test(name))
    if (candidates.length === 0) return []
    const referenced = await findReferenced(candidates)
    return candidates.filter((name) => !referenced.has(name))
  }

  /** By its last change. A clock that went back makes a blob look younger than it is, never older. */
  async function isOld(name: string, nowS: number): Promise<boolean> {
    const found = await store.stat(name).catch(() => undefined) // the last one may be gone meanwhile
    return found !== undefined && found.changedAtS < nowS - ORPHANS_KEPT_S
  }
}

/** Whether a blob was retired, or a folder that it is in. */
function isRetired(name: string, retired: ReadonlySet<string>): boolean {
  if (retired.has(name)) return true
  for (let end = name.indexOf('/'); end !== -1; end = name.indexOf('/', end + 1)) {
    if (retired.has(name.slice(0, end + 1))) return true
  }
  return false
}

export async function* inBatches(list: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string[]> {
  let names: string[] = []
  for await (const name of list) {
    names.push(name)
    if (names.length < NAMES_PER_QUERY) continue
    yield names
    names = []
  }
  if (names.length > 0) yield names
}
