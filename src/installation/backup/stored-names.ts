import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { MEDIA_FOLDERS, type MediaFolder } from '../../config/data-paths.ts'
import { createFileList, openFileList } from '../../db/sqlite/snapshot.ts'
import type { BlobStat, BlobStore } from '../../storage/blob-store.ts'

export type StoredFile = Pick<BlobStat, 'sizeBytes' | 'file'>

/** What stores have, to be asked for each of a million names. */
type StoredNames = AsyncDisposable & { find(folder: MediaFolder, name: string): Promise<StoredFile | undefined> }

type Stores = Readonly<Record<MediaFolder, BlobStore>>

const NO_HASH = Buffer.alloc(32)

/**
 * Lists what is in stores that charge for each question, into a file, and asks the others each time.
 * @param folder for the file; it is removed again
 */
export async function openStoredNames(stores: Stores, folder: string): Promise<StoredNames> {
  const path = join(folder, `names-${process.hrtime.bigint()}.db`)
  const remove = () => rmSync(path, { force: true })
  if (!MEDIA_FOLDERS.some((kind) => stores[kind].listStats))
    return { find: (kind, name) => stores[kind].stat(name), [Symbol.asyncDispose]: async () => undefined }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  try {
    using names = createFileList(path)
    for (const kind of MEDIA_FOLDERS)
      for await (const found of stores[kind].listStats?.() ?? [])
        names.add({ ...found, folder: kind, sha256: NO_HASH, verifiedAtMs: 0 })
    names.finish()
  } catch (error) {
    remove()
    throw error
  }
  const list = openFileList(path)
  return {
    find: async (kind, name) => {
      if (!stores[kind].listStats) return stores[kind].stat(name)
      const found = list.find(kind, name)
      return found && { sizeBytes: found.sizeBytes }
    },
    async [Symbol.asyncDispose]() {
      list[Symbol.dispose]()
      remove()
    },
  }
}
