import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { link, lstat, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { blobPath } from './blob-path.ts'
import { BlobLost, type BlobStore, blocksOf } from './blob-store.ts'
import { syncInPlace } from './sync.ts'

// Published blobs and files, which never change: whether they are intact, and copies of them for a backup or a restored installation.

const BLOCK_BYTES = 2 ** 20

/** An unfinished copy has this ending; a finished one is renamed. */
const UNFINISHED = '.part'

/** Compares a file that is read with the one that was published. */
export type FileCheck = {
  /** Is given all bytes in their order. */
  add(bytes: Buffer): void
  /** @param sha256 of all bytes */
  isIntact(sha256: Buffer): boolean
}

const NO_CHECK: FileCheck = { add: () => undefined, isIntact: () => true }

export function checkHash(expected: Buffer): FileCheck {
  return { add: () => undefined, isIntact: (sha256) => sha256.equals(expected) }
}

/**
 * The SHA-256 of a blob; undefined when it is lost, or not intact.
 * @param pace is awaited after each part that was read
 */
export async function hashBlob(
  store: BlobStore,
  name: string,
  check = NO_CHECK,
  pace: (sizeBytes: number) => Promise<void>,
): Promise<Buffer | undefined> {
  const hash = createHash('sha256')
  try {
    await using blob = await store.open(name)
    for await (const bytes of blocksOf(blob)) {
      hash.update(bytes)
      check.add(bytes)
      await pace(bytes.length)
    }
  } catch (error) {
    if (error instanceof BlobLost) return undefined
    throw error
  }
  const sha256 = hash.digest()
  return check.isIntact(sha256) ? sha256 : undefined
}

type Blob<Kind> = { folder: Kind; name: string }

/** Copies blobs between folders, several at a time. @param from and @param to their roots */
export function createBlobCopier<Kind extends string>(from: Readonly<Record<Kind, string>>, to: Readonly<Record<Kind, string>>) {
  const changedFolders = new Set<string>()
  const pathIn = (roots: Readonly<Record<Kind, string>>, { folder, name }: Blob<Kind>) => blobPath(roots[folder], name)
  /** Whose name is to be made durable. */
  function pathOfCopy(blob: Blob<Kind>): string {
    const path = pathIn(to, blob)
    for (let at = dirname(path); !changedFolders.has(at); at = dirname(at)) {
      changedFolders.add(at)
      if (at === dirname(to[blob.folder])) break
    }
    return path
  }
  return {
    statSource: (blob: Blob<Kind>) => statFile(pathIn(from, blob)),
    statCopy: (blob: Blob<Kind>) => statFile(pathIn(to, blob)),
    hashSource: (blob: Blob<Kind>, check?: FileCheck) => hashFile(pathIn(from, blob), check),
    /** Also of a run that was interrupted before the copy's name was durable. */
    hashCopy: (blob: Blob<Kind>, check?: FileCheck) => hashFile(pathOfCopy(blob), check),
    copy: (blob: Blob<Kind>, check?: FileCheck) => copyFile(pathIn(from, blob), pathOfCopy(blob), check),
    link: (blob: Blob<Kind>) => linkFile(pathIn(from, blob), pathOfCopy(blob)),
    removeCopy: (blob: Blob<Kind>) => rm(pathIn(to, blob), { force: true }),
    /** The names of all copies that were hashed or made are durable after it. */
    syncNames: () => changedFolders.forEach(syncInPlace),
  }
}

/** The SHA-256 of a file; undefined when it does not exist, cannot be read from the disk, or is not intact. */
export async function hashFile(path: string, check = NO_CHECK): Promise<Buffer | undefined> {
  const sha256 = await readWhole(path, async (bytes) => check.add(bytes))
  return sha256 && check.isIntact(sha256) ? sha256 : undefined
}

/**
 * Copies a file durably, under its name only once it is complete and intact. The caller makes that name durable: `syncInPlace`.
 * @returns its SHA-256; undefined when it does not exist, cannot be read, or is not intact
 */
export async function copyFile(from: string, to: string, check = NO_CHECK): Promise<Buffer | undefined> {
  const unfinished = `${to}${UNFINISHED}`
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  let sha256: Buffer | undefined
  {
    await using copy = await open(unfinished, 'w', 0o600)
    sha256 = await readWhole(from, async (bytes) => {
      check.add(bytes)
      await copy.writeFile(bytes)
    })
    if (sha256 && check.isIntact(sha256)) await copy.sync()
    else sha256 = undefined
  }
  if (sha256) await rename(unfinished, to)
  else await rm(unfinished)
  return sha256
}

/** @returns the SHA-256 of the file; undefined when it does not exist or cannot be read from the disk */
async function readWhole(path: string, use: (bytes: Buffer) => Promise<void>): Promise<Buffer | undefined> {
  const file = await open(path).catch(ignoreUnreadable)
  if (!file) return undefined
  await using _ = file
  const hash = createHash('sha256')
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  for (;;) {
    const read = await file.read(block, 0, BLOCK_BYTES).catch(ignoreUnreadable)
    if (!read) return undefined
    const { bytesRead } = read
    if (bytesRead === 0) return hash.digest()
    const bytes = block.subarray(0, bytesRead)
    hash.update(bytes)
    await use(bytes)
  }
}

/**
 * Gives a file a second name, in place of whatever has that name.
 * @returns `unsupported` when the names are on two file systems, or the file system has no hard links
 */
async function linkFile(from: string, to: string): Promise<'linked' | 'missing' | 'unsupported'> {
  const unfinished = `${to}${UNFINISHED}`
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  await rm(unfinished, { force: true })
  try {
    await link(from, unfinished)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'missing'
    if (hasCode(error, 'EXDEV', 'EPERM', 'ENOTSUP', 'EMLINK')) return 'unsupported'
    throw error
  }
  // Renaming one name of a file to another name of the same file does nothing, so the old one goes first.
  await rm(to, { force: true })
  await rename(unfinished, to)
  return 'linked'
}

/** Undefined when there is no such file. */
async function statFile(path: string): Promise<Stats | undefined> {
  return lstat(path).catch(ignoreMissing)
}

function ignoreMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT')) throw error
}

function ignoreUnreadable(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT', 'EIO')) throw error
}

function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
