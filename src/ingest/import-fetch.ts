import type { IncomingHttpHeaders } from 'node:http'
import type { Reservation } from '../accounts/storage-quota.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { newSeal, openSealing, type Seal, type Sealed, type Sealing } from '../crypto/sealed-file.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { ImportRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { guardedFetch, type OutboundResponse } from '../outbound/fetch.ts'
import { describeUrl, type OutboundPolicy } from '../outbound/policy.ts'
import { BlobLost, type BlobStore } from '../storage/blob-store.ts'
import { openImportUrl } from './import.ts'
import { updateImport } from './import-store.ts'
import { assertRoom, openSourceSeal, type ReceivedSource, wrapSourceKey } from './source.ts'

export type FetchDeps = {
  /** Rejects once another process has taken the import over. */
  write<T>(change: (tx: Db) => Promise<T>): Promise<T>
  masterKey: MasterKey
  outbound: OutboundPolicy
  sources: BlobStore
  uploadMaxBytes: number
  /** Whether the disk has room for this many more bytes. */
  hasRoom(forBytes: number): Promise<boolean>
}

const IDLE_TIMEOUT_MS = 30_000
/** A slower transfer is ended, so that it does not occupy a slot for hours. */
const MIN_BYTES_PER_MINUTE = 64 * 1024
/** After each of these the received bytes are made durable, and the disk space and the account's limit are checked. */
const PART_BYTES = 8 * 2 ** 20

export function videoDeletedDuringImport(): Failure {
  return new Failure('not-found', 'The video was deleted while it was being fetched.')
}

/**
 * One attempt of an import: requests the video, or its missing part, and receives it in constant memory, encrypted as it arrives.
 * What it received is kept for the next attempt, if the server identifies its version of the file by a strong ETag.
 * @param attempt.row with this attempt counted
 * @param attempt.timeoutMs the time left for the whole import
 * @param attempt.reservation counts it towards the limit of its account; the caller keeps it until the source has a row
 * @returns a source that is encrypted and durable on disk, and referenced only by the import's row
 * @throws Failure `unavailable` when another attempt may succeed; of other kinds when none will: `unsupported` for what is not a video,
 *   `over-quota` for what does not fit
 */
export async function fetchImport(deps: FetchDeps, attempt: ImportAttempt, signal: AbortSignal): Promise<ReceivedSource> {
  const { row, timeoutMs, reservation } = attempt
  const url = openImportUrl(deps.masterKey, row)
  const name = describeUrl(new URL(url))
  const partial = await findPartial(deps, row)
  const monitor = monitorSpeed(name)
  const request = {
    accountId: row.accountId,
    url,
    maxBytes: deps.uploadMaxBytes,
    idleMs: IDLE_TIMEOUT_MS,
    totalMs: timeoutMs,
    signal: AbortSignal.any([signal, monitor.signal]),
    ...(partial && { headers: { Range: `bytes=${partial.sealing.sizeBytes()}-`, 'If-Range': partial.etag } }),
  }
  try {
    return await guardedFetch(deps.outbound, request, async (response) => {
      const isResumed = partial && (await acceptsRange(deps, row, partial, response))
      if (!isResumed) assertOk(name, response.status)
      const declaredBytes = Number(response.headers['content-length'] ?? 0)
      await reservation.reserve(declaredBytes + (isResumed ? partial.sealing.sizeBytes() : 0))
      await assertRoom(deps, declaredBytes, 'video')
      const file = isResumed ? partial : await startFile(deps, row, response)
      return receive(deps, { ...attempt, host: name, file }, monitor.countBytes(response.bytes))
    })
  } finally {
    monitor.stop()
  }
}

type ImportAttempt = { row: ImportRow; timeoutMs: number; reservation: Pick<Reservation, 'reserve'> }

/** A file that is being received. */
type PartialFile = { name: string; seal: Seal; sealing: Sealing }

/** What an earlier attempt received, if it is still stored and the import can be resumed. */
async function findPartial(deps: FetchDeps, row: ImportRow): Promise<(PartialFile & { etag: string }) | undefined> {
  const { videoId, file: name, wrappedKey, iv, etag, receivedBytes: sizeBytes, receivedState: state } = row
  if (!name || !wrappedKey || !iv || !etag || !state) return undefined
  const seal = openSourceSeal(deps, { videoId, wrappedKey, iv })
  const sealing = await openSealing(seal, { sizeBytes, state }).catch(() => undefined) // saved by a version with another hash
  if (!sealing) return undefined
  try {
    await deps.sources.appendPart(name, sizeBytes, [])
  } catch (error) {
    if (error instanceof BlobLost) return undefined
    throw error
  }
  return { name, seal, sealing, etag }
}

/** Whether the response continues where the last attempt ended. 200 means that the file has changed, or that ranges are not supported. */
async function acceptsRange(deps: FetchDeps, row: ImportRow, { sealing }: PartialFile, { status, headers }: OutboundResponse) {
  if (status === 206 && headers['content-range']?.startsWith(`bytes ${sealing.sizeBytes()}-`)) return true
  if (status !== 206 && status !== 416) return false
  await deps.write((tx) => updateImport(tx, row.videoId, { etag: null }))
  throw new Failure('unavailable', 'The server rejected the range request; the video is fetched from the beginning.')
}

/** A new file with a new key, so that no two plaintexts share one. The row references it before it exists, so that no file is orphaned. */
async function startFile(deps: FetchDeps, row: ImportRow, response: OutboundResponse): Promise<PartialFile> {
  const seal = newSeal()
  const name = `${row.videoId}/${newId()}.sealed`
  const newFile = {
    file: name,
    iv: seal.iv,
    etag: strongEtag(response.headers),
    receivedBytes: 0,
    receivedState: null,
  }
  const isRecorded = await deps.write((tx) =>
    updateImport(tx, row.videoId, { ...newFile, wrappedKey: wrapSourceKey(deps, row.videoId, seal) }),
  )
  if (!isRecorded) throw videoDeletedDuringImport()
  if (row.file) await deps.sources.remove(row.file)
  return { name, seal, sealing: await openSealing(seal) }
}

/** Receives the bytes of a response, part by part: the row counts each once it is durable. */
async function receive(
  deps: FetchDeps,
  { row, reservation, host, file: { name, seal, sealing } }: ImportAttempt & { host: string; file: PartialFile },
  bytes: AsyncIterable<Buffer>,
): Promise<ReceivedSource> {
  const pieces = splitIntoParts(bytes, sealing.sizeBytes())
  const received: { sealed?: Sealed } = {}

  async function* sealPart(): AsyncGenerator<Buffer> {
    do {
      const { value: piece } = await pieces.next()
      if (!piece) return yield await endFile()
      if (sealing.sizeBytes() === 0) assertNotText(host, piece)
      yield* sealing.add(piece)
      if (sealing.sizeBytes() > deps.uploadMaxBytes)
        throw new Failure('too-large', `${host} was not fetched: it is longer than ${deps.uploadMaxBytes} bytes.`)
    } while (sealing.sizeBytes() % PART_BYTES > 0)
  }

  async function endFile(): Promise<Buffer> {
    if (sealing.sizeBytes() === 0) throw new Failure('unsupported', `${host} returned an empty file.`)
    await reservation.reserve(sealing.sizeBytes())
    const { last, ...sealed } = await sealing.end()
    received.sealed = sealed
    return last
  }

  try {
    for (let countedBytes = sealing.sizeBytes(); ; ) {
      countedBytes = await deps.sources.appendPart(name, countedBytes, sealPart())
      if (received.sealed) {
        await deps.sources.finish(name, countedBytes)
        return { ...received.sealed, file: name, seal }
      }
      await saveProgress(deps, row, sealing)
      await assertRoom(deps, 0, 'video')
      await reservation.reserve(sealing.sizeBytes())
    }
  } finally {
    await pieces.return(undefined)
  }
}

/** An attempt that gets further than any before does not count as a failed one. */
async function saveProgress(deps: FetchDeps, row: ImportRow, sealing: Sealing): Promise<void> {
  const { sizeBytes: receivedBytes, state: receivedState } = sealing.save()
  const received = { receivedBytes, receivedState }
  const isProgress = receivedBytes > row.maxReceivedBytes
  const changes = isProgress ? { ...received, maxReceivedBytes: receivedBytes, attempts: 0 } : received
  if (!(await deps.write((tx) => updateImport(tx, row.videoId, changes)))) throw videoDeletedDuringImport()
}

/** Splits so that no piece extends over the end of a part. */
async function* splitIntoParts(bytes: AsyncIterable<Buffer>, fromBytes: number): AsyncGenerator<Buffer, undefined> {
  let offset = fromBytes
  for await (const chunk of bytes) {
    for (let remaining = chunk; remaining.length > 0; ) {
      const piece = remaining.subarray(0, PART_BYTES - (offset % PART_BYTES))
      yield piece
      offset += piece.length
      remaining = remaining.subarray(piece.length)
    }
  }
}

/** Client error statuses that are about the moment, not about the file. */
const TRANSIENT_STATUSES = new Set([408, 425, 429])

function assertOk(name: string, status: number): void {
  if (status === 200) return
  const kind = status >= 500 || TRANSIENT_STATUSES.has(status) ? 'unavailable' : 'not-found'
  throw new Failure(kind, `${name} returned status ${status} instead of a video.`)
}

/** HTML or JSON, such as a login page: no video container begins like this, and this message is clearer than that of the probe. */
function assertNotText(name: string, first: Buffer): void {
  if (/^(\xef\xbb\xbf)?\s*(<[!?a-z]|[{[]\s*["{\]}])/i.test(first.subarray(0, 100).toString('latin1')))
    throw new Failure('unsupported', `${name} returned a web page, not a video.`)
}

/** RFC 9110, 13.1.5: a weak one does not guarantee that two versions are the same byte for byte. */
function strongEtag({ etag }: IncomingHttpHeaders): string | null {
  return etag !== undefined && /^"[\x21\x23-\x7e]{0,200}"$/.test(etag) ? etag : null
}

function monitorSpeed(name: string) {
  const tooSlow = new AbortController()
  let arrivedBytes = 0
  const timer = setInterval(() => {
    if (arrivedBytes < MIN_BYTES_PER_MINUTE)
      tooSlow.abort(new Failure('unavailable', `${name} was not fetched: the transfer was too slow.`))
    arrivedBytes = 0
  }, 60_000).unref()
  return {
    signal: tooSlow.signal,
    async *countBytes(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of bytes) {
        arrivedBytes += chunk.length
        yield chunk
      }
    },
    stop: () => clearInterval(timer),
  }
}
