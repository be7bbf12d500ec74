import { dirname } from 'node:path'
import type { FileList, ListedFile, NamedFile, NewFileList, Snapshot } from '../../db/sqlite/snapshot.ts'
import { copyFile, hashFile, linkFile, statFile } from '../../storage/copy.ts'
import { blobPath, syncInPlace } from '../../storage/folder.ts'
import { forEachAtOnce } from './for-each-at-once.ts'
import type { MediaPaths } from './media-paths.ts'

/** As many files are copied at a time: enough that a disk is never idle. */
const COPIES = 8

export type AddMedia = {
  from: MediaPaths
  to: MediaPaths
  /** What is known of the files in `to`: the lists of the last backup and of earlier attempts at this one. */
  known: readonly FileList[]
  signal: AbortSignal
  progress(sizeBytes: number): void
}

export type AddedMedia = {
  /** Bytes that were copied; a hard link has none. */
  copiedBytes: number
  linkedBytes: number
  /** Files that a row names and that do not exist, or are not as they were published. */
  missing: string[]
}

/**
 * Adds every file that a snapshot names to the backup, by a hard link where the file system is the same, and lists it with its
 * SHA-256. A file that the backup has already is not read again.
 */
export async function addMedia(snapshot: Snapshot, list: NewFileList, options: AddMedia): Promise<AddedMedia> {
  const { from, to, known, signal, progress } = options
  const added: AddedMedia = { copiedBytes: 0, linkedBytes: 0, missing: [] }
  const changedFolders = new Set<string>()
  let canLink = true
  let doneBytes = 0

  async function add(file: NamedFile): Promise<void> {
    const { folder, name } = file
    const listed = await bring(file, blobPath(from[folder], name), blobPath(to[folder], name))
    if (listed) list.add({ folder, name, ...listed })
    else if (!file.damaged) added.missing.push(`${folder}/${name}`)
    doneBytes += file.sizeBytes
    progress(doneBytes)
  }

  /** Undefined: the file is missing, or is not what was published. */
  async function bring(
    file: NamedFile,
    source: string,
    copy: string,
  ): Promise<Pick<ListedFile, 'sizeBytes' | 'sha256'> | undefined> {
    const [original, existing] = [await statFile(source), await statFile(copy)]
    const found = findKnown(file)
    const isSame = !canLink || original?.dev !== existing?.dev || original?.ino === existing?.ino
    if (existing && found?.sizeBytes === existing.size && isSame) return found
    if (!original) return existing && verify(file, existing.size, await hashFile(copy))
    changedFolders.add(dirname(copy))
    if (canLink) {
      const outcome = await linkFile(source, copy)
      if (outcome === 'missing') return undefined
      canLink = outcome === 'linked'
      if (canLink) {
        added.linkedBytes += original.size
        return verify(file, original.size, file.sha256 ?? (await hashFile(copy)))
      }
    }
    const sha256 = await copyFile(source, copy)
    if (sha256) added.copiedBytes += original.size
    return verify(file, original.size, sha256)
  }

  function findKnown({ folder, name, sha256 }: NamedFile) {
    for (const list of known) {
      const found = list.find(folder, name)
      if (found && (sha256 === null || found.sha256.equals(sha256))) return found
    }
  }

  await forEachAtOnce(snapshot.files(), COPIES, async (file) => {
    signal.throwIfAborted()
    await add(file)
  })
  syncFolders(
    changedFolders,
    Object.values(to).map(({ root }) => root),
  )
  return added
}

function verify(file: NamedFile, sizeBytes: number, sha256: Buffer | undefined) {
  if (!sha256 || (file.sha256 && !sha256.equals(file.sha256))) return undefined
  return { sizeBytes, sha256 }
}

/** Makes the names of new files durable, from their folders up to the roots. */
function syncFolders(folders: ReadonlySet<string>, roots: readonly string[]): void {
  const all = new Set<string>()
  for (const folder of folders)
    for (let at = folder; !all.has(at); at = dirname(at)) {
      all.add(at)
      if (roots.includes(at)) all.add(dirname(at))
      if (roots.includes(at)) break
    }
  for (const folder of all) syncInPlace(folder)
}
