import { createHash } from 'node:crypto'
import type { Actor } from '../audit/audit-log.ts'
import { type DeletionDeps, deleteVideos } from '../catalogue/deletion.ts'
import { getFolder, ROOT_FOLDER_ID } from '../catalogue/folder.ts'
import { assertMayEdit } from '../catalogue/may-edit.ts'
import { assertExternalIdsFree, type OwnFields, parseOwnFields } from '../catalogue/own-fields.ts'
import { assertReplaceable } from '../catalogue/replacement-store.ts'
import { parseTags } from '../catalogue/tag.ts'
import { insertTags } from '../catalogue/tag-store.ts'
import { parseTitle } from '../catalogue/title.ts'
import { insertVideo, listPositions, type OwnColumns, returnFilesOfToken } from '../catalogue/video-store.ts'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { newSeal, openSealing, type Seal, type Sealed, type Sealing } from '../crypto/sealed-file.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { ResumableUploadRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { BlobLost } from '../storage/blob-store.ts'
import {
  findResumableUpload,
  finishResumableUpload,
  insertResumableUpload,
  listExpiredResumableUploads,
  removeFinishedResumableUploads,
  removeUnfinishedResumableUpload,
  updateResumableUpload,
} from './resumable-upload-store.ts'
import { assertRoom, assertSize, displayName, openSourceSeal, type SourceDeps, wrapSourceKey } from './source.ts'
import { giveSource } from './upload.ts'
import { type UploadLocks, uploadLocked } from './upload-locks.ts'
import { assertMayUpload } from './upload-policy.ts'
import { applyToken, type Uploader, useToken } from './upload-token.ts'
import { setUploadReference } from './upload-token-store.ts'

// A file that arrives in parts, over any number of connections, hours apart. What is acknowledged is durable: the bytes are on the disk,
// sealed as they arrived, and the row counts them. All of them count only in the transaction that gives the video its source.

export type ResumableUploadDeps = SourceDeps &
  DeletionDeps & {
    uploadLocks: UploadLocks
    /** How long an upload is kept that gets no further. */
    uploadExpiryS: number
  }

/** A file that arrives in parts, or has arrived. */
export type ResumableUpload = ResumableUploadRow

/** What an upload begins with. */
type NewUpload = {
  /** As sent, for a client that continues it. */
  metadata: string
  title: string | undefined
  fileName: string
  folderId: string | undefined
  tags: readonly string[]
  ownFields: OwnFields
  /** Of a video whose file is to be replaced. */
  videoId: string | undefined
  /** Undefined: not known yet. */
  lengthBytes: number | undefined
}

/** How much may arrive until it is made durable, and until the disk space and the account's limit are checked again. */
const SAVE_EVERY_BYTES = 16 * 2 ** 20

/**
 * Adds a video whose file will arrive in parts; or begins what replaces the file of one. Durable when it resolves.
 * @throws Failure `forbidden` when the account's uploads are off, or for what a token does not allow; `over-quota` or `unavailable` when it
 *   does not fit; `too-large`; `invalid` for what it begins with; `not-found` without such a folder or video; `conflict` for another
 *   video's `externalId`, or a video that cannot be replaced now
 */
export async function beginUpload(deps: ResumableUploadDeps, holder: Uploader, sent: NewUpload): Promise<ResumableUploadRow> {
  assertMayUpload(holder)
  const upload = 'uploadToken' in holder ? applyToken(holder.uploadToken, sent) : sent
  const { accountId } = holder
  const { metadata, lengthBytes } = upload
  const fileName = displayName(upload.fileName)
  const replaced = upload.videoId
  if (replaced !== undefined) await assertMayReplace(deps, holder, { ...upload, videoId: replaced })
  const video = replaced === undefined ? parseNewVideo({ ...upload, fileName }) : undefined
  assertLength(deps, lengthBytes ?? 1)
  await assertRoom(deps, lengthBytes ?? 0)
  const videoId = replaced ?? newId()
  const seal = newSeal()
  const row = {
    ...{ id: newId(), videoId, accountId, metadata, fileName, lengthBytes: lengthBytes ?? null, replaces: video ? 0 : 1 },
    ...{ receivedBytes: 0, receivedState: null, expiresAtS: deps.nowS() + deps.uploadExpiryS, finishedAtS: null },
    ...newFile(deps, videoId, seal),
    uploadTokenId: 'uploadToken' in holder ? holder.uploadTokenId : null,
  }
  await deps.quota.assertNotFull(accountId)
  using reservation = deps.quota.receive(row)
  await reservation.reserve(lengthBytes ?? 0)
  await deps.write(async (tx) => {
    if (video) await addVideo(deps, tx, holder, { ...video, id: videoId })
    else await assertReplaceable(tx, accountId, videoId)
    if ('uploadToken' in holder) await useToken(tx, holder.uploadToken, videoId, deps.nowS())
    await insertResumableUpload(tx, row)
  })
  return row
}

/** @throws Failure `invalid` with values that replacing a file does not change; `forbidden` */
async function assertMayReplace(deps: ResumableUploadDeps, holder: Uploader, upload: NewUpload & { videoId: string }) {
  const { videoId, title, folderId, tags, ownFields } = upload
  if ([title, folderId, tags[0], ownFields.externalId, ownFields.metadata].some((value) => value !== undefined))
    throw new Failure(
      'invalid',
      `With "videoId" the upload replaces a file: send no other metadata than "filename". Change the title and all else with POST /api/videos/${videoId}.`,
    )
  if (!('uploadToken' in holder)) await assertMayEdit(deps, holder, 'editor', [videoId]) // a token allows what it was made for
}

type NewVideo = { title: string; folderId: string; tags: readonly string[]; ownFields: OwnColumns }

function parseNewVideo({ title, fileName, folderId = ROOT_FOLDER_ID, tags, ownFields }: NewUpload): NewVideo {
  if (!title && !fileName)
    throw new Failure('invalid', 'The Upload-Metadata has neither "title" nor "filename". Send one of them.')
  return { title: parseTitle(title || fileName), folderId, tags: parseTags(tags), ownFields: parseOwnFields(ownFields) }
}

async function addVideo(
  { wallNowS }: ResumableUploadDeps,
  tx: Db,
  holder: Uploader,
  { id, title, folderId, tags, ownFields }: NewVideo & { id: string },
): Promise<void> {
  const { accountId } = holder
  await getFolder(tx, accountId, folderId)
  const addedBy = 'consoleUserId' in holder ? holder.consoleUserId : undefined
  await assertExternalIdsFree(tx, accountId, [ownFields.externalId])
  await insertVideo(tx, accountId, { id, title, uploadTimeS: wallNowS(), folderId, addedBy, ...ownFields })
  if (tags.length > 0) await insertTags(tx, accountId, await listPositions(tx, accountId, [id]), tags)
}

function newFile(deps: Pick<SourceDeps, 'masterKey'>, videoId: string, seal: Seal) {
  return { file: `${videoId}/${newId()}.sealed`, iv: seal.iv, wrappedKey: wrapSourceKey(deps, videoId, seal) }
}

/** @throws Failure `too-large`; `invalid` for an empty file */
function assertLength({ uploadMaxBytes }: Pick<SourceDeps, 'uploadMaxBytes'>, lengthBytes: number): void {
  if (lengthBytes === 0) throw new Failure('invalid', 'The file is empty. Send one with a video in it.')
  assertSize(lengthBytes, uploadMaxBytes)
}

/**
 * An upload of the account, unfinished or not. A token, or a person who may only upload, finds those that were begun by it or them.
 * @throws Failure `not-found`, also for one of a deleted video; `gone` when it has expired
 */
export async function getUpload(deps: ResumableUploadDeps, holder: Uploader, id: string): Promise<ResumableUploadRow> {
  const upload = await findResumableUpload(deps.db, holder.accountId, id)
  if (!upload || !isOwn(holder, upload)) throw uploadNotFound()
  if (upload.expiresAtS <= deps.nowS()) throw new Failure('gone', 'This upload has expired. Begin it again.')
  return upload
}

function isOwn(holder: Uploader, { addedBy, uploadTokenId }: { addedBy: string | null; uploadTokenId: string | null }): boolean {
  if ('uploadToken' in holder) return uploadTokenId === holder.uploadTokenId
  return !('consoleUserId' in holder) || holder.permissions.includes('editor') || addedBy === holder.consoleUserId
}

function uploadNotFound(): Failure {
  return new Failure('not-found', 'There is no such upload: it has expired, or its video was deleted. Begin it again.')
}

/** Bytes of an upload that one request brings. */
export type UploadPart = {
  /** Ends with the request; throws when the rest of it will not come. */
  bytes: AsyncIterable<Buffer>
  /** How many there are at least, as far as the client says so; 0 otherwise. */
  declaredBytes: number
  /** Of the whole file, when it was not known before. */
  lengthBytes: number | undefined
  /** What the bytes must hash to before any of them counts. */
  checksum: { algorithm: string; digest: Buffer } | undefined
}

/**
 * Receives a part in constant memory, behind what has arrived. What came of a part that breaks off is kept, unless it has a checksum.
 * The caller holds the lock of the upload, which has not finished and was checked by `checkArrived`.
 * @returns how many bytes have arrived now, all durable; with the last one, the video is `Queued`
 * @throws Failure `too-large`, `over-quota`, `unavailable` without room; `checksum-mismatch`; `not-found` when the video was deleted meanwhile;
 *   and what `part.bytes` throws
 */
export async function receivePart(deps: ResumableUploadDeps, upload: ResumableUploadRow, part: UploadPart): Promise<number> {
  const lengthBytes = upload.lengthBytes ?? part.lengthBytes
  if (lengthBytes !== undefined) assertLength(deps, lengthBytes)
  using reservation = deps.quota.receive(upload)
  await reservation.reserve(lengthBytes ?? upload.receivedBytes + part.declaredBytes)
  await assertRoom(deps, part.declaredBytes)
  const seal = openUploadSeal(deps, upload)
  const sealing = await continueSealing(seal, upload)
  const maxBytes = lengthBytes ?? deps.uploadMaxBytes
  const checksum = part.checksum && createHash(part.checksum.algorithm)
  const pieces = readPieces(part.bytes)
  let received = upload.receivedBytes
  let sealed: Sealed | undefined

  async function assertFits(): Promise<void> {
    await reservation.reserve(sealing.sizeBytes())
    await assertRoom(deps, 0)
  }

  async function* sealPieces(): AsyncGenerator<Buffer> {
    for (let checkAtBytes = sealing.sealedBytes() + SAVE_EVERY_BYTES; ; ) {
      if (sealing.sealedBytes() >= checkAtBytes) {
        if (!checksum) return
        await assertFits() // and is not saved: all of it counts, or nothing
        checkAtBytes += SAVE_EVERY_BYTES
      }
      const isComplete = sealing.sizeBytes() === lengthBytes
      const piece = isComplete ? undefined : await pieces.next()
      if (piece) {
        assertSize(sealing.sizeBytes() + piece.length, maxBytes)
        checksum?.update(piece)
        yield* sealing.add(piece)
        continue
      }
      if (!isComplete) return yield await sealing.flush()
      const { last, ...file } = await sealing.end()
      sealed = file
      return yield last
    }
  }

  /** Nothing is left on the disk of what is refused. */
  async function append(countedBytes: number): Promise<number> {
    try {
      const storedBytes = await deps.sources.appendPart(upload.file, countedBytes, sealPieces())
      await reservation.reserve(sealing.sizeBytes())
      if (checksum) pieces.throwIfBroken()
      if (checksum && !equalsInConstantTime(checksum.digest(), part.checksum?.digest ?? Buffer.alloc(0))) throw checksumMismatch()
      return storedBytes
    } catch (error) {
      if (error instanceof Failure) await cutOff(countedBytes)
      const isDeleted = !(await findResumableUpload(deps.db, upload.accountId, upload.id))
      throw isDeleted ? uploadNotFound() : error
    }
  }

  async function cutOff(countedBytes: number): Promise<void> {
    await deps.sources.appendPart(upload.file, countedBytes, []).catch(() => undefined)
  }

  for (let countedBytes = sealing.sealedBytes(); ; ) {
    const savedBytes = countedBytes
    countedBytes = await append(savedBytes)
    if (sealed) {
      await deps.sources.finish(upload.file, countedBytes)
      await finishUpload(deps, upload, received, { ...sealed, file: upload.file, seal }).catch(async (error) => {
        if (error instanceof Failure && error.kind === 'conflict') await cutOff(savedBytes) // the video may be replaced later
        throw error
      })
      return sealed.sizeBytes
    }
    const { sizeBytes: now, state } = sealing.save()
    const progress = { lengthBytes: lengthBytes ?? null, receivedBytes: now, receivedState: state }
    const expiresAtS = deps.nowS() + deps.uploadExpiryS
    if (!(await deps.write((tx) => updateResumableUpload(tx, upload.id, received, { ...progress, expiresAtS }))))
      throw await lostUpload(deps, upload)
    received = now
    if (pieces.hasEnded()) {
      pieces.throwIfBroken()
      return received
    }
    await assertFits()
  }
}

/** The pieces of a part, until it ends or breaks off. */
function readPieces(bytes: AsyncIterable<Buffer>) {
  const iterator = bytes[Symbol.asyncIterator]()
  let hasEnded = false
  let problem: { error: unknown } | undefined
  return {
    async next(): Promise<Buffer | undefined> {
      try {
        const { done, value } = await iterator.next()
        if (!done) return value
      } catch (error) {
        problem = { error }
      }
      hasEnded = true
      return undefined
    },
    hasEnded: () => hasEnded,
    throwIfBroken() {
      if (problem) throw problem.error
    },
  }
}

/** The last part. */
async function finishUpload(
  deps: ResumableUploadDeps,
  { id, videoId, accountId, fileName, replaces, uploadTokenId }: ResumableUploadRow,
  fromBytes: number,
  source: Sealed & { file: string; seal: Seal },
): Promise<void> {
  const nowS = deps.nowS()
  const times = { finishedAtS: nowS, expiresAtS: nowS + deps.uploadExpiryS }
  const isFinished = await giveSource(deps, { videoId, source, fileName, replaces: replaces === 1 }, async (tx: Db) => {
    if (replaces === 1) await setUploadReference(tx, videoId, uploadTokenId)
    return finishResumableUpload(tx, id, fromBytes, { sizeBytes: source.sizeBytes, ...times })
  })
  if (isFinished) return
  throw await lostUpload(deps, { id, accountId, file: source.file })
}

/** Its row is gone, and its bytes with it; or another server has received more of it, since this one had lost its connection. */
async function lostUpload(
  deps: ResumableUploadDeps,
  { id, accountId, file }: Pick<ResumableUploadRow, 'id' | 'accountId' | 'file'>,
): Promise<Failure> {
  if (await findResumableUpload(deps.db, accountId, id)) return uploadLocked()
  await deps.sources.remove(file)
  return uploadNotFound()
}

/**
 * Before a client learns how much has arrived. Bytes that are lost, such as after a backup was restored, or that an earlier version
 * received, do not count any more: the upload begins again, with a new file and a new key, so that no two plaintexts share one.
 * The caller holds its lock.
 * @returns the upload as it is now
 */
export async function checkArrived(deps: ResumableUploadDeps, upload: ResumableUploadRow): Promise<ResumableUploadRow> {
  if (upload.finishedAtS !== null || upload.receivedState === null) return upload
  const sealing = await continueSealing(openUploadSeal(deps, upload), upload).catch(() => undefined)
  if (sealing && (await hasBytes(deps, upload, sealing.sealedBytes()))) return upload
  const { id, videoId, lengthBytes, receivedBytes } = upload
  const expiresAtS = deps.nowS() + deps.uploadExpiryS
  const nothing = { ...newFile(deps, videoId, newSeal()), lengthBytes, receivedBytes: 0, receivedState: null, expiresAtS }
  if (!(await deps.write((tx) => updateResumableUpload(tx, id, receivedBytes, nothing)))) throw uploadNotFound()
  return { ...upload, ...nothing }
}

async function hasBytes({ sources }: ResumableUploadDeps, { file }: ResumableUploadRow, countedBytes: number): Promise<boolean> {
  try {
    await sources.appendPart(file, countedBytes, [])
    return true
  } catch (error) {
    if (error instanceof BlobLost) return false
    throw error
  }
}

function openUploadSeal(deps: ResumableUploadDeps, { videoId, wrappedKey, iv }: ResumableUploadRow): Seal {
  if (wrappedKey === null) throw uploadNotFound()
  return openSourceSeal(deps, { videoId, wrappedKey, iv })
}

async function continueSealing(
  seal: Seal,
  { receivedBytes: sizeBytes, receivedState: state }: ResumableUploadRow,
): Promise<Sealing> {
  return openSealing(seal, state ? { sizeBytes, state } : undefined)
}

function checksumMismatch(): Failure {
  return new Failure(
    'checksum-mismatch',
    'The bytes of this part do not match its Upload-Checksum: none of them count. Send the part again.',
  )
}

/**
 * Ends an upload before it has finished: what has arrived is deleted, and its video unless that has another file. The caller holds its lock.
 * @throws Failure `forbidden` when it has finished
 */
export async function terminateUpload(deps: ResumableUploadDeps, holder: Uploader, upload: ResumableUploadRow): Promise<void> {
  if (upload.finishedAtS !== null) throw uploadFinished()
  await abandonUpload(deps, upload, holder)
}

type AbandonDeps = DeletionDeps & Pick<SourceDeps, 'sources'>

async function abandonUpload(deps: AbandonDeps, { id, accountId, videoId, file, replaces }: ResumableUploadRow, by: Actor) {
  if (replaces === 0) await deleteVideos(deps, { accountId, by, videoIds: [videoId], onlyStatus: 'PRE-Upload' })
  else if (await deps.write.makingRoom((tx) => removeReplacing(tx, id))) {
    void deps.signals.send('keys-destroyed', undefined)
    await deps.sources.remove(file)
  }
}

/** The token that began it may be used again. @returns whether it had not finished */
async function removeReplacing(tx: Db, id: string): Promise<boolean> {
  const removed = await removeUnfinishedResumableUpload(tx, id)
  if (removed?.uploadTokenId) await returnFilesOfToken(tx, removed.uploadTokenId, 1)
  return removed !== undefined
}

/** A finished upload does not change. */
export function uploadFinished(): Failure {
  return new Failure('forbidden', 'This upload has finished: its video has its file. Delete the video, or begin another upload.')
}

/** Per run; the next run removes the others. */
const MAX_EXPIRED = 500

/** Removes unfinished uploads with what has arrived of them, and the record of finished ones. One whose client sends bytes continues. */
export async function removeExpiredUploads(
  deps: AbandonDeps & Pick<ResumableUploadDeps, 'uploadLocks'>,
  nowS: number,
): Promise<void> {
  const expired = await listExpiredResumableUploads(deps.db, nowS, MAX_EXPIRED)
  const isFinished = ({ finishedAtS }: { finishedAtS: number | null }) => finishedAtS !== null
  const finishedIds = expired.filter(isFinished).map(({ id }) => id)
  if (finishedIds.length > 0) await deps.write((tx) => removeFinishedResumableUploads(tx, finishedIds))
  for (const { id, accountId } of expired.filter((upload) => !isFinished(upload))) {
    const lock = await deps.uploadLocks.take(id, { silentForMs: () => undefined, end() {} }).catch(() => undefined)
    if (!lock) continue
    using _held = lock
    const upload = await findResumableUpload(deps.db, accountId, id)
    if (upload && upload.expiresAtS <= nowS) await abandonUpload(deps, upload, 'server')
  }
}
