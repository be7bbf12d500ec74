import { checkStoredFile } from '../../assets/file-check.ts'
import type { VideoFolders } from '../../catalogue/deletion.ts'
import type { MediaFolder } from '../../config/data-paths.ts'
import type { MasterKey } from '../../crypto/master-key.ts'
import type { FileList, ListedFile, NamedFile, NewFileList, Snapshot } from '../../db/sqlite/snapshot.ts'
import { StorageUnavailable } from '../../errors.ts'
import { type BlobStore, ignoreLost } from '../../storage/blob-store.ts'
import { copyBlob, hashBlob } from '../../storage/copy.ts'
import type { BulkFolder } from '../../storage/folder.ts'
import { forEachAtOnce } from './for-each-at-once.ts'
import { openStoredNames, type StoredFile } from './stored-names.ts'

/** As many files are copied at a time: enough that a disk is never idle. Of large ones a bucket takes some parts each into memory. */
const COPIES = 8
const COPIES_TO_BUCKET = 4

/** A file that was read and found intact is not read again for so long: disks lose bytes that nothing reads. */
const VERIFIED_FOR_MS = 30 * 24 * 3_600_000

/** Of a backup: `syncNames` where they are files. */
export type Copies = Readonly<Record<MediaFolder, BlobStore & Partial<Pick<BulkFolder, 'syncNames'>>>>

export type AddMedia = {
  from: VideoFolders
  /** Undefined: the files stay where they are, and are listed alone. Then one is read once, and a segment never: its row has its hash. */
  to: Copies | undefined
  /** For what is needed meanwhile. */
  scratch: string
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
 * SHA-256. Each is read and compared with what was published when it enters the backup, and again after 30 days; but nothing is read out
 * of a bucket again, which checks what it keeps and charges for it.
 */
export async function addMedia(snapshot: Snapshot, list: NewFileList, options: AddMedia): Promise<AddedMedia> {
  const { from, to, known, masterKey, nowMs, verifyAll, signal, progress } = options
  const added: AddedMedia = { copiedBytes: 0, linkedBytes: 0, missing: [], unavailable: undefined, damaged: [] }
  const [isFromBucket, isToBucket] = [from, to].map((stores) => stores?.segments.listStats !== undefined)
  let canShare = !isFromBucket && !isToBucket
  let doneBytes = 0
  await using originals = await openStoredNames(from, options.scratch)
  await using copies = to && (await openStoredNames(to, options.scratch))

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
    const original = await originals.find(file.folder, file.name)
    if (to && copies) return keepCopy(to, file, original, await copies.find(file.folder, file.name))
    const found = findKnown(file)
    if (!verifyAll && original && found?.sizeBytes === original.sizeBytes) return found
    const kept =
      original && (verifyAll || !file.sha256 ? await verify(from, file, original.sizeBytes) : asInRow(file, original.sizeBytes))
    if (!kept) added.damaged.push(file)
    return kept
  }

  async function keepCopy(to: Copies, file: NamedFile, original: StoredFile | undefined, existing: StoredFile | undefined) {
    const found = findKnown(file)
    // A file that was replaced, as by a repair, is another one on the same disk.
    const [its, copy] = [original?.file, existing?.file]
    const isSame = !canShare || its?.device !== copy?.device || its?.inode === copy?.inode
    if (existing && found?.sizeBytes === existing.sizeBytes && isSame) {
      if (!isDue(found)) return found
      const verified = await verify(to, file, existing.sizeBytes)
      if (verified) return verified
    }
    // Put by a run that was ended: an object is whole, and was verified on its way.
    if (isToBucket && !verifyAll && existing && existing.sizeBytes === original?.sizeBytes && file.sha256)
      return asInRow(file, existing.sizeBytes)
    const brought = original && (await addFromInstallation(to, file, original.sizeBytes))
    if (brought) return brought
    added.damaged.push(file)
    return existing && verify(to, file, existing.sizeBytes)
  }

  /** Undefined: the file is damaged there, and what the backup has of it stays. */
  async function addFromInstallation(to: Copies, file: NamedFile, sizeBytes: number): Promise<Kept | undefined> {
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
    const isOld = !isToBucket && Math.abs(nowMs - verifiedAtMs) > VERIFIED_FOR_MS
    return isOld || (verifyAll && verifiedAtMs !== nowMs)
  }

  function findKnown({ folder, name, sha256 }: NamedFile): Kept | undefined {
    for (const list of known) {
      const found = list.find(folder, name)
      if (found && (sha256 === null || found.sha256.equals(sha256)))
        return { sizeBytes: found.sizeBytes, sha256: found.sha256, verifiedAtMs: found.verifiedAtMs }
    }
  }

  await forEachAtOnce(snapshot.files(), isToBucket ? COPIES_TO_BUCKET : COPIES, async (file) => {
    signal.throwIfAborted()
    await add(file)
  })
  for (const folder of Object.values(to ?? {})) folder.syncNames?.()
  return added
}

/** A segment that was not read: its row has its hash. */
const asInRow = ({ sha256 }: NamedFile, sizeBytes: number): Kept | undefined =>
  sha256 ? { sizeBytes, sha256, verifiedAtMs: 0 } : undefined
