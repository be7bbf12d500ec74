import { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { Reservation } from '../accounts/storage-quota.ts'
import { addSize } from '../catalogue/video-store.ts'
import { unwrap, wrap } from '../crypto/master-key.ts'
import { newSeal, openSealing, type Seal, type Sealed } from '../crypto/sealed-file.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import { insertSource, type SourceRow, setDuplicateOf } from './source-store.ts'
import type { PolicyDeps } from './upload-policy.ts'

export type SourceDeps = PolicyDeps & {
  sources: BlobStore
  uploadMaxBytes: number
  /** Whether the disk has room for this many more bytes. */
  hasRoom(forBytes: number): Promise<boolean>
  signals: Pick<Signals, 'send'>
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
  bytes: AsyncIterable<Buffer>,
  reservation?: Pick<Reservation, 'reserve'>,
): Promise<ReceivedSource> {
  const seal = newSeal()
  const sealing = await openSealing(seal)
  const file = `${videoId}/${newId()}.sealed`
  const clear = Readable.from(checkLimits(deps, bytes, reservation), { highWaterMark: 8 }) // reads ahead while a MiB is sealed and written
  const received: { sealed?: Sealed } = {}
  async function* sealAll(): AsyncGenerator<Buffer> {
    for await (const chunk of clear) yield* sealing.add(chunk)
    const { last, ...sealed } = await sealing.end()
    received.sealed = sealed
    yield last
  }
  await deps.sources.put(file, [sealAll()])
  if (!received.sealed) throw new Error('a source was stored before it ended')
  return { ...received.sealed, file, seal }
}

/** How often the disk space and the account's limit are checked: concurrent uploads share it, and some do not announce their size. */
const CHECK_EVERY_BYTES = 8 * 2 ** 20

async function* checkLimits(
  deps: Pick<SourceDeps, 'uploadMaxBytes' | 'hasRoom'>,
  bytes: AsyncIterable<Buffer>,
  reservation: Pick<Reservation, 'reserve'> | undefined,
): AsyncGenerator<Buffer> {
  let receivedBytes = 0
  let nextCheckBytes = CHECK_EVERY_BYTES
  for await (const chunk of bytes) {
    receivedBytes += chunk.length
    assertSize(receivedBytes, deps.uploadMaxBytes)
    if (receivedBytes >= nextCheckBytes) {
      await assertRoom(deps, 0)
      await reservation?.reserve(receivedBytes)
      nextCheckBytes = receivedBytes + CHECK_EVERY_BYTES
    }
    yield chunk
  }
  await reservation?.reserve(receivedBytes)
}

/** @throws Failure `too-large` */
export function assertSize(bytes: number, uploadMaxBytes: number): void {
  if (bytes > uploadMaxBytes)
    throw new Failure('too-large', `The file is larger than ${uploadMaxBytes} bytes, the largest this server accepts.`)
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

/** Gives a video a source, in the caller's transaction. @param as absent: its first one */
export async function insertReceivedSource(
  deps: Pick<SourceDeps, 'masterKey'>,
  tx: Db,
  videoId: string,
  { file, seal, sizeBytes, sha256, macs }: ReceivedSource,
  as: { number?: number; fileName?: string; receivedAtS?: number } = {},
): Promise<void> {
  const wrappedKey = wrapSourceKey(deps, videoId, seal)
  await insertSource(tx, { ...as, videoId, file, sizeBytes, sha256, wrappedKey, iv: seal.iv, macs })
  if (as.number === undefined) await setDuplicateOf(tx, videoId, sha256) // otherwise once the video plays it
  await addSize(tx, videoId, sizeBytes)
}

/** Removes a received source that no row will reference. */
export async function discardSource({ sources }: Pick<SourceDeps, 'sources'>, source: ReceivedSource): Promise<void> {
  await sources.remove(source.file)
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
