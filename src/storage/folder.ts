import { randomBytes } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'

// Order on disk, always: write, fsync, rename, fsync the folder; then the caller commits the row that names the file.

/** A folder of blobs with the folder where unfinished ones lie, both on one file system. */
export type BlobFolder = { root: string; tmp: string }

export async function openBlobFolder(root: string, tmp: string): Promise<BlobFolder> {
  for (const folder of [root, tmp]) await mkdir(folder, { recursive: true, mode: 0o700 })
  return { root, tmp }
}

/** Writes a small blob. Durable under its name when it resolves. */
export async function putBlob(folder: BlobFolder, name: string, bytes: Buffer): Promise<void> {
  await putBlobWith(folder, name, (file) => file.writeFile(bytes))
}

/** Writes a blob from a stream in constant memory. Durable under its name when it resolves; nothing is left when it fails. */
export async function putBlobStream(
  folder: BlobFolder,
  name: string,
  stages: [NodeJS.ReadableStream, ...NodeJS.ReadWriteStream[]],
): Promise<void> {
  await putBlobWith(folder, name, (file) => pipeline([...stages, (bytes: AsyncIterable<Uint8Array>) => file.writeFile(bytes)]))
}

async function putBlobWith(folder: BlobFolder, name: string, write: (file: FileHandle) => Promise<unknown>): Promise<void> {
  const unfinished = join(folder.tmp, randomBytes(16).toString('hex'))
  const path = blobPath(folder, name)
  try {
    await using file = await open(unfinished, 'wx', 0o600)
    await write(file)
    await file.sync()
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await rename(unfinished, path)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
  await syncFolders(folder.root, dirname(path))
}

/** Makes the names durable, from the blob's own folder up to the root: a new folder is a name too. */
async function syncFolders(root: string, folder: string): Promise<void> {
  for (let at = folder; at.startsWith(root); at = dirname(at)) {
    await using handle = await open(at, 'r')
    await handle.sync()
    if (at === root) return
  }
}

/** Where a blob lies. Names are made by the server: letters, digits, `.`, `-`, `_` and `/`. */
export function blobPath(folder: BlobFolder, name: string): string {
  if (!/^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/.test(name)) throw new Error(`not a name of a blob: ${JSON.stringify(name)}`)
  return join(folder.root, name)
}

/** Removes a blob or a folder of blobs; nothing there is as good. */
export async function removeBlobs(folder: BlobFolder, name: string): Promise<void> {
  await rm(blobPath(folder, name), { recursive: true, force: true })
}

/** Removes a blob, and its folder when nothing else lies there. */
export async function removeBlobAndEmptyFolder(folder: BlobFolder, name: string): Promise<void> {
  const path = blobPath(folder, name)
  await rm(path, { force: true })
  await rmdir(dirname(path)).catch(() => undefined)
}

/** Empties the folder of unfinished blobs; only at a start, before anything writes. */
export async function removeUnfinished(folder: BlobFolder): Promise<void> {
  const entries: Dirent[] = await readdir(folder.tmp, { withFileTypes: true })
  for (const entry of entries) await rm(join(folder.tmp, entry.name), { recursive: true, force: true })
}
