import { checkStoredFile } from '../../assets/file-check.ts'
import type { MasterKey } from '../../crypto/master-key.ts'
import type { FileList, ListedFile, NamedFile, NewFileList, Snapshot } from '../../db/sqlite/snapshot.ts'
import { createBlobCopier } from '../../storage/copy.ts'
import { forEachAtOnce } from './for-each-at-once.ts'
import type { MediaPaths } from './media-paths.ts'

/** As many files are copied at a time: enough that a disk is never idle. */
const COPIES = 8

/** A file that was read and found intact is not read again for so long: disks lose bytes that nothing reads. */
const VERIFIED_FOR_MS = 30 * 24 * 3_600_000

export type AddMedia = {
  from: MediaPaths
  to: MediaPaths
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
  const added: AddedMedia = { copiedBytes: 0, linkedBytes: 0, missing: [], damaged: [] }
  const copier = createBlobCopier(from, to)
  let canLink = true
  let doneBytes = 0

  async function add(file: NamedFile): Promise<void> {
    const { folder, name } = file
    const kept = await keep(file)
    if (kept) list.add({ folder, name, ...kept })
    else added.missing.push(file)
    doneBytes += file.sizeBytes
    progress(doneBytes)
  }

  /** Undefined: nowhere is the file as it was published. */
  async function keep(file: NamedFile): Promise<Kept | undefined> {
    const [original, existing] = [await copier.statSource(file), await copier.statCopy(file)]
    const found = findKnown(file)
    const isSame = !canLink || original?.dev !== existing?.dev || original?.ino === existing?.ino
    if (existing && found?.sizeBytes === existing.size && isSame) {
      if (!isDue(found)) return found
      const verified = await verify(file, 'hashCopy', existing.size)
      if (verified) return verified
    }
    const brought = original && (await bring(file, original.size))
    if (brought) return brought
    added.damaged.push(file)
    return existing && verify(file, 'hashCopy', existing.size)
  }

  /** From the installation. Undefined: the file is damaged there, and what the backup has of it stays. */
  async function bring(file: NamedFile, sizeBytes: number): Promise<Kept | undefined> {
    if (canLink) {
      const verified = await verify(file, 'hashSource', sizeBytes)
      const outcome = verified ? await copier.link(file) : 'missing'
      if (outcome === 'missing') return undefined
      canLink = outcome === 'linked'
      if (canLink) {
        added.linkedBytes += sizeBytes
        return verified
      }
    }
    const sha256 = await copier.copy(file, checkStoredFile(masterKey, file))
    if (!sha256) return undefined
    added.copiedBytes += sizeBytes
    return { sizeBytes, sha256, verifiedAtMs: nowMs }
  }

  async function verify(file: NamedFile, hash: 'hashSource' | 'hashCopy', sizeBytes: number): Promise<Kept | undefined> {
    signal.throwIfAborted()
    const sha256 = await copier[hash](file, checkStoredFile(masterKey, file))
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
  copier.syncNames()
  return added
}
