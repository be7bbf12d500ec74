import { hash, randomBytes } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { access, constants, type FileHandle, lstat, mkdir, open, opendir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { hostFailure, isDiskFull, StorageUnavailable } from '../errors.ts'
import { blobPath } from './blob-path.ts'
import { BlobLost, type BlobStat, type BlobStore, type OpenBlob, type Stages, type StoredBlob } from './blob-store.ts'

// Order on disk, always: write, fsync, rename, fsync the folder; then the caller commits the row that names the file.

/** The blobs of a folder. */
type BlobFolder = BlobStore & { root: string }

/** `tmp` has the unfinished blobs, on the same file system. */
type Folder = {
  root: string
  tmp: string
  /** Called when a write finds the disk full. */
  onDiskFull: (() => void) | undefined
}

const MODES = { folder: 0o700, file: 0o600 }
/** How much of a blob is read at a time to be sent. */
const READ_BYTES = 256 * 1024

/** Creates missing folders. Both names are durable when it resolves; the folders above them are up to the caller. */
export async function openBlobFolder(root: string, tmp: string, onDiskFull?: () => void): Promise<BlobFolder> {
  for (const folder of [root, tmp]) {
    await mkdir(folder, { recursive: true, mode: MODES.folder })
    await syncFolder(dirname(folder)) // also when it exists: an earlier start may have been killed before it did
  }
  return blobFolder(root, tmp, onDiskFull)
}

/** Folders that exist, or whose files are only read. */
export function blobFolder(root: string, tmp: string, onDiskFull?: () => void): BlobFolder {
  const folder: Folder = { root, tmp, onDiskFull }
  const path = (name: string) => blobPath(root, name)
  return {
    root,
    put: (name, bytes) => put(folder, name, bytes),
    putStream: (name, stages, signal) => putStream(folder, name, stages, signal),
    read: (name) => readFile(path(name)).catch((error) => explain(folder, error)),
    open: (name) => openBlob(folder, path(name)),
    stat: (name) => stat(folder, path(name)),
    remove: (name) => remove(folder, path(name)),
    removeAll: (name) => rm(path(name), { recursive: true, force: true }),
    list: (below, after) => list(root, below, after),
    appendPart: (name, countedBytes, bytes) => appendPart(folder, path(name), countedBytes, bytes),
    finish: (name, countedBytes) => finish(folder, path(name), countedBytes),
    withLocalCopy: (name, use) => withLocalCopy(folder, path(name), use),
    removeUnfinished: (sinceS) => removeUnfinished(folder, sinceS),
    nowS: () => readClock(folder),
    check: () => access(root, constants.R_OK | constants.W_OK),
  }
}

async function put(folder: Folder, name: string, bytes: Buffer): Promise<StoredBlob> {
  await write(folder, name, (file) => file.writeFile(bytes))
  return { sizeBytes: bytes.length, sha256: hash('sha256', bytes, 'buffer') }
}

async function putStream(folder: Folder, name: string, stages: Stages, signal: AbortSignal | undefined) {
  return write(folder, name, (file) =>
    pipeline([...stages, (bytes: AsyncIterable<Uint8Array>) => file.writeFile(bytes)], { signal }),
  )
}

async function write(folder: Folder, name: string, fill: (file: FileHandle) => Promise<unknown>): Promise<{ sizeBytes: number }> {
  const unfinished = join(folder.tmp, randomBytes(16).toString('hex'))
  const path = blobPath(folder.root, name)
  try {
    await using file = await open(unfinished, 'wx', MODES.file)
    await fill(file)
    await file.sync()
    await inFolderOf(path, () => rename(unfinished, path))
    await syncFolders(folder.root, dirname(path))
    return { sizeBytes: (await file.stat()).size }
  } catch (error) {
    // A second attempt could not be trusted: the kernel reports a failed write only once.
    for (const left of [unfinished, path]) await rm(left, { force: true })
    if (isDiskFull(error)) folder.onDiskFull?.()
    throw error
  }
}

/** Creates the folder of a file, and the file in it. Removals delete the folder at any moment when it is empty. */
async function inFolderOf<T>(path: string, create: () => Promise<T>, tries = 5): Promise<T> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: MODES.folder })
    return await create()
  } catch (error) {
    if (tries > 1 && codeOf(error) === 'ENOENT') return inFolderOf(path, create, tries - 1)
    throw error
  }
}

async function openBlob(folder: Folder, path: string): Promise<OpenBlob> {
  const file = await open(path).catch((error) => explain(folder, error))
  try {
    const { size, mtimeMs } = await file.stat()
    return {
      sizeBytes: size,
      version: mtimeMs,
      read: (into, at) => fill(file, into, at).catch((error) => explain(folder, error)),
      stream: ({ first, last }) => file.createReadStream({ start: first, end: last, highWaterMark: READ_BYTES }),
      close: () => file.close(),
      [Symbol.asyncDispose]: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

async function fill(file: FileHandle, into: Buffer, at: number): Promise<number> {
  let filled = 0
  while (filled < into.length) {
    const { bytesRead } = await file.read(into, filled, into.length - filled, at + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return filled
}

async function stat(folder: Folder, path: string): Promise<BlobStat | undefined> {
  try {
    const { size, mtimeMs } = await lstat(path)
    return { sizeBytes: size, changedAtS: mtimeMs / 1000 }
  } catch (error) {
    return explain(folder, error).catch(ignoreLost)
  }
}

function ignoreLost(error: unknown): undefined {
  if (!(error instanceof BlobLost)) throw error
}

/** With its folders when they are empty. */
async function remove({ root }: Folder, path: string): Promise<void> {
  await rm(path, { force: true })
  for (let at = dirname(path); at !== root; at = dirname(at)) {
    const isGone = await rmdir(at).then(
      () => true,
      () => false,
    )
    if (!isGone) return
  }
}

async function appendPart(
  folder: Folder,
  path: string,
  countedBytes: number,
  bytes: Parameters<BlobStore['appendPart']>[2],
): Promise<number> {
  try {
    await using file = await openGrown(folder, path, countedBytes)
    if (countedBytes === 0) await syncFolders(folder.root, dirname(path))
    await file.writeFile(bytes)
    await file.sync()
    return (await file.stat()).size
  } catch (error) {
    if (isDiskFull(error)) folder.onDiskFull?.()
    throw error
  }
}

async function finish(folder: Folder, path: string, countedBytes: number): Promise<void> {
  const file = await openGrown(folder, path, countedBytes)
  await file.close()
}

/** For writing behind the bytes that count, which are on the disk; what is behind them is cut off. */
async function openGrown(folder: Folder, path: string, countedBytes: number): Promise<FileHandle> {
  const { O_WRONLY, O_APPEND, O_CREAT } = constants
  const file =
    countedBytes === 0
      ? await inFolderOf(path, () => open(path, O_WRONLY | O_APPEND | O_CREAT, MODES.file))
      : await open(path, O_WRONLY | O_APPEND).catch((error) => explain(folder, error))
  try {
    const { size } = await file.stat()
    if (size < countedBytes) throw new BlobLost(`its file has ${size} bytes instead of ${countedBytes}`)
    if (size > countedBytes) {
      await file.truncate(countedBytes)
      await file.sync()
    }
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

async function withLocalCopy<T>(folder: Folder, path: string, use: (path: string) => Promise<T>): Promise<T> {
  await access(path, constants.R_OK).catch((error) => explain(folder, error))
  return use(path)
}

/** What an error says of a blob that was to be read. An empty folder may be where a disk is to be mounted. */
async function explain({ root }: Folder, error: unknown): Promise<never> {
  const code = codeOf(error)
  if (code === 'EIO') throw new BlobLost('its file cannot be read from the disk (EIO)', { cause: error })
  if (code === undefined || hostFailure(error)) throw error
  const kind = basename(root)
  if (code !== 'ENOENT')
    throw new StorageUnavailable(`Files in the folder ${kind} cannot be read (${code}). Try again when that is corrected.`, {
      cause: error,
    })
  if (!(await isEmpty(root))) throw new BlobLost('its file is missing', { cause: error })
  throw new StorageUnavailable(
    `The folder ${kind} is empty, but the database has files in it. Mount its disk, or restore it from a backup.`,
    { cause: error },
  )
}

/** Also when it is missing. */
async function isEmpty(root: string): Promise<boolean> {
  for await (const _ of entriesOf(root)) return false
  return true
}

/** As many names of a folder are sorted at a time. */
const MAX_SORTED = 50_000

async function* list(root: string, below: string, after: string): AsyncGenerator<string> {
  if (below !== '') blobPath(root, below)
  for (let last = after; ; ) {
    const keys = await keysAfter(join(root, below), below, last)
    for (const key of keys) {
      if (key.endsWith('/')) yield* list(root, key.slice(0, -1), after)
      else yield key
    }
    if (keys.length < MAX_SORTED) return
    last = keys.at(-1) ?? ''
  }
}

/** The first of a folder's names after one, folders with a `/` at their end: so they sort as the names of their blobs do. */
async function keysAfter(path: string, below: string, after: string): Promise<string[]> {
  const keys: string[] = []
  const keepFirst = () => keys.sort(compareBytes).splice(MAX_SORTED)
  for await (const entry of entriesOf(path)) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`
    const key = entry.isDirectory() ? `${name}/` : name
    if (!(entry.isDirectory() || entry.isFile())) continue
    if (key > after || (key !== after && after.startsWith(key))) keys.push(key)
    if (keys.length === 2 * MAX_SORTED) keepFirst()
  }
  keepFirst()
  return keys
}

const compareBytes = (a: string, b: string) => (a < b ? -1 : 1)

/** How the names of files begin that exist for a moment to read the file system's clock: they are no unfinished blobs. */
export const CLOCK_PROBE = 'clock-'

async function readClock({ tmp }: Folder): Promise<number> {
  const probe = join(tmp, `${CLOCK_PROBE}${randomBytes(16).toString('hex')}`)
  await using file = await open(probe, 'wx')
  await rm(probe)
  return (await file.stat()).mtimeMs / 1000
}

const UNFINISHED_NAME = /^[0-9a-f]{32}$/

async function removeUnfinished({ tmp }: Folder, sinceS: number): Promise<number> {
  let removed = 0
  for await (const { name } of entriesOf(tmp)) {
    const path = join(tmp, name)
    if (!UNFINISHED_NAME.test(name)) continue
    const found = await lstat(path).catch(() => undefined) // gone meanwhile
    if (!found?.isFile() || found.mtimeMs / 1000 >= sinceS) continue
    await rm(path, { force: true })
    removed++
  }
  return removed
}

/** Empties the folder of unfinished blobs, whatever is in it; only at a start, before anything writes. */
export async function emptyFolder(tmp: string): Promise<void> {
  for await (const { name } of entriesOf(tmp)) await rm(join(tmp, name), { recursive: true, force: true })
}

/** Yields nothing when the folder does not exist. */
async function* entriesOf(path: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(path, { bufferSize: 256 })
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
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

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}
