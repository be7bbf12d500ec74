import { randomBytes } from 'node:crypto'
import { accessSync, closeSync, constants, type Dirent, fsyncSync, openSync, statSync } from 'node:fs'
import { type FileHandle, mkdir, open, opendir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isDiskFull } from '../errors.ts'

// Order on disk, always: write, fsync, rename, fsync the folder; then the caller commits the row that names the file.

/** A folder of blobs with the folder where unfinished ones lie, both on one file system. */
export type BlobFolder = {
  root: string
  tmp: string
  /** Called when a write finds the disk full. */
  onDiskFull?: () => void
}

/** Creates missing folders. Both names are durable when it resolves; the folders above them are up to the caller. */
export async function openBlobFolder(root: string, tmp: string, onDiskFull?: () => void): Promise<BlobFolder> {
  for (const folder of [root, tmp]) {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await syncFolder(dirname(folder)) // also when it exists: an earlier start may have been killed before it did
  }
  return { root, tmp, onDiskFull }
}

/** Whether it is empty or missing: where blobs are expected, its disk may not be mounted. */
export async function isEmptyFolder({ root }: BlobFolder): Promise<boolean> {
  try {
    await using folder = await opendir(root)
    return (await folder.read()) === null
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return true
    throw error
  }
}

/** Writes a small blob. Durable under its name when it resolves. */
export async function putBlob(folder: BlobFolder, name: string, bytes: Buffer): Promise<void> {
  await putBlobWith(folder, name, (file) => file.writeFile(bytes))
}

/**
 * Writes a blob from a stream in constant memory. Durable under its name when it resolves; nothing is left when it fails.
 * @param signal aborts the write. Do not pass it to the source as well: its error would be unhandled until the file is open
 */
export async function putBlobStream(
  folder: BlobFolder,
  name: string,
  stages: [NodeJS.ReadableStream, ...NodeJS.ReadWriteStream[]],
  signal?: AbortSignal,
): Promise<void> {
  await putBlobWith(folder, name, (file) =>
    pipeline([...stages, (bytes: AsyncIterable<Uint8Array>) => file.writeFile(bytes)], { signal }),
  )
}

async function putBlobWith(folder: BlobFolder, name: string, write: (file: FileHandle) => Promise<unknown>): Promise<void> {
  const unfinished = join(folder.tmp, randomBytes(16).toString('hex'))
  const path = blobPath(folder, name)
  try {
    await using file = await open(unfinished, 'wx', 0o600)
    await write(file)
    await file.sync()
    await moveTo(path, unfinished)
    await syncFolders(folder.root, dirname(path))
  } catch (error) {
    // A second attempt could not be trusted: the kernel reports a failed write only once.
    for (const left of [unfinished, path]) await rm(left, { force: true })
    if (isDiskFull(error)) folder.onDiskFull?.()
    throw error
  }
}

/**
 * Opens a blob that is appended to, across restarts, and makes its name durable. The row that names it also says how many of its
 * bytes count.
 */
export async function openGrowingBlob(folder: BlobFolder, name: string): Promise<FileHandle> {
  const path = blobPath(folder, name)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const file = await open(path, 'a+', 0o600)
  await syncFolders(folder.root, dirname(path))
  return file
}

async function moveTo(path: string, unfinished: string, tries = 2): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rename(unfinished, path).catch((error) => {
    // A removal may have deleted the empty folder at this very moment.
    if (tries > 1 && error.code === 'ENOENT') return moveTo(path, unfinished, tries - 1)
    throw error
  })
}

/** Makes the names durable, from the blob's own folder up to the root: a new folder has a name, too. */
async function syncFolders(root: string, folder: string): Promise<void> {
  for (let at = folder; at.startsWith(root); at = dirname(at)) {
    await syncFolder(at)
    if (at === root) return
  }
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}

/**
 * Makes the name of a file or folder durable, and those of the folders above it, up to where their file system is mounted or what
 * this user may read: nothing further up was made here.
 */
export function syncNames(path: string): void {
  const folder = dirname(resolve(path))
  const { dev } = statSync(folder)
  for (let at = folder; mayRead(at) && statSync(at).dev === dev; at = dirname(at)) {
    syncInPlace(at)
    if (at === dirname(at)) return
  }
}

/** Makes the bytes of a file, or the names in a folder, durable. */
export function syncInPlace(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } catch (error) {
    // A read-only file system may not support fsync: nothing there is unwritten.
    if (!(error instanceof Error && 'code' in error && error.code === 'EINVAL')) throw error
  } finally {
    closeSync(handle)
  }
}

function mayRead(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** The path of a blob. Names are made by the server: letters, digits, `.`, `-`, `_` and `/`. */
export function blobPath(folder: BlobFolder, name: string): string {
  if (!/^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/.test(name)) throw new Error(`not the name of a blob: ${JSON.stringify(name)}`)
  return join(folder.root, name)
}

/** Removes a blob or a folder of blobs, if it exists. */
export async function removeBlobs(folder: BlobFolder, name: string): Promise<void> {
  await rm(blobPath(folder, name), { recursive: true, force: true })
}

/** Removes a blob, and its folders when they are empty. */
export async function removeBlobAndEmptyFolders(folder: BlobFolder, name: string): Promise<void> {
  const path = blobPath(folder, name)
  await rm(path, { force: true })
  for (let at = dirname(path); at !== folder.root; at = dirname(at)) {
    const isGone = await rmdir(at).then(
      () => true,
      () => false,
    )
    if (!isGone) return
  }
}

/** Empties the folder of unfinished blobs; only at a start, before anything writes. */
export async function removeUnfinished(folder: BlobFolder): Promise<void> {
  const entries: Dirent[] = await readdir(folder.tmp, { withFileTypes: true })
  for (const entry of entries) await rm(join(folder.tmp, entry.name), { recursive: true, force: true })
}
