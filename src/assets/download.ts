import { createHmac } from 'node:crypto'
import { Readable } from 'node:stream'
import { requirePermission } from '../accounts/api-key.ts'
import { findLiveKey } from '../accounts/api-key-store.ts'
import type { Caller } from '../accounts/permission.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { timelineStartMs } from '../catalogue/chapters-store.ts'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { openFileKey } from '../catalogue/file-key.ts'
import { findFileAnywhere } from '../catalogue/file-store.ts'
import { listPosterCandidates } from '../catalogue/poster-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { deriveKey, type MasterKey } from '../crypto/master-key.ts'
import { openBlob } from '../crypto/sealed-blob.ts'
import { readSealed, type Seal } from '../crypto/sealed-file.ts'
import type { Db } from '../db/database.ts'
import type { FileRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { findGeneration } from '../encode/generation-store.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { openSourceSeal } from '../ingest/source.ts'
import { findSource, type SourceRow } from '../ingest/source-store.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import { isLiveSignIn } from '../users/sign-in-store.ts'
import { assetFolder } from './attachment.ts'
import type { DamagedFiles, UnreadFile } from './damaged-file.ts'
import { findStoryboard } from './storyboard.ts'
import { addedTrackOf, describeFile, getFile } from './video-file.ts'
import { shiftWebVtt } from './webvtt.ts'

export type DownloadDeps = {
  db: Db
  write: Write
  slowQueryDb: Db
  masterKey: MasterKey
  folders: VideoFolders
  damagedFiles: DamagedFiles
  /** The playback clock: an expired address never becomes valid again. */
  nowS: () => number
}

/** Long enough to start a download and to resume it, whatever its size. */
const PATH_TTL_S = 3600

/** The types that are a video or its sound in the clear: they need a permission of their own, and are recorded in the audit log. */
const CLEAR_SOURCES: readonly string[] = ['original', 'mp4', 'audio']

/** The signed part of a download address. `exp`: Unix seconds of the playback clock; `keyId`: the API key or the sign-in that requested it. */
type DownloadPath = { exp: number; keyId: string; fileId: number }

/**
 * The short-lived path of a file, relative to the public URL. It needs no key, and is valid only as long as the key or the sign-in
 * that requested it.
 * @throws Failure `not-found`; `forbidden` for a type that cannot be downloaded, or that this key may not download
 */
export async function downloadPath(deps: DownloadDeps, holder: Caller, videoId: string, fileId: number): Promise<string> {
  const { accountId } = holder
  const file = await getFile(deps, accountId, videoId, fileId)
  if (!file.isDownloadable)
    throw new Failure(
      'forbidden',
      'This file cannot be downloaded: only originals, posters, captions, finished MP4s and the files of added audio tracks can.',
    )
  const isClear = CLEAR_SOURCES.includes(file.type)
  requirePermission(holder, isClear ? 'downloader' : 'viewer')
  if (isClear) {
    const details = { fileId, type: file.type }
    const event = { accountId, by: holder, kind: 'file:downloaded', subjects: [videoId], details } as const
    await deps.write((tx) => recordAuditEvent(tx, { ...event, atS: deps.nowS() }))
  }
  return signedPath(deps, holder, fileId)
}

/**
 * The storyboard of what a video plays, with a short-lived path for each of its sheets, as `downloadPath` has them.
 * @returns undefined: it has none, or none yet
 * @throws Failure `not-found` when the account has no such video
 */
export async function getStoryboard(deps: DownloadDeps, holder: Caller, videoId: string) {
  const video = await findVideo(deps.db, holder.accountId, videoId)
  if (!video) throw videoNotFound()
  const found = await findStoryboard(deps.db, { videoId, generation: video.generation })
  if (!found) return undefined
  const { storyboard, durationS, sheets } = found
  return { storyboard, durationS, paths: sheets.map(({ id }) => signedPath(deps, holder, id)) }
}

/**
 * The frames of what a video plays that are offered as posters, the best first, each with a short-lived path, as `downloadPath` has them.
 * @throws Failure `not-found` when the account has no such video
 */
export async function getPosterCandidates(deps: DownloadDeps, holder: Caller, videoId: string) {
  const video = await findVideo(deps.db, holder.accountId, videoId)
  if (!video) throw videoNotFound()
  const candidates = await listPosterCandidates(deps.db, { videoId, generation: video.generation })
  return candidates.map(({ id, ...candidate }) => ({ ...candidate, path: signedPath(deps, holder, id) }))
}

function signedPath({ nowS, masterKey }: DownloadDeps, holder: Caller, fileId: number): string {
  const keyId = 'apiKeyId' in holder ? holder.apiKeyId : holder.signInId
  const exp = nowS() + PATH_TTL_S
  return `download/${exp}/${sign(masterKey, { exp, keyId, fileId })}/${keyId}/${fileId}`
}

function sign(master: MasterKey, { exp, keyId, fileId }: DownloadPath): string {
  const key = deriveKey(master.bytes, 'reelgate download 2', 32)
  return createHmac('sha256', key).update(`${exp}/${keyId}/${fileId}`).digest('base64url')
}

/** A file to be sent. `read` returns a part of it; both ends of the range are inclusive. */
type Download = {
  videoId: string
  name: string
  /** Another one whenever the bytes are others: those of captions move with a trim. */
  version: string
  contentType: string
  sizeBytes: number
  /** @throws Failure `not-found` when the file was deleted meanwhile; DamagedFile; by the call or by the stream */
  read(range: { first: number; last: number }): Promise<Readable>
}

/** Whether a path was made by `downloadPath` and has not expired, and the key or the sign-in that requested it is still valid. */
export async function mayDownload(
  { db, masterKey, nowS }: Pick<DownloadDeps, 'db' | 'masterKey' | 'nowS'>,
  path: DownloadPath & { sig: string },
): Promise<boolean> {
  const isSigned = path.exp > nowS() && equalsInConstantTime(sign(masterKey, path), path.sig)
  if (!isSigned) return false
  return (await findLiveKey(db, path.keyId, nowS())) !== undefined || isLiveSignIn(db, path.keyId, nowS())
}

/** @throws Failure `not-found` when the file, or its video, is deleted, or its account disabled */
export async function getDownload(deps: DownloadDeps, fileId: number): Promise<Download> {
  const found = await findFileAnywhere(deps.db, fileId)
  if (!found) throw fileGone()
  const { file, accountId } = found
  const described = await describeFile(deps, accountId, file)
  if (!described?.isDownloadable) throw fileGone()
  const { videoId } = file
  const source = await findSourceOf(deps, file)
  const { name, sizeBytes } = source && file.type === 'rendition' ? { ...source, name: source.fileName } : described
  const read = await createReader(deps, found, source)
  const earlierMs = file.type === 'caption' ? timelineStartMs(found) : 0
  const download = { videoId, name, version: `${fileId}`, sizeBytes, contentType: CONTENT_TYPES[file.type], read }
  if (earlierMs === 0) return download
  const stored = Buffer.concat(await Array.fromAsync(await read({ first: 0, last: sizeBytes })))
  const shifted = Buffer.from(shiftWebVtt(stored.toString(), earlierMs))
  return {
    ...download,
    version: `${fileId}-${earlierMs}`,
    sizeBytes: shifted.length,
    read: async ({ first, last }) => Readable.from([shifted.subarray(first, last + 1)]),
  }
}

/** What was uploaded: the video's file, or that of an audio track that was added. Undefined for other files. */
async function findSourceOf({ db }: DownloadDeps, file: FileRow): Promise<SourceRow | undefined> {
  if (file.type === 'original') return findSource(db, file.videoId, file.sourceNumber ?? undefined)
  if (file.type !== 'rendition') return undefined
  const generation = await findGeneration(db, { videoId: file.videoId, generation: file.generation ?? 0 })
  const added = addedTrackOf(file, generation?.plan)
  return added && findSource(db, file.videoId, added.sourceNumber)
}

/** @throws Failure `not-found` when the file's key or source is gone */
async function createReader(
  deps: DownloadDeps,
  { file, wrappedContentKey }: { file: FileRow; wrappedContentKey: Buffer | null },
  source: SourceRow | undefined,
): Promise<Download['read']> {
  if (file.type === 'original' || file.type === 'rendition') {
    if (!source?.wrappedKey) throw fileGone()
    const seal = openSourceSeal(deps, { ...source, wrappedKey: source.wrappedKey })
    return sealedReader({ kind: 'original', videoId: file.videoId, name: source.file }, deps.folders.sources, seal, source.macs)
  }
  const blob = file.blob ?? ''
  const key = openFileKey(deps.masterKey, { ...file, blob, wrappedContentKey })
  if (!key) throw fileGone()
  const folder = assetFolder(deps.folders, file)
  const unread: UnreadFile = { kind: file.type, videoId: file.videoId, name: blob }
  if (file.iv && file.macs) return sealedReader(unread, folder, { key, iv: file.iv }, file.macs)
  return async ({ first, last }) => {
    const clear = await folder
      .read(blob)
      .then((sealed) => openBlob(key, blob, sealed))
      .catch((error) => rethrow(unread, error))
    return Readable.from([clear.subarray(first, last + 1)])
  }

  /** Its first bytes are read before anything is sent: a file that is missing or changed there is an answer, not a broken stream. */
  function sealedReader(unread: UnreadFile, folder: BlobStore, seal: Seal, macs: Buffer): Download['read'] {
    async function* clear(range: { first: number; last: number }): AsyncGenerator<Buffer> {
      try {
        await using opened = await folder.open(unread.name)
        yield* readSealed(opened, seal, macs, range)
      } catch (error) {
        await rethrow(unread, error)
      }
    }
    return async (range) => {
      for await (const _ of clear({ ...range, last: range.first })) break
      // Opened only when the stream is read: if the client is gone by then, the stream is never read, and a file that is left
      // open ends this process.
      return Readable.from(clear(range), { objectMode: false, highWaterMark: 2 ** 20 })
    }
  }

  /** Not found if the file was deleted meanwhile; otherwise the disk has lost it. */
  async function rethrow(unread: UnreadFile, error: unknown): Promise<never> {
    if (!(await findFileAnywhere(deps.db, file.id))) throw fileGone()
    throw await deps.damagedFiles.report(unread, error)
  }
}

function fileGone(): Failure {
  return new Failure('not-found', 'This file is not there any more.')
}

const CONTENT_TYPES = {
  poster: 'image/jpeg',
  'poster-candidate': 'image/jpeg',
  caption: 'text/vtt; charset=utf-8',
  mp4: 'video/mp4',
  storyboard: 'image/webp',
  original: 'application/octet-stream', // never a type that a browser would open: owners upload anything
  rendition: 'application/octet-stream',
} as const
