import { checkStoredFile } from '../../assets/file-check.ts'
import type { VideoFolders } from '../../catalogue/deletion.ts'
import type { MediaFolder } from '../../config/data-paths.ts'
import type { MasterKey } from '../../crypto/master-key.ts'
import type { FileList, ListedFile, NamedFile, NewFileList, Snapshot } from '../../db/sqlite/snapshot.ts'
import { StorageUnavailable } from '../../errors.ts'
import { ignoreLost } from '../../storage/blob-store.ts'
import { copyBlob, hashBlob } from '../../storage/copy.ts'
import type { BulkFolder } from '../../storage/folder.ts'
import { forEachAtOnce } from './for-each-at-once.ts'

/** As many files are copied at a time: enough that a disk is never idle. */
const COPIES = 8

/** A file that was read and found intact is not read again for so long: disks lose bytes that nothing reads. */
const VERIFIED_FOR_MS = 30 * 24 * 3_600_000

export type AddMedia = {
  from: VideoFolders
  to: Readonly<Record<MediaFolder, BulkFolder>>
  /** What is known of the files in `to`: the lists of the last backup and of earlier attempts at this one. */
  known: readonly FileList[]
  /** Verifies sealed files; without it they are only read. */
  masterKey: MasterKey | undefined
  nowMs: number
  /** Reads every file again. */
  verifyAll: boolean
  signal: AbortSignal
  progress(sizeBytes: number): void
}

export type AddedMedia = {
  /** Bytes that were copied; a hard link has none. */
  copiedBytes: number
  linkedBytes: number
  /** Files that are missing or damaged in the installation, and are not in the backup either. */
  missing: NamedFile[]
  /** Why some of these may only be out of reach, such as those of a disk that is not mounted. */
  unavailable: StorageUnavailable | undefined
  /** Files that are missing or damaged in the installation; the backup may have them from before. */
  damaged: NamedFile[]
}

type Kept = Omit<ListedFile, 'folder' | 'name'>

/**
 * Adds every file that a snapshot names to the backup, by a hard link where the file system is the same, and lists it with its
 * SHA-256. Each is read and compared with what was published when it enters the backup, and again after 30 days.
 */
export async function addMedia(snapshot: Snapshot, list: NewFileList, options: AddMedia): Promise<AddedMedia> {
  const { from, to, known, masterKey, nowMs, verifyAll, signal, progress } = options
  const added: AddedMedia = { copiedBytes: 0, linkedBytes: 0, missing: [], unavailable: undefined, damaged: [] }
  let canShare = true
  let doneBytes = 0

  async function add(file: NamedFile): Promise<void> {
    const { folder, name } = file
    const kept = await keep(file).catch((error) => {
      if (!(error instanceof StorageUnavailable)) throw error
      added.unavailable = error
    })
    if (kept) list.add({ folder, name, ...kept })
    else added.missing.push(file)
    doneBytes += file.sizeBytes
    progress(doneBytes)
  }

  /** Undefined: nowhere is the file as it was published. */
  async function keep(file: NamedFile): Promise<Kept | undefined> {
    const { folder, name } = file
    const [original, existing] = [await from[folder].stat(name), await to[folder].stat(name)]
    const found = findKnown(file)
    // A file that was replaced, as by a repair, is another one on the same disk.
    const [its, copy] = [original?.file, existing?.file]
    const isSame = !canShare || its?.device !== copy?.device || its?.inode === copy?.inode
    if (existing && found?.sizeBytes === existing.sizeBytes && isSame) {
      if (!isDue(found)) return found
      const verified = await verify(to, file, existing.sizeBytes)
      if (verified) return verified
    }
    const brought = original && (await addFromInstallation(file, original.sizeBytes))
    if (brought) return brought
    added.damaged.push(file)
    return existing && verify(to, file, existing.sizeBytes)
  }

  /** Undefined: the file is damaged there, and what the backup has of it stays. */
  async function addFromInstallation(file: NamedFile, sizeBytes: number): Promise<Kept | undefined> {
    const { folder, name } = file
    if (canShare) {
      const verified = await verify(from, file, sizeBytes)
      const isShared = verified && (await to[folder].adopt(name, from[folder]).catch(ignoreLost))
      if (isShared === undefined) return undefined
      canShare = isShared
      if (isShared) {
        added.linkedBytes += sizeBytes
        return verified
      }
    }
    const copy = await copyBlob(from[folder], to[folder], name, checkStoredFile(masterKey, file))
    if (copy) added.copiedBytes += sizeBytes
    return copy && { ...copy, verifiedAtMs: nowMs }
  }

  async function verify(files: VideoFolders, file: NamedFile, sizeBytes: number): Promise<Kept | undefined> {
    signal.throwIfAborted()
    const sha256 = await hashBlob(files[file.folder], file.name, checkStoredFile(masterKey, file))
    return sha256 && { sizeBytes, sha256, verifiedAtMs: nowMs }
  }

  /** One from the future has another clock. */
  function isDue({ verifiedAtMs }: Kept): boolean {
    return Math.abs(nowMs - verifiedAtMs) > VERIFIED_FOR_MS || (verifyAll && verifiedAtMs !== nowMs)
  }

  function findKnown({ folder, name, sha256 }: NamedFile): Kept | undefined {
    for (const list of known) {
      const found = list.find(folder, name)
      if (found && (sha256 === null || found.sha256.equals(sha256)))
        return { sizeBytes: found.sizeBytes, sha256: found.sha256, verifiedAtMs: found.verifiedAtMs }
    }
  }

  await forEachAtOnce(snapshot.files(), COPIES, async (file) => {
    signal.throwIfAborted()
    await add(file)
  })
  for (const folder of Object.values(to)) folder.syncNames()
  return added
}
