import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { StorageUnavailable } from '../../errors.ts'
import { isBlobName } from '../blob-path.ts'
import { BlobLost, type BlobStore, type OpenBlob, type PutOptions, type Stages } from '../blob-store.ts'
import { type AskedBucket, BrokenAnswer, type Bucket, type BucketAnswer, BucketError, ONLY_NEW } from './bucket.ts'
import { appendPart, blobKeyOf, finish, type GrowingBlob, listStates, readStateKey, removeStates } from './growing.ts'
import type { LocalCache } from './local-cache.ts'
import {
  abortUpload,
  beginUpload,
  completeUpload,
  describeObject,
  findObject,
  isMissing,
  listObjects,
  listUploads,
  readBody,
  removeObjects,
  sendPart,
} from './objects.ts'
import { sendParts } from './parts.ts'
import { openRetired } from './retired.ts'

type S3Options = {
  /** Of the blobs of one kind, below the prefix of the bucket; without slashes. */
  folder: string
  /** Of each part of a large blob but the last: at least 8 MiB, and at most 64. */
  partBytes: number
  cache: LocalCache
}

/** An object that every prefix in use has: where it is missing, the address leads elsewhere, and no blob counts as lost. */
export const MARKER = 'reelgate'

async function hasMarker(bucket: Bucket): Promise<boolean> {
  return (await readMarker(bucket)) !== undefined
}

/** The id of the installation whose files are below the prefix. Undefined: no installation uses it. @throws StorageUnavailable */
export async function readMarker(bucket: AskedBucket): Promise<string | undefined> {
  try {
    const bytes = await bucket.ask({ method: 'GET', key: bucket.address.prefix + MARKER }, readBody)
    return bytes.toString().split('\n', 1)[0]
  } catch (error) {
    if (!isMissing(error)) throw error
    return undefined
  }
}

export async function putMarker(bucket: Bucket, id: string): Promise<void> {
  const body = Buffer.from(`${id}\nWithout this object the installation of Reelgate does not use the files below this prefix.\n`)
  await bucket.send({ method: 'PUT', key: bucket.address.prefix + MARKER, body })
}

const MIB = 2 ** 20
/** An upload has no more parts on any store. */
const MAX_PARTS = 10_000

/** Of blobs up to a size, sealed: the smallest parts with which all of them can be sent. */
export function partBytesFor(maxBlobBytes: number): number {
  const neededBytes = Math.ceil((maxBlobBytes * 1.01) / MAX_PARTS / MIB) * MIB
  return Math.min(64 * MIB, Math.max(8 * MIB, neededBytes))
}

/** How much of a blob is fetched when it is opened: small ones take one request. */
const HEAD_BYTES = 256 * 1024
/** How much of a blob is read at a time to be sent: a slow client holds so much memory, and no connection to the bucket. */
const SENT_BYTES = 2 ** 20
/** Some stores list late what was written a moment ago: an upload is looked at twice before it is ended. */
const LISTED_AFTER_MS = 1_000
/** Segments, which players load by presigned addresses, are never changed under a name. */
export const FOR_CACHES = { 'cache-control': 'public, max-age=31536000, immutable' }

/** The blobs of one kind in a bucket. Each is one object; see `growing.ts` for those that grow. */
export function blobsInBucket(bucket: Bucket, { folder, partBytes, cache }: S3Options): BlobStore {
  const root = `${bucket.address.prefix}${folder}/`

  function keyOf(name: string): string {
    if (!isBlobName(name)) throw new Error(`not the name of a blob: ${JSON.stringify(name)}`)
    return root + name
  }
  const growing = (name: string): GrowingBlob => ({ bucket, key: keyOf(name), partBytes, newSpooled: cache.newSpooled })
  const retired = openRetired(bucket, folder)

  async function put(name: string, bytes: Buffer | Stages, { signal, isNew = false }: PutOptions = {}) {
    const key = keyOf(name)
    if (Buffer.isBuffer(bytes)) {
      const headers = isNew && bucket.keepsFirst() ? { ...FOR_CACHES, ...ONLY_NEW } : FOR_CACHES
      await bucket.send({ method: 'PUT', key, headers, body: bytes, signal }).catch(async (error) => {
        if (!isExisting(error) || !(await hasBytes(key, bytes))) throw error
      })
      return { sizeBytes: bytes.length }
    }
    let sizeBytes = 0
    const putLast = async (last: AsyncIterable<Uint8Array>) => {
      sizeBytes = await putStream(key, last, signal)
    }
    await pipeline([...bytes, putLast], { signal })
    return { sizeBytes }
  }

  /** A first try may have stored the object, whose answer was lost. */
  async function hasBytes(key: string, bytes: Buffer): Promise<boolean> {
    return (await bucket.ask({ method: 'GET', key }, readBody)).equals(bytes)
  }

  /** One object in one request, or in parts when it is larger than one of them. @returns its size */
  async function putStream(key: string, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<number> {
    const attempt = randomBytes(16).toString('hex')
    let uploadId: string | undefined
    try {
      const begin = async () => {
        uploadId ??= await beginUpload(bucket, key, attempt)
        return uploadId
      }
      const { newSpooled } = cache
      const { etags, sizeBytes, ...sent } = await sendParts(bytes, { bucket, key, begin, partBytes, newSpooled, signal })
      await using tail = sent.tail
      if (uploadId === undefined) {
        await bucket.send({ method: 'PUT', key, body: tail, signal })
        return sizeBytes
      }
      if (tail.sizeBytes() > 0) etags.push(await sendPart(bucket, { key, uploadId, number: etags.length + 1, signal }, tail))
      if (!(await completeUpload(bucket, { key, uploadId, attempt, etags, sizeBytes }))) throw endedUpload()
      return sizeBytes
    } catch (error) {
      if (uploadId !== undefined) await abortUpload(bucket, key, uploadId).catch(() => undefined) // or the sweep finds it
      throw error
    }
  }

  async function open(name: string): Promise<OpenBlob> {
    const key = keyOf(name)
    const { head, etag, sizeBytes, changedAtS } = await readHead(key)
    const request = (first: number, last: number) => ({
      ...{ method: 'GET' as const, key },
      headers: { range: `bytes=${first}-${last}`, 'if-match': etag },
    })

    async function read(into: Buffer, at: number): Promise<number> {
      const end = Math.min(at + into.length, sizeBytes)
      if (at >= end) return 0
      const fromHead = at < head.length ? head.copy(into, 0, at, end) : 0
      const first = at + fromHead
      if (first < end)
        await bucket.ask(request(first, end - 1), (answer) => readInto(answer, into.subarray(fromHead, end - at))).catch(explain)
      return end - at
    }

    function stream({ first, last }: { first: number; last: number }) {
      const sent = Object.assign(Readable.from(pieces(), { objectMode: false }), { bytesRead: 0 })
      async function* pieces() {
        for (let at = first; at <= last; ) {
          const bytes = Buffer.allocUnsafe(Math.min(SENT_BYTES, last + 1 - at))
          const readBytes = await read(bytes, at)
          if (readBytes === 0) return
          sent.bytesRead += readBytes
          at += readBytes
          yield bytes.subarray(0, readBytes)
        }
      }
      return sent
    }

    const close = async () => undefined
    return { sizeBytes, version: `${etag} ${changedAtS}`, read, stream, close, [Symbol.asyncDispose]: close }
  }

  /** The beginning of an object, and what it is. */
  async function readHead(key: string) {
    const range = { range: `bytes=0-${HEAD_BYTES - 1}` }
    const answer = await bucket
      .ask({ method: 'GET', key, headers: range }, async (answer) => ({
        ...describeObject(answer.headers),
        head: await readBody(answer),
      }))
      .catch((error: unknown) => {
        if (!isRangeRefused(error)) return explain(error)
      })
    if (answer) return answer
    const empty = await findObject(bucket, key).catch(explain) // there is no range of an empty object
    if (!empty) throw await lostOrElsewhere()
    return { ...empty, head: Buffer.alloc(0) }
  }

  /** What an error says of a blob that was to be read. */
  async function explain(error: unknown): Promise<never> {
    if (isMissing(error)) throw await lostOrElsewhere(error)
    if (isOtherVersion(error)) throw new BlobLost('its object was written again meanwhile', { cause: error })
    throw error
  }

  async function lostOrElsewhere(cause?: unknown): Promise<Error> {
    if (await hasMarker(bucket)) return new BlobLost('its object is missing', { cause })
    return new StorageUnavailable(
      `The bucket of REELGATE_STORAGE_URL has no object ${MARKER} below its prefix, so it is not the one with this server’s files. Correct the address, or restore the objects.`,
      { cause },
    )
  }

  async function stat(name: string) {
    const key = keyOf(name)
    const found = await findObject(bucket, key)
    if (found) return { sizeBytes: found.sizeBytes, changedAtS: found.changedAtS }
    const newest = (await listStates(bucket, key)).reduce<{ sizeBytes: number; changedAtS: number } | undefined>(
      (newer, { countedBytes: sizeBytes, changedAtS }) =>
        newer && newer.changedAtS >= changedAtS ? newer : { sizeBytes, changedAtS },
      undefined,
    )
    if (newest) return newest
    const error = await lostOrElsewhere()
    if (!(error instanceof BlobLost)) throw error
    return undefined
  }

  async function* list(below: string, after: string): AsyncGenerator<string> {
    const prefix = below === '' ? root : `${keyOf(below)}/`
    let last = after
    for await (const { key } of listObjects(bucket, prefix, after === '' ? '' : root + after)) {
      const name = blobKeyOf(key.slice(root.length))
      if (name === last || !isBlobName(name)) continue
      last = name
      yield name
    }
  }

  async function* listStats() {
    for await (const { key, sizeBytes } of listObjects(bucket, root)) {
      const name = key.slice(root.length)
      if (isBlobName(name)) yield { name, sizeBytes }
    }
  }

  async function removeAll(name: string): Promise<void> {
    const prefix = `${keyOf(name)}/`
    let keys: string[] = []
    for await (const { key } of listObjects(bucket, prefix)) {
      const state = readStateKey(key)
      if (state?.uploadId !== undefined) await abortUpload(bucket, state.key, state.uploadId)
      keys.push(key)
      if (keys.length < 1000) continue
      await removeObjects(bucket, keys)
      keys = []
    }
    await removeObjects(bucket, keys)
    await retired.endBelow(name)
  }

  /** Of every kind: what is below the prefix of the bucket. */
  async function removeUnfinished(sinceS: number): Promise<number> {
    const left = []
    for await (const { begunAtS, ...upload } of listUploads(bucket, bucket.address.prefix)) {
      if (begunAtS < sinceS && !(await isGrowing(upload))) left.push(upload)
    }
    if (left.length > 0) await pause(LISTED_AFTER_MS)
    let removed = 0
    for (const { key, uploadId } of left) {
      if (await isGrowing({ key, uploadId })) continue
      await abortUpload(bucket, key, uploadId)
      removed++
    }
    return removed
  }

  /** Whether an upload is of a blob that grows: a state of it names it. */
  async function isGrowing({ key, uploadId }: { key: string; uploadId: string }): Promise<boolean> {
    return (await listStates(bucket, key)).some((state) => state.uploadId === uploadId)
  }

  return {
    put,
    async adopt(name, from) {
      keyOf(name)
      if (!(await from.stat(name))) throw new BlobLost('its file is missing')
      return false
    },
    read: async (name) => bucket.ask({ method: 'GET', key: keyOf(name) }, readBody).catch(explain),
    open,
    stat,
    listStats,
    async remove(name) {
      await bucket.send({ method: 'DELETE', key: keyOf(name) })
      await removeStates(growing(name))
    },
    removeAll,
    async retire(name) {
      keyOf(name)
      await retired.add(name)
    },
    async retireAll(name) {
      keyOf(name)
      await retired.addFolder(name)
    },
    listRetired: retired.list,
    endRetirement: retired.end,
    list,
    appendPart: async (name, countedBytes, bytes) => appendPart(growing(name), countedBytes, bytes).catch(explain),
    finish: async (name, countedBytes) => finish(growing(name), countedBytes).catch(explain),
    async withLocalCopy(name, use, newCheck) {
      await using blob = await open(name)
      return cache.use(`${folder}/${name} ${blob.version}`, blob, use, newCheck)
    },
    mayCopy: cache.mayHold,
    removeUnfinished,
    async nowS() {
      const { date = '' } = await bucket.send({ method: 'HEAD' })
      return Date.parse(date) / 1000
    },
    check: bucket.check,
  }
}

function endedUpload(): StorageUnavailable {
  return new StorageUnavailable('The bucket has ended an upload that was not finished. Try again.')
}

function isRangeRefused(error: unknown): boolean {
  return error instanceof BucketError && error.status === 416
}

/** 409: another request writes it now. */
function isExisting(error: unknown): boolean {
  return error instanceof BucketError && (error.status === 412 || error.status === 409)
}

function isOtherVersion(error: unknown): boolean {
  return error instanceof BucketError && error.status === 412
}

/** @throws BrokenAnswer when there are fewer bytes than were asked for */
async function readInto({ body }: BucketAnswer, into: Buffer): Promise<void> {
  let filled = 0
  for await (const piece of body) {
    if (filled + piece.length > into.length) break
    filled += piece.copy(into, filled)
  }
  if (filled < into.length) throw new BrokenAnswer('the answer ended early')
}
