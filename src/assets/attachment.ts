import { randomBytes } from 'node:crypto'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { wrapFileKey } from '../catalogue/file-key.ts'
import { insertAttachment } from '../catalogue/file-store.ts'
import type { CatalogueDeps } from '../catalogue/video.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { sealBlob } from '../crypto/sealed-blob.ts'
import { newToken } from '../crypto/secret.ts'
import type { NewFile } from '../db/tables.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { videoNotFound } from '../errors.ts'
import { putBlob, removeBlobAndEmptyFolders } from '../storage/folder.ts'

export type AttachmentDeps = CatalogueDeps & { masterKey: MasterKey; folders: VideoFolders }

/** Before anything is read of what is to be added. @throws Failure `not-found` when the account has no such video */
export async function assertVideoExists({ db }: Pick<AttachmentDeps, 'db'>, accountId: string, videoId: string): Promise<void> {
  if (!(await findVideo(db, accountId, videoId))) throw videoNotFound()
}

/** One file of what an owner adds to a video by one call. */
export type NewAttachment = { bytes: Buffer; widthPx?: number; heightPx?: number; token?: string }

/**
 * Stores what an owner adds to a video, each file sealed under a key of its own: it may come before the video, and outlives its
 * generations. Durable when it resolves; it shows from then on.
 * @returns the files' numbers, in their order
 * @throws Failure `not-found` when the account has no such video; nothing is left then
 */
export async function storeAttachment(
  deps: AttachmentDeps,
  accountId: string,
  by: Actor,
  place: { videoId: string; type: 'poster' | 'caption'; language: string | null },
  added: readonly NewAttachment[],
): Promise<{ id: number; createdAtS: number }[]> {
  const folder = place.type === 'poster' ? deps.folders.posters : deps.folders.files
  const common = { ...place, createdAtS: deps.wallNowS(), attachmentId: newToken() }
  const files: NewFile[] = added.map(({ bytes, ...shape }) => {
    const blob = `${place.videoId}/${newToken()}.sealed`
    return { ...common, ...shape, blob, sizeBytes: bytes.length }
  })
  try {
    for (const [index, file] of files.entries()) {
      const key = randomBytes(32)
      const blob = file.blob ?? ''
      file.wrappedKey = wrapFileKey(deps.masterKey, blob, key)
      await putBlob(folder, blob, sealBlob(key, blob, added[index]?.bytes ?? Buffer.alloc(0)))
    }
    const ids = await deps.write(async (tx) => {
      const ids = await insertAttachment(tx, accountId, place, files)
      if (!ids) throw videoNotFound()
      const act = { atS: common.createdAtS, accountId, by, kind: 'file:added', details: place } as const
      await recordAuditEvent(tx, { ...act, subjects: ids.map(String) })
      return ids
    })
    return ids.map((id) => ({ id, createdAtS: common.createdAtS }))
  } catch (error) {
    // What may have been committed stays: the sweep takes it if it was not.
    if (!isCommitOutcomeUnknown(error)) for (const { blob } of files) await removeBlobAndEmptyFolders(folder, blob ?? '')
    throw error
  }
}
