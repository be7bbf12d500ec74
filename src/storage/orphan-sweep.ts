import { randomBytes } from 'node:crypto'
import { closeSync, type Dirent, fstatSync, openSync, unlinkSync } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { type BlobFolder, removeBlobAndEmptyFolders } from './folder.ts'

/** How long a blob without a row is kept: its row may be about to be committed. */
const KEPT_S = 24 * 3600
/** Names in one query. */
const NAMES_PER_QUERY = 200

/** Which of the blobs some row names. */
export type FindReferenced = (names: readonly string[]) => Promise<ReadonlySet<string>>

/**
 * Removes what a crash left: blobs that no row names and that are older than a day. A folder of any size is walked in small memory,
 * a part of it in each run; names that are not of ours are left alone.
 * @param ours the form of our names in this folder
 * @returns one run: looks at `most` names, from where the last run stopped, and says how many it removed
 */
export function createOrphanSweep(folder: BlobFolder, ours: RegExp, namedAmong: FindReferenced) {
  let walk = batches(folder)

  return async function sweep(nowS: number, most: number): Promise<number> {
    let removed = 0
    for (let looked = 0; looked < most; ) {
      const { value: names, done } = await walk.next()
      if (done || !names) {
        walk = batches(folder)
        return removed
      }
      looked += names.length
      removed += await removeUnnamed(names, nowS)
    }
    return removed
  }

  async function removeUnnamed(names: readonly string[], nowS: number): Promise<number> {
    const candidates = names.filter((name) => ours.test(name))
    if (candidates.length === 0) return 0
    const named = await namedAmong(candidates)
    let removed = 0
    for (const name of candidates) {
      if (named.has(name) || !(await isOld(join(folder.root, name), nowS))) continue
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

/** The time as the file system writes it: its clock may be another than ours, and a file's age is a matter of its own. */
export function fileSystemNowS({ tmp }: BlobFolder): number {
  const probe = join(tmp, randomBytes(16).toString('hex'))
  const file = openSync(probe, 'wx')
  try {
    unlinkSync(probe) // immediately, so that it is not taken for an unfinished blob
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
  for await (const entry of entriesOf(join(root, below))) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory()) yield* filesBelow(root, name)
    else if (entry.isFile()) yield name
  }
}

/** Nothing, of a folder that is gone. */
async function* entriesOf(path: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
