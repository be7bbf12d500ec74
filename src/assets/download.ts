import { createHmac } from 'node:crypto'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { requirePermission } from '../accounts/api-key.ts'
import { findLiveKey } from '../accounts/api-key-store.ts'
import type { ApiKeyHolder } from '../accounts/permission.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { openFileKey } from '../catalogue/file-key.ts'
import { findFileAnywhere } from '../catalogue/file-store.ts'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { deriveKey, type MasterKey } from '../crypto/master-key.ts'
import { openBlob } from '../crypto/sealed-blob.ts'
import { readSealed, type Seal } from '../crypto/sealed-file.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { openSourceSeal } from '../ingest/source.ts'
import { findSource } from '../ingest/source-store.ts'
import { type BlobFolder, blobPath } from '../storage/folder.ts'
import { assetFolder, describeFile, getFile } from './video-file.ts'

export type DownloadDeps = {
  db: Db
  write: Write
  slowDb: Db
  masterKey: MasterKey
  folders: VideoFolders
  /** The playback clock: an address that has expired never comes back to life. */
  nowS: () => number
}

/** An hour: long enough to begin the download and to resume it, of a video of any size. */
const LIFE_S = 3600

/** The kinds that are a whole video in the clear: they need a permission of their own, and their downloads are on record. */
const CLEAR_VIDEOS: readonly string[] = ['original', 'mp4']

/** The address of a file without its signature. `exp`: Unix seconds of the playback clock; `keyId`: the API key that asked for it. */
type DownloadPath = { exp: number; keyId: string; fileId: number }

/**
 * The short-lived address of a file, which needs no key and dies with the one that asked for it: below the installation's root.
 * @throws Failure `not-found`; `forbidden` for a kind that is not for downloads, or not for this key
 */
export async function downloadPath(deps: DownloadDeps, holder: ApiKeyHolder, videoId: string, fileId: number): Promise<string> {
  const { accountId, apiKeyId: keyId } = holder
  const file = await getFile(deps, accountId, videoId, fileId)
  if (!file.isDownloadable)
    throw new Failure('forbidden', 'This file cannot be downloaded: only originals, posters, captions and finished MP4s can.')
  const isClearVideo = CLEAR_VIDEOS.includes(file.type)
  requirePermission(holder, isClearVideo ? 'downloader' : 'viewer')
  if (isClearVideo) {
    const details = { fileId, type: file.type }
    const act = { accountId, by: holder, kind: 'file:downloaded', subjects: [videoId], details } as const
    await deps.write((tx) => recordAuditEvent(tx, { ...act, atS: deps.nowS() }))
  }
  const exp = deps.nowS() + LIFE_S
  return `download/${exp}/${signatureOf(deps.masterKey, { exp, keyId, fileId })}/${keyId}/${fileId}`
}

function signatureOf(master: MasterKey, { exp, keyId, fileId }: DownloadPath): string {
  const key = deriveKey(master.bytes, 'reelgate download 2', 32)
  return createHmac('sha256', key).update(`${exp}/${keyId}/${fileId}`).digest('base64url')
}

/** A file on its way out. `read` gives a part of it; both ends are inclusive. */
export type Download = {
  videoId: string
  name: string
  contentType: string
  sizeBytes: number
  /** @throws Failure `not-found` when the file was deleted meanwhile: here, or while the stream is read */
  read(range: { first: number; last: number }): Promise<Readable>
}

/** Whether an address was made by `downloadPath`, has not expired, and the key that asked for it still lives. */
export async function mayDownload(
  { db, masterKey, nowS }: Pick<DownloadDeps, 'db' | 'masterKey' | 'nowS'>,
  path: DownloadPath & { sig: string },
): Promise<boolean> {
  const isSigned = path.exp > nowS() && equalsInConstantTime(signatureOf(masterKey, path), path.sig)
  return isSigned && (await findLiveKey(db, path.keyId, nowS())) !== undefined
}

/** @throws Failure `not-found` when the file, or its video, is deleted, or its account disabled */
export async function getDownload(deps: DownloadDeps, fileId: number): Promise<Download> {
  const found = await findFileAnywhere(deps.db, fileId)
  if (!found) throw GONE
  const { file, accountId, wrappedContentKey } = found
  const view = await describeFile(deps, accountId, file)
  if (!view?.isDownloadable) throw GONE
  const { name, sizeBytes } = view
  const { videoId } = file
  if (file.type === 'original') {
    const source = await findSource(deps.db, file.videoId)
    if (!source?.wrappedKey) throw GONE
    const seal = openSourceSeal(deps, { ...source, wrappedKey: source.wrappedKey })
    // Never a type that a browser would open: it is whatever somebody uploaded.
    const read = readerOf(() => openBlobFile(deps.folders.sources, source.file), seal, source.macs)
    return { videoId, name, sizeBytes, contentType: 'application/octet-stream', read }
  }
  const blob = file.blob ?? ''
  const key = openFileKey(deps.masterKey, { ...file, blob, wrappedContentKey })
  if (!key) throw GONE
  const folder = assetFolder(deps.folders, file)
  const contentType = CONTENT_TYPES[file.type]
  if (file.iv && file.macs)
    return {
      videoId,
      name,
      sizeBytes,
      contentType,
      read: readerOf(() => openBlobFile(folder, blob), { key, iv: file.iv }, file.macs),
    }
  const read = async ({ first, last }: { first: number; last: number }) => {
    const clear = await readFile(blobPath(folder, blob))
      .then((sealed) => openBlob(key, blob, sealed))
      .catch(toldAsGone)
    return Readable.from([clear.subarray(first, last + 1)])
  }
  return { videoId, name, sizeBytes, contentType, read }

  function openBlobFile(folder: BlobFolder, blob: string): Promise<FileHandle> {
    return open(blobPath(folder, blob)).catch(toldAsGone)
  }

  /** What fails because the file was deleted meanwhile is told as that; otherwise the disk has lost it. */
  async function toldAsGone(error: unknown): Promise<never> {
    if (!(await findFileAnywhere(deps.db, fileId))) throw GONE
    throw error
  }
}

const GONE = new Failure('not-found', 'This file is not there any more.')

const CONTENT_TYPES = {
  poster: 'image/jpeg',
  caption: 'text/vtt; charset=utf-8',
  mp4: 'video/mp4',
  original: 'application/octet-stream',
  rendition: 'application/octet-stream',
} as const

function readerOf(openFile: () => Promise<FileHandle>, seal: Seal, macs: Buffer): Download['read'] {
  return async (range) => {
    // Opened by whoever reads: of a client that is gone by then nobody does, and a file that is left open ends this process.
    async function* clear(): AsyncGenerator<Buffer> {
      await using file = await openFile()
      yield* readSealed(file, seal, macs, range)
    }
    return Readable.from(clear(), { objectMode: false, highWaterMark: 2 ** 20 })
  }
}
