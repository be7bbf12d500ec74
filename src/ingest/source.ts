import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { Reservation } from '../accounts/storage-quota.ts'
import { moveStatus } from '../catalogue/status.ts'
import { addSize, setFileName } from '../catalogue/video-store.ts'
import { unwrap, wrap } from '../crypto/master-key.ts'
import { newSeal, type Seal, type Sealed, SealingStream } from '../crypto/sealed-file.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { type BlobFolder, putBlobStream, removeBlobAndEmptyFolders } from '../storage/folder.ts'
import { runMinorGc } from './minor-gc.ts'
import { findSource, insertSource, type SourceRow } from './source-store.ts'
import type { PolicyDeps } from './upload-policy.ts'
import { spendPolicy } from './upload-policy-store.ts'

export type SourceDeps = PolicyDeps & {
  sources: BlobFolder
  uploadMaxBytes: number
  /** Whether the disk has room for this many more bytes. */
  hasRoom(forBytes: number): Promise<boolean>
  /** Called after the commit that gives a video its source. */
  onSourceReceived(videoId: string): void
  log: Logger
}

/** A source that is encrypted and durable on disk, and that no row references yet. */
export type ReceivedSource = Sealed & { file: string; seal: Seal }

/**
 * Receives a source in constant memory: encrypted and hashed as it arrives, fsynced before it resolves. No plaintext reaches the disk.
 * @param reservation counts it towards the limit of its account; the caller keeps it until the source has a row
 * @throws Failure `too-large` above the limit, `over-quota`; any error of the stream. Nothing is left on disk then.
 */
export async function receiveSource(
  deps: SourceDeps,
  videoId: string,
  bytes: Readable,
  reservation?: Pick<Reservation, 'reserve'>,
): Promise<ReceivedSource> {
  const seal = newSeal()
  const sealing = new SealingStream(seal)
  const file = `${videoId}/${newId()}.sealed`
  await putBlobStream(deps.sources, file, [Readable.from(checkLimits(deps, bytes, reservation)), sealing])
  return { ...sealing.sealed, file, seal }
}

/** How often memory is freed, and the disk space and the account's limit are checked: concurrent uploads share it, and some do not announce their size. */
const CHECK_EVERY_BYTES = 8 * 2 ** 20

async function* checkLimits(
  deps: Pick<SourceDeps, 'uploadMaxBytes' | 'hasRoom'>,
  bytes: Readable,
  reservation: Pick<Reservation, 'reserve'> | undefined,
): AsyncGenerator<Buffer> {
  let receivedBytes = 0
  let nextCheckBytes = CHECK_EVERY_BYTES
  for await (const chunk of bytes) {
    receivedBytes += chunk.length
    if (receivedBytes > deps.uploadMaxBytes)
      throw new Failure('too-large', `The file is larger than ${deps.uploadMaxBytes} bytes, the largest this server accepts.`)
    if (receivedBytes >= nextCheckBytes) {
      await assertRoom(deps, 0)
      await reservation?.reserve(receivedBytes)
      runMinorGc()
      nextCheckBytes = receivedBytes + CHECK_EVERY_BYTES
    }
    yield chunk
  }
  await reservation?.reserve(receivedBytes)
}

/**
 * Uploads are the first thing to be rejected when the disk fills up; playback and deletion continue.
 * @param subject what there is no room for
 * @throws Failure `unavailable` when too little space would be left
 */
export async function assertRoom({ hasRoom }: Pick<SourceDeps, 'hasRoom'>, forBytes: number, subject = 'file'): Promise<void> {
  if (!(await hasRoom(forBytes))) throw new NoRoom(subject)
}

/** The disk is full: nothing is wrong with the source itself. */
export class NoRoom extends Failure {
  constructor(subject: string) {
    super('unavailable', `The disk of this server has no room for this ${subject}. Try again when there is space.`)
  }
}

export type ReceivedUpload = { policyKey: string; videoId: string; source: ReceivedSource; fileName: string }

/**
 * Gives a video its source: each policy is good for one source. Durable when it resolves; the video is `Queued` then.
 * Two concurrent uploads of the same bytes both succeed.
 * @param upload.fileName as the client sent it, for display only
 * @throws Failure `conflict` when another upload used the policy first, or the video was deleted in the meantime; the file is removed
 */
export async function acceptSource(deps: SourceDeps, { policyKey, videoId, source, fileName }: ReceivedUpload): Promise<void> {
  const accepted = await deps
    .write(async (tx) => {
      if (!(await spendPolicy(tx, policyKey, deps.nowS()))) return false
      if (!(await moveStatus(tx, videoId, 'Queued')))
        throw new Failure('conflict', 'The video was deleted while its file was being sent.')
      await setFileName(tx, videoId, displayName(fileName))
      await insertReceivedSource(deps, tx, videoId, source)
      return true
    })
    .catch(async (error) => {
      if (!isCommitOutcomeUnknown(error)) await discardSource(deps, source)
      throw error
    })
  if (!accepted) {
    await discardSource(deps, source)
    const winner = await findSource(deps.db, videoId)
    if (winner && isSameSource(winner, source)) return
    throw new Failure('conflict', 'This policy was already used by another upload. Ask for a new one.')
  }
  deps.log.info({ videoId, sizeBytes: source.sizeBytes }, 'upload: received')
  deps.onSourceReceived(videoId)
}

/** Gives a video its source, in the caller's transaction. */
export async function insertReceivedSource(
  deps: Pick<SourceDeps, 'masterKey'>,
  tx: Db,
  videoId: string,
  { file, seal, sizeBytes, sha256, macs }: ReceivedSource,
): Promise<void> {
  const wrappedKey = wrapSourceKey(deps, videoId, seal)
  await insertSource(tx, { videoId, file, sizeBytes, sha256, wrappedKey, iv: seal.iv, macs })
  await addSize(tx, videoId, sizeBytes)
}

/**
 * Reads a file that is sent again because the response to the first upload was lost. Nothing of it is stored.
 * @returns the SHA-256 of the video's source, which is the same file
 * @throws Failure `forbidden` when it is a different file
 */
export async function confirmSource({ db }: Pick<SourceDeps, 'db'>, videoId: string, bytes: Readable): Promise<Buffer> {
  const source = await findSource(db, videoId)
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const chunk of bytes) {
    hash.update(chunk)
    sizeBytes += chunk.length
    if (sizeBytes > (source?.sizeBytes ?? 0)) break
  }
  const repeated = { sizeBytes, sha256: hash.digest() }
  if (source && isSameSource(source, repeated)) return source.sha256
  throw new Failure('forbidden', 'This policy was already used for another file. Ask for a new one.')
}

function isSameSource(one: Pick<Sealed, 'sizeBytes' | 'sha256'>, other: Pick<Sealed, 'sizeBytes' | 'sha256'>): boolean {
  return one.sizeBytes === other.sizeBytes && one.sha256.equals(other.sha256)
}

/** Removes a received source that no row will reference. */
export async function discardSource({ sources }: Pick<SourceDeps, 'sources'>, source: ReceivedSource): Promise<void> {
  await removeBlobAndEmptyFolders(sources, source.file)
}

/** The key and IV that decrypt a source. */
export function openSourceSeal(
  { masterKey }: Pick<SourceDeps, 'masterKey'>,
  source: Pick<SourceRow, 'videoId' | 'iv'> & { wrappedKey: Buffer },
): Seal {
  return { key: unwrap(masterKey, sourceKeyPurpose(source.videoId), source.wrappedKey), iv: source.iv }
}

export function wrapSourceKey({ masterKey }: Pick<SourceDeps, 'masterKey'>, videoId: string, { key }: Seal): Buffer {
  return wrap(masterKey, sourceKeyPurpose(videoId), key)
}

export function sourceKeyPurpose(videoId: string): string {
  return `reelgate source-key 1 ${videoId}`
}

/** A file name for display: no path, in one line, no control characters, at most 255 characters. Never used as a path. */
export function displayName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? ''
  return Array.from(
    last
      .replace(/[\r\n]+/g, ' ')
      .replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '')
      .trim(),
  )
    .slice(0, 255)
    .join('')
}
