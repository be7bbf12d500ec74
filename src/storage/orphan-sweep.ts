import { randomBytes } from 'node:crypto'
import { closeSync, type Dirent, fstatSync, openSync, unlinkSync } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { type BlobFolder, removeBlobAndEmptyFolders } from './folder.ts'

/** How long a blob without a row is kept: its row may be about to be committed. */
const KEPT_S = 24 * 3600
/** Names in one query. */
const NAMES_PER_QUERY = 200

/** Which of the blobs are named by a row. */
export type FindReferenced = (names: readonly string[]) => Promise<ReadonlySet<string>>

/**
 * Removes what a crash left: blobs that no row names and that are older than a day. A folder of any size is walked in constant memory,
 * a part of it in each run; files with other names are left alone.
 * @param pattern of the blobs' names in this folder
 * @returns one run: looks at `maxNames` names, from where the last run stopped, and resolves with how many blobs it removed
 */
export function createOrphanSweep(folder: BlobFolder, pattern: RegExp, findReferenced: FindReferenced) {
  let walk = batches(folder)

  return async function sweep(nowS: number, maxNames: number): Promise<number> {
    let removed = 0
    for (let seen = 0; seen < maxNames; ) {
      const { value: names, done } = await walk.next()
      if (done || !names) {
        walk = batches(folder)
        return removed
      }
      seen += names.length
      removed += await removeUnreferenced(names, nowS)
    }
    return removed
  }

  async function removeUnreferenced(names: readonly string[], nowS: number): Promise<number> {
    const candidates = names.filter((name) => pattern.test(name))
    if (candidates.length === 0) return 0
    const referenced = await findReferenced(candidates)
    let removed = 0
    for (const name of candidates) {
      if (referenced.has(name) || !(await isOld(join(folder.root, name), nowS))) continue
      await removeBlobAndEmptyFolders(folder, name)
      removed += 1
    }
    return removed
  }
}

/** Removes unfinished blobs that were not written to for a day. Running uploads and encodes write to theirs all the time. */
export function createUnfinishedSweep({ tmp }: BlobFolder) {
  return createOrphanSweep({ root: tmp, tmp }, /^[0-9a-f]{32}$/, async () => new Set())
}

/** How the names of files begin that exist for a moment to read the file system's clock: they are no unfinished blobs. */
export const CLOCK_PROBE = 'clock-'

/** The time by the file system's clock, which may differ from this machine's: a file's age is measured by it. */
export function fileSystemNowS({ tmp }: BlobFolder): number {
  const probe = join(tmp, `${CLOCK_PROBE}${randomBytes(16).toString('hex')}`)
  const file = openSync(probe, 'wx')
  try {
    unlinkSync(probe)
    return fstatSync(file).mtimeMs / 1000
  } finally {
    closeSync(file)
  }
}

/** By its last change. A clock that went back makes a file look younger than it is, never older. */
async function isOld(path: string, nowS: number): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined) // gone meanwhile
  return found !== undefined && found.mtimeMs / 1000 < nowS - KEPT_S
}

async function* batches(folder: BlobFolder): AsyncGenerator<string[]> {
  let names: string[] = []
  for await (const name of filesBelow(folder.root, '')) {
    names.push(name)
    if (names.length < NAMES_PER_QUERY) continue
    yield names
    names = []
  }
  if (names.length > 0) yield names
}

async function* filesBelow(root: string, below: string): AsyncGenerator<string> {
  for await (const entry of listEntries(join(root, below))) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory()) yield* filesBelow(root, name)
    else if (entry.isFile()) yield name
  }
}

/** Yields nothing when the folder no longer exists. */
async function* listEntries(path: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
