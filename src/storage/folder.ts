import { randomBytes } from 'node:crypto'
import type { Dirent } from 'node:fs'
import {
  access,
  constants,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  opendir,
  readFile,
  rename,
  rm,
  rmdir,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { errorCode, hostFailure, isDiskFull, StorageUnavailable } from '../errors.ts'
import { blobPath, isBlobName } from './blob-path.ts'
import { BlobLost, type BlobStat, type BlobStore, ignoreLost, type OpenBlob, type PutOptions, type Stages } from './blob-store.ts'
import { syncInPlace } from './sync.ts'

// Order on disk, always: write, fsync, rename, fsync the folder; then the caller commits the row that names the file.

/** `tmp` has the unfinished blobs, on the same file system. */
type Folder = {
  root: string
  tmp: string
  /** Called when a write finds the disk full. */
  onDiskFull?: (() => void) | undefined
  modes: Modes
  /** Of a bulk folder: the folders whose names are to be made durable. */
  unsynced?: Set<string>
}

type Modes = { folder: number; file: number }
const OWNER_ONLY: Modes = { folder: 0o700, file: 0o600 }
/** Of what an access control list may allow another program of this machine to read: it allows no more than these modes. */
export const FOR_GROUP: Modes = { folder: 0o750, file: 0o640 }
/** How much of a blob is read at a time to be sent. */
const READ_BYTES = 256 * 1024

/** Creates missing folders. Their names are durable when it resolves; the folders above them are up to the caller. */
export async function createFolders(...paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(path, { recursive: true, mode: OWNER_ONLY.folder })
    await syncFolder(dirname(path)) // also when it exists: an earlier start may have been killed before it did
  }
}

/** The blobs of a folder. It and `tmp` exist, or its blobs are only read. */
export function blobFolder(root: string, tmp: string, onDiskFull?: () => void, modes = OWNER_ONLY): BlobStore {
  return openFolder({ root, tmp, onDiskFull, modes })
}

/** The blobs of a backup, or of an installation that is restored from one. */
export type BulkFolder = BlobStore & {
  /** Makes the names of all blobs durable that were written or read: many together, and not each with its `put`. */
  syncNames(): void
}

/** As `blobFolder`; but when it is empty, its blobs are lost: the same disk has the rows that name them. */
export function bulkFolder(root: string, tmp: string): BulkFolder {
  const unsynced = new Set<string>()
  return { ...openFolder({ root, tmp, unsynced, modes: OWNER_ONLY }), syncNames: () => unsynced.forEach(syncInPlace) }
}

function openFolder(folder: Folder): BlobStore {
  const { root } = folder
  const path = (name: string) => blobPath(root, name)
  return {
    put: (name, bytes, options) => put(folder, path(name), bytes, options),
    adopt: (name, from) => from.withLocalCopy(name, (source) => adopt(folder, path(name), source)),
    read: (name) => readFile(path(name)).catch((error) => explain(folder, error)),
    open: (name) => openBlob(folder, path(name)),
    stat: (name) => stat(folder, path(name)),
    remove: (name) => remove(folder, path(name)),
    removeAll: (name) => rm(path(name), { recursive: true, force: true }),
    retire: (name) => remove(folder, path(name)),
    retireAll: (name) => rm(path(name), { recursive: true, force: true }),
    async *listRetired() {},
    endRetirement: async () => undefined,
    list: (below, after) => list(root, below, after),
    appendPart: (name, countedBytes, bytes) => appendPart(folder, path(name), countedBytes, bytes),
    finish: (name, countedBytes) => finish(folder, path(name), countedBytes),
    withLocalCopy: (name, use) => withLocalCopy(folder, path(name), use),
    mayCopy: () => true,
    removeUnfinished: (sinceS) => removeUnfinished(folder, sinceS),
    nowS: () => readClock(folder),
    check: () => access(root, constants.R_OK | constants.W_OK),
  }
}

async function put(folder: Folder, path: string, bytes: Buffer | Stages, { signal }: PutOptions = {}) {
  const unfinished = join(folder.tmp, randomBytes(16).toString('hex'))
  const left = [unfinished]
  try {
    await using file = await open(unfinished, 'wx', folder.modes.file)
    if (Buffer.isBuffer(bytes)) await file.writeFile(bytes)
    else await pipeline([...bytes, (last: AsyncIterable<Uint8Array>) => file.writeFile(last)], { signal })
    await file.sync()
    left.push(path)
    await inFolderOf(folder, path, () => rename(unfinished, path))
    await syncFolders(folder, dirname(path))
    return { sizeBytes: (await file.stat()).size }
  } catch (error) {
    // A second attempt could not be trusted: the kernel reports a failed write only once.
    for (const path of left) await rm(path, { force: true })
    if (isDiskFull(error)) folder.onDiskFull?.()
    throw error
  }
}

/** By a hard link. */
async function adopt(folder: Folder, path: string, source: string): Promise<boolean> {
  const unfinished = join(folder.tmp, randomBytes(16).toString('hex'))
  try {
    await link(source, unfinished)
  } catch (error) {
    const code = errorCode(error)
    if (['EXDEV', 'EPERM', 'ENOTSUP', 'EMLINK'].includes(code)) return false
    throw code === 'ENOENT' ? new BlobLost('its file is missing', { cause: error }) : error
  }
  await inFolderOf(folder, path, () => rename(unfinished, path))
  await rm(unfinished, { force: true }) // renaming one name of a file to another name of the same file does nothing
  await syncFolders(folder, dirname(path))
  return true
}

/** Creates the folder of a file, and the file in it. Removals delete the folder at any moment when it is empty. */
async function inFolderOf<T>(folder: Folder, path: string, create: () => Promise<T>, tries = 5): Promise<T> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: folder.modes.folder })
    return await create()
  } catch (error) {
    if (tries > 1 && errorCode(error) === 'ENOENT') return inFolderOf(folder, path, create, tries - 1)
    throw error
  }
}

async function openBlob(folder: Folder, path: string): Promise<OpenBlob> {
  const file = await open(path).catch((error) => explain(folder, error))
  if (folder.unsynced) await syncFolders(folder, dirname(path)) // an earlier run may have been killed before it did
  try {
    const { size, mtimeMs, ino } = await file.stat()
    return {
      sizeBytes: size,
      version: `${ino} ${mtimeMs}`, // two files that were written within one tick of the clock are two
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
    const { size, mtimeMs, dev: device, ino: inode } = await lstat(path)
    return { sizeBytes: size, changedAtS: mtimeMs / 1000, file: { device, inode } }
  } catch (error) {
    return explain(folder, error).catch(ignoreLost)
  }
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

async function appendPart(folder: Folder, path: string, countedBytes: number, bytes: Parameters<BlobStore['appendPart']>[2]) {
  try {
    await using file = await openGrown(folder, path, countedBytes)
    if (countedBytes === 0) await syncFolders(folder, dirname(path))
    try {
      await file.writeFile(bytes)
      await file.sync()
    } catch (error) {
      if (isDiskFull(error)) await file.truncate(countedBytes) // others need the room until it is continued
      throw error
    }
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
      ? await inFolderOf(folder, path, () => open(path, O_WRONLY | O_APPEND | O_CREAT, folder.modes.file))
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
async function explain({ root, unsynced }: Folder, error: unknown): Promise<never> {
  const code = errorCode(error)
  if (code === 'EIO') throw new BlobLost('its file cannot be read from the disk (EIO)', { cause: error })
  if (code === '' || hostFailure(error)) throw error
  const kind = basename(root)
  if (code !== 'ENOENT')
    throw new StorageUnavailable(`Files in the folder ${kind} cannot be read (${code}). Try again when that is corrected.`, {
      cause: error,
    })
  if (unsynced || !(await isEmpty(root))) throw new BlobLost('its file is missing', { cause: error })
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
    if (!(entry.isDirectory() || entry.isFile()) || !isBlobName(name)) continue
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
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/** Makes the names durable, from the blob's own folder up to the root: a new folder has a name, too. Of a bulk folder, later. */
async function syncFolders({ root, unsynced }: Folder, folder: string): Promise<void> {
  for (let at = folder; at.startsWith(root); at = dirname(at)) {
    if (!unsynced) await syncFolder(at)
    else if (unsynced.has(at)) return
    else unsynced.add(at)
    if (at === root) return void unsynced?.add(dirname(root))
  }
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}
