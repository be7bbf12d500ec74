import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Logger } from 'pino'
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
  /** Whether the disk has room for so many bytes more. */
  hasRoom(forBytes: number): Promise<boolean>
  /** Told after the commit that a video's source is there. */
  onSourceReceived(videoId: string): void
  log: Logger
}

/** A source that lies sealed and durable, and that no row names yet. */
export type ReceivedSource = Sealed & { file: string; seal: Seal }

/**
 * Receives a source in constant memory: sealed and hashed on its way, fsynced before it resolves. Nothing clear touches the disk.
 * @throws Failure `too-large` past the limit; whatever broke the stream. Nothing is left then.
 */
export async function receiveSource(deps: SourceDeps, videoId: string, bytes: Readable): Promise<ReceivedSource> {
  const seal = newSeal()
  const sealing = new SealingStream(seal)
  const file = `${videoId}/${newId()}.sealed`
  await putBlobStream(deps.sources, file, [Readable.from(watched(deps, bytes)), sealing])
  return { ...sealing.sealed, file, seal }
}

/** How often memory is freed, and the room looked at again: several uploads may take it from each other, and some do not say how large they are. */
const LOOK_EVERY_BYTES = 8 * 2 ** 20

async function* watched(deps: Pick<SourceDeps, 'uploadMaxBytes' | 'hasRoom'>, bytes: Readable): AsyncGenerator<Buffer> {
  let receivedBytes = 0
  let lookAtBytes = LOOK_EVERY_BYTES
  for await (const chunk of bytes) {
    receivedBytes += chunk.length
    if (receivedBytes > deps.uploadMaxBytes)
      throw new Failure('too-large', `The file is larger than ${deps.uploadMaxBytes} bytes, the largest this server accepts.`)
    if (receivedBytes >= lookAtBytes) {
      await assertRoom(deps, 0)
      runMinorGc()
      lookAtBytes = receivedBytes + LOOK_EVERY_BYTES
    }
    yield chunk
  }
}

/**
 * Uploads are the first that a disk running full refuses; playback and deletion go on.
 * @throws Failure `unavailable` when the disk would be left with too little
 */
export async function assertRoom({ hasRoom }: Pick<SourceDeps, 'hasRoom'>, forBytes: number): Promise<void> {
  if (await hasRoom(forBytes)) return
  throw new Failure('unavailable', 'The disk of this server has no room for this file. Try again when there is space.')
}

/**
 * Gives a video its source: one policy, one source. Durable when it resolves; the video is `Queued` then.
 * The same bytes sent twice at once are as good as sent once.
 * @param name the file's name as the client gave it, for display only
 * @throws Failure `conflict` when another upload used the policy first, or the video was deleted meanwhile; the file is removed
 */
export async function acceptSource(
  deps: SourceDeps,
  policyKey: string,
  videoId: string,
  source: ReceivedSource,
  name: string,
): Promise<void> {
  const accepted = await deps
    .write(async (tx) => {
      if (!(await spendPolicy(tx, policyKey, deps.nowS()))) return false
      if (!(await moveStatus(tx, videoId, 'Queued')))
        throw new Failure('conflict', 'The video was deleted while its file was being sent.')
      await setFileName(tx, videoId, displayName(name))
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

/** Gives a video its source, inside the transaction of whoever received it. */
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
 * Reads a file that is sent again, because the answer to the first time was lost. Nothing of it is stored.
 * @returns the SHA-256 of the video's source, which this is
 * @throws Failure `forbidden` when it is another file: one policy, one source
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
  const sent = { sizeBytes, sha256: hash.digest() }
  if (source && isSameSource(source, sent)) return source.sha256
  throw new Failure('forbidden', 'This policy was already used for another file. Ask for a new one.')
}

function isSameSource(one: Pick<Sealed, 'sizeBytes' | 'sha256'>, other: Pick<Sealed, 'sizeBytes' | 'sha256'>): boolean {
  return one.sizeBytes === other.sizeBytes && one.sha256.equals(other.sha256)
}

/** Removes a received source that no row will name. */
export async function discardSource({ sources }: Pick<SourceDeps, 'sources'>, source: ReceivedSource): Promise<void> {
  await removeBlobAndEmptyFolders(sources, source.file)
}

/** What opens a source. */
export function openSourceSeal(
  { masterKey }: Pick<SourceDeps, 'masterKey'>,
  source: Pick<SourceRow, 'videoId' | 'iv'> & { wrappedKey: Buffer },
): Seal {
  return { key: unwrap(masterKey, sealPurpose(source.videoId), source.wrappedKey), iv: source.iv }
}

export function wrapSourceKey({ masterKey }: Pick<SourceDeps, 'masterKey'>, videoId: string, { key }: Seal): Buffer {
  return wrap(masterKey, sealPurpose(videoId), key)
}

function sealPurpose(videoId: string): string {
  return `reelgate source-key 1 ${videoId}`
}

/** A file name for people: no path, no control characters, at most 255 characters. Never used as a path. */
export function displayName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? ''
  return Array.from(last.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '').trim())
    .slice(0, 255)
    .join('')
}
