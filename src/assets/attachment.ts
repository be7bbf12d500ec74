import { randomBytes } from 'node:crypto'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { CatalogueDeps } from '../catalogue/catalogue-deps.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { wrapFileKey } from '../catalogue/file-key.ts'
import { insertAttachment } from '../catalogue/file-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { sealBlob } from '../crypto/sealed-blob.ts'
import { newToken } from '../crypto/secret.ts'
import type { FileRow, NewFile } from '../db/tables.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { Failure, videoNotFound } from '../errors.ts'
import type { BlobStore } from '../storage/blob-store.ts'

export type AttachmentDeps = CatalogueDeps & { masterKey: MasterKey; folders: VideoFolders }

/** To be called before an upload is read. @throws Failure `not-found` when the account has no such video */
export async function assertVideoExists({ db }: Pick<AttachmentDeps, 'db'>, accountId: string, videoId: string): Promise<void> {
  if (!(await findVideo(db, accountId, videoId))) throw videoNotFound()
}

/** Files that an owner adds to a video by one call, such as the sizes of a poster. */
type Attachment = {
  accountId: string
  by: Actor
  slot: { videoId: string; type: 'poster' | 'caption'; language: string | null }
  files: readonly { bytes: Buffer; widthPx?: number; heightPx?: number; token?: string }[]
}

/**
 * Stores an attachment, each file sealed under a key of its own: it may come before the upload, and outlives generations.
 * Durable when it resolves; from then on it replaces the previous attachment in its slot.
 * @returns the ids of the files, in their order
 * @throws Failure `not-found` when the account has no such video; nothing is stored then
 */
export async function storeAttachment(
  deps: AttachmentDeps,
  { accountId, by, slot, files }: Attachment,
): Promise<{ id: number; createdAtS: number }[]> {
  const folder = assetFolder(deps.folders, slot)
  const createdAtS = deps.wallNowS()
  const attachmentId = newToken()
  const blobs: string[] = []
  try {
    const sealedFiles: { row: NewFile; blob: string; key: Buffer }[] = []
    for (const { bytes, ...shape } of files) {
      const key = randomBytes(32)
      const blob = `${slot.videoId}/${newToken()}.sealed`
      blobs.push(blob)
      await folder.put(blob, sealBlob(key, blob, bytes))
      const row = { ...slot, ...shape, createdAtS, attachmentId, blob, sizeBytes: bytes.length }
      sealedFiles.push({ row, blob, key })
    }
    const ids = await deps.write(async (tx) => {
      const rows = sealedFiles.map(({ row, blob, key }) => ({ ...row, wrappedKey: wrapFileKey(deps.masterKey, blob, key) }))
      const ids = await insertAttachment(tx, accountId, slot, rows)
      if (!ids) throw videoNotFound()
      const subjects = ids.map(String)
      await recordAuditEvent(tx, { atS: createdAtS, accountId, by, kind: 'file:added', subjects, details: slot })
      return ids
    })
    return ids.map((id) => ({ id, createdAtS }))
  } catch (error) {
    // A blob whose row may have been committed must stay; the sweep removes it if there is no row.
    if (!isCommitOutcomeUnknown(error)) for (const blob of blobs) await folder.remove(blob)
    throw error
  }
}

const PICTURES: readonly FileRow['type'][] = ['poster', 'poster-candidate', 'storyboard']

/** Where the blobs of posters and their candidates, storyboards, captions and MP4s are. */
export function assetFolder(folders: VideoFolders, { type }: Pick<FileRow, 'type'>): BlobStore {
  return PICTURES.includes(type) ? folders.posters : folders.files
}

/** The refusal of an upload beyond its limit. @param what begins the sentence, such as `A poster` */
export function uploadTooLarge(what: string, maxBytes: number): Failure {
  return new Failure('too-large', `${what} has at most ${maxBytes / 2 ** 20} MiB.`)
}
