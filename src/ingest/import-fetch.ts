import type { IncomingHttpHeaders } from 'node:http'
import type { MasterKey } from '../crypto/master-key.ts'
import { beginSealing, newSeal, resumeSealing, type Seal, type Sealing } from '../crypto/sealed-file.ts'
import { newId } from '../crypto/secret.ts'
import type { ImportRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { guardedFetch, type OutboundResponse } from '../outbound/fetch.ts'
import { describeUrl, type OutboundPolicy } from '../outbound/policy.ts'
import { type BlobFolder, blobPath, openGrowingBlob, removeBlobAndEmptyFolders } from '../storage/folder.ts'
import { openImportUrl } from './import.ts'
import { updateImport } from './import-store.ts'
import { runMinorGc } from './minor-gc.ts'
import { openSourceSeal, type ReceivedSource, wrapSourceKey } from './source.ts'

export type FetchDeps = {
  write: Write
  masterKey: MasterKey
  outbound: OutboundPolicy
  sources: BlobFolder
  uploadMaxBytes: number
  /** Whether the disk has room for so many bytes more. */
  hasRoom(forBytes: number): Promise<boolean>
}

/** The longest silence. */
const IDLE_MS = 30_000
/** An answer that brings less than this in a minute is given up, so that one which drips holds no place for hours. */
const SLOWEST_BYTES_PER_MINUTE = 64 * 1024
/** What has come is made durable, and the room looked at, after so much each time; a multiple of the cipher's block. */
const STEP_BYTES = 8 * 2 ** 20

/** Nobody waits for it any more. */
export const DELETED = new Failure('not-found', 'The video was deleted while it was being fetched.')
/** Nothing is wrong with the import: it waits for space. */
export const NO_ROOM = new Failure('unavailable', 'The disk of this server has no room for this video.')

/**
 * One try at an import: asks for the video, or for what is missing of it, and receives it in constant memory, sealed as it comes.
 * What it received stays for the next try, if the sender names its version of the file (a strong ETag).
 * @param row with the try counted
 * @returns a source that lies sealed and durable, and that only the import's row names
 * @throws Failure `unavailable` for what another try may bring; of other kinds for what none will, `unsupported` where it is no video
 */
export async function fetchImport(deps: FetchDeps, row: ImportRow, leftMs: number, signal: AbortSignal): Promise<ReceivedSource> {
  const url = openImportUrl(deps.masterKey, row)
  const name = describeUrl(new URL(url))
  const begun = await findBegun(deps, row, signal)
  const pace = watchPace(name)
  const request = {
    accountId: row.accountId,
    url,
    maxBytes: deps.uploadMaxBytes,
    idleMs: IDLE_MS,
    totalMs: leftMs,
    signal: AbortSignal.any([signal, pace.signal]),
    ...(begun && { headers: { Range: `bytes=${begun.sealing.sizeBytes()}-`, 'If-Range': begun.etag } }),
  }
  try {
    return await guardedFetch(deps.outbound, request, async (answer) => {
      const part = begun && (await isRest(deps, row, begun, answer)) ? begun : await beginAnew(deps, row, name, answer)
      return receive(deps, row, part, name, pace.watched(answer.bytes))
    })
  } finally {
    pace.stop()
  }
}

type Part = { file: string; seal: Seal; sealing: Sealing }

/** What an earlier try left, when the rest may be asked for and the disk has kept it. */
async function findBegun(deps: FetchDeps, row: ImportRow, signal: AbortSignal): Promise<(Part & { etag: string }) | undefined> {
  const { videoId, file, wrappedKey, iv, etag, receivedBytes, receivedSha256 } = row
  if (!file || !wrappedKey || !iv || !etag || !receivedSha256) return undefined
  const seal = openSourceSeal(deps, { videoId, wrappedKey, iv })
  const known = { sizeBytes: receivedBytes, sha256: receivedSha256 }
  const sealing = await resumeSealing(blobPath(deps.sources, file), seal, known, signal)
  return sealing && { file, seal, sealing, etag }
}

/** Whether the answer goes on where the last try ended. 200 says that the file is another now, or that no parts of it are sent. */
async function isRest(
  deps: FetchDeps,
  row: ImportRow,
  { sealing }: Part,
  { status, headers }: OutboundResponse,
): Promise<boolean> {
  if (status === 206 && headers['content-range']?.startsWith(`bytes ${sealing.sizeBytes()}-`)) return true
  if (status !== 206 && status !== 416) return false
  await deps.write((tx) => updateImport(tx, row.videoId, { etag: null }))
  throw new Failure('unavailable', 'The rest of the video was refused; it is fetched from its beginning.')
}

/** A new file under a new key, so that no two texts share one. The row names it before it is there: nothing is left without an owner. */
async function beginAnew(deps: FetchDeps, row: ImportRow, name: string, answer: OutboundResponse): Promise<Part> {
  refuseStatus(name, answer.status)
  const seal = newSeal()
  const file = `${row.videoId}/${newId()}.sealed`
  const begun = {
    file,
    wrappedKey: wrapSourceKey(deps, row.videoId, seal),
    iv: seal.iv,
    etag: strongEtag(answer.headers),
    receivedBytes: 0,
    receivedSha256: null,
  }
  await refuseWithoutRoom(deps, Number(answer.headers['content-length'] ?? 0))
  if (!(await deps.write((tx) => updateImport(tx, row.videoId, begun)))) throw DELETED
  if (row.file) await removeBlobAndEmptyFolders(deps.sources, row.file)
  return { file, seal, sealing: beginSealing(seal) }
}

async function receive(
  deps: FetchDeps,
  row: ImportRow,
  { file, seal, sealing }: Part,
  name: string,
  bytes: AsyncIterable<Buffer>,
): Promise<ReceivedSource> {
  await using blob = await openGrowingBlob(deps.sources, file)
  await blob.truncate(sealing.sizeBytes())
  for await (const piece of cutAtSteps(bytes, sealing.sizeBytes())) {
    if (sealing.sizeBytes() === 0) refusePage(name, piece)
    await blob.writeFile(sealing.add(piece))
    if (sealing.sizeBytes() > deps.uploadMaxBytes)
      throw new Failure('too-large', `${name} was not fetched: it is longer than ${deps.uploadMaxBytes} bytes.`)
    if (sealing.sizeBytes() % STEP_BYTES > 0) continue
    await blob.sync()
    await noteReceived(deps, row, sealing)
    await refuseWithoutRoom(deps, 0)
    runMinorGc()
  }
  if (sealing.sizeBytes() === 0) throw new Failure('unsupported', `${name} gave an empty file.`)
  const { last, ...sealed } = sealing.end()
  await blob.writeFile(last)
  await blob.sync()
  return { ...sealed, file, seal }
}

/** A try that gets further than any before it is no lost one. */
async function noteReceived(deps: FetchDeps, row: ImportRow, sealing: Sealing): Promise<void> {
  const receivedBytes = sealing.sizeBytes()
  const received = { receivedBytes, receivedSha256: sealing.sha256() }
  const isFurther = receivedBytes > row.maxReceivedBytes
  const changes = isFurther ? { ...received, maxReceivedBytes: receivedBytes, attempts: 0 } : received
  if (!(await deps.write((tx) => updateImport(tx, row.videoId, changes)))) throw DELETED
}

/** Pieces of which none reaches over the end of a step: there the sealed file has no clear bytes left to wait for. */
async function* cutAtSteps(bytes: AsyncIterable<Buffer>, fromBytes: number): AsyncGenerator<Buffer> {
  let at = fromBytes
  for await (const chunk of bytes) {
    for (let rest = chunk; rest.length > 0; ) {
      const piece = rest.subarray(0, STEP_BYTES - (at % STEP_BYTES))
      yield piece
      at += piece.length
      rest = rest.subarray(piece.length)
    }
  }
}

async function refuseWithoutRoom({ hasRoom }: FetchDeps, forBytes: number): Promise<void> {
  if (!(await hasRoom(forBytes))) throw NO_ROOM
}

/** What a sender says of a moment, not of the file. */
const PASSING = new Set([408, 425, 429])

function refuseStatus(name: string, status: number): void {
  if (status === 200) return
  const kind = status >= 500 || PASSING.has(status) ? 'unavailable' : 'not-found'
  throw new Failure(kind, `${name} answers ${status} instead of a video.`)
}

/** No container of a video begins like this; a page to log in does, and deserves a better word than a probe has. */
function refusePage(name: string, first: Buffer): void {
  if (/^(\xef\xbb\xbf)?\s*(<[!?a-z]|[{[]\s*["{\]}])/i.test(first.subarray(0, 100).toString('latin1')))
    throw new Failure('unsupported', `${name} gave a page of text instead of a video.`)
}

/** RFC 9110, 13.1.5: a weak one does not tell two versions apart byte for byte. */
function strongEtag({ etag }: IncomingHttpHeaders): string | null {
  return etag !== undefined && /^"[\x21\x23-\x7e]{0,200}"$/.test(etag) ? etag : null
}

function watchPace(name: string) {
  const tooSlow = new AbortController()
  let arrivedBytes = 0
  const timer = setInterval(() => {
    if (arrivedBytes < SLOWEST_BYTES_PER_MINUTE)
      tooSlow.abort(new Failure('unavailable', `${name} was not fetched: it comes too slowly.`))
    arrivedBytes = 0
  }, 60_000).unref()
  return {
    signal: tooSlow.signal,
    async *watched(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of bytes) {
        arrivedBytes += chunk.length
        yield chunk
      }
    },
    stop: () => clearInterval(timer),
  }
}
