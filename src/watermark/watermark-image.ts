import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { deriveKey, findKeyOf, type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import { openBlob } from '../crypto/sealed-blob.ts'
import type { Db } from '../db/database.ts'
import type { WatermarkImageRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { reencodeImage } from '../encode/image.ts'
import { Failure } from '../errors.ts'
import { createFairSemaphore } from '../jobs/fair-semaphore.ts'
import { guardedFetch } from '../outbound/fetch.ts'
import { describeUrl, type OutboundPolicy } from '../outbound/policy.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { findWatermarkImage, saveWatermarkImage } from './watermark-image-store.ts'

type WatermarkImageDeps = {
  db: Db
  write: Write
  nowS: () => number
  masterKey: MasterKey
  sandbox: Sandbox
  outbound: OutboundPolicy
  /** Folder for a file that exists while an image is re-encoded. */
  tmp: string
  log: Logger
}

/** The images of image watermarks. This server fetches each once, so that viewers' browsers send no requests to other hosts. */
export type WatermarkImages = {
  /** Starts to fetch these images in the background. */
  request(accountId: string, urls: readonly string[]): void
  /** An image as PNG, once it is stored. Undefined when it cannot be fetched, or not within `MAX_WAIT_MS`. */
  find(accountId: string, url: string): Promise<Buffer | undefined>
  /** Resolves when no fetch is in flight. */
  idle(): Promise<void>
  /** Aborts the fetches in flight. */
  stop(): Promise<void>
}

const LIMITS = { maxBytes: 2 ** 20, idleMs: 5_000, totalMs: 10_000 }
/** How long a viewer waits when an image is shown for the first time and is slow to arrive. */
const MAX_WAIT_MS = 3_000
/** Fetched again after this time. */
const FRESH_S = 24 * 3600
const RETRY_AFTER_S = 60
const MAX_IMAGES_PER_ACCOUNT = 100
const FETCH_CONCURRENCY = { slots: Number.POSITIVE_INFINITY, slotsPerAccount: 3 }
/** Requests of an account beyond these are ignored until the image is shown again, so that others need not wait for them. */
const MAX_PENDING_PER_ACCOUNT = 50
/** Re-encoding uses the processor briefly, and videos are encoded at the same time. */
const REENCODE_CONCURRENCY = { slots: 2, slotsPerAccount: 1 }
const MAX_CACHED_TIMES = 5_000

export function createWatermarkImages(deps: WatermarkImageDeps): WatermarkImages {
  const inFlight = new Map<string, Promise<void>>()
  const pendingByAccount = new Map<string, number>()
  /** By image, the time before which nothing need be read or fetched, so that an OTP with a known image costs no read. */
  const nextCheckS = new Map<string, number>()
  const stopping = new AbortController()
  const fetching = createFairSemaphore(FETCH_CONCURRENCY)
  const reencoding = createFairSemaphore(REENCODE_CONCURRENCY)

  function request(accountId: string, urls: readonly string[]): void {
    for (const url of urls) {
      const name = imageName(accountId, url)
      const isUpToDate = (nextCheckS.get(name) ?? 0) > deps.nowS()
      const pending = pendingByAccount.get(accountId) ?? 0
      if (isUpToDate || inFlight.has(name) || pending >= MAX_PENDING_PER_ACCOUNT || stopping.signal.aborted) continue
      pendingByAccount.set(accountId, pending + 1)
      const work = fetching(accountId, () => fetchIfDue(accountId, url)).finally(() => forget(accountId, name))
      inFlight.set(name, work)
    }
  }

  function forget(accountId: string, name: string): void {
    inFlight.delete(name)
    const pending = (pendingByAccount.get(accountId) ?? 0) - 1
    if (pending > 0) pendingByAccount.set(accountId, pending)
    else pendingByAccount.delete(accountId)
  }

  async function find(accountId: string, url: string): Promise<Buffer | undefined> {
    const stored = await openStored(accountId, url)
    request(accountId, [url])
    if (stored) return stored
    const work = inFlight.get(imageName(accountId, url))
    if (!work) return undefined
    await Promise.race([work, pause(MAX_WAIT_MS, undefined, { ref: false })])
    return openStored(accountId, url)
  }

  async function openStored(accountId: string, url: string): Promise<Buffer | undefined> {
    const row = await findWatermarkImage(deps.db, accountId, hashUrl(url))
    return row?.sealed ? openImage(deps.masterKey, row, row.sealed) : undefined
  }

  /** Never rejects: failures are stored or logged. */
  async function fetchIfDue(accountId: string, url: string): Promise<void> {
    let nextS = deps.nowS() + RETRY_AFTER_S
    try {
      const row = await findWatermarkImage(deps.db, accountId, hashUrl(url))
      const dueS = row ? row.triedAtS + (row.problem === null ? FRESH_S : RETRY_AFTER_S) : 0
      if (dueS > deps.nowS()) nextS = dueS
      else if (await fetchAndStore(accountId, url)) nextS = deps.nowS() + FRESH_S
    } catch (error) {
      if (!stopping.signal.aborted) deps.log.error({ err: error, accountId }, 'watermark: storing an image failed')
    }
    if (nextCheckS.size >= MAX_CACHED_TIMES) nextCheckS.clear()
    nextCheckS.set(imageName(accountId, url), nextS)
  }

  /** @returns whether the image was fetched */
  async function fetchAndStore(accountId: string, url: string): Promise<boolean> {
    const png = await fetchImage(accountId, url).catch((error: unknown) => {
      stopping.signal.throwIfAborted()
      if (!(error instanceof Failure)) throw error
      const from = describeUrl(new URL(url))
      deps.log.warn({ accountId, from, problem: error.message }, 'watermark: image unavailable')
      return error
    })
    const isFetched = Buffer.isBuffer(png)
    const image = {
      accountId,
      urlHash: hashUrl(url),
      problem: isFetched ? null : png.message,
      triedAtS: deps.nowS(),
    }
    await deps.write(async (tx) => {
      const sealed = isFetched ? wrap(deps.masterKey, watermarkImagePurpose(image), png) : null
      await saveWatermarkImage(tx, { ...image, sealed }, MAX_IMAGES_PER_ACCOUNT)
    })
    return isFetched
  }

  async function fetchImage(accountId: string, url: string): Promise<Buffer> {
    const { signal } = stopping
    const bytes = await guardedFetch(deps.outbound, { ...LIMITS, accountId, url, signal }, async (response) => {
      if (response.status !== 200)
        throw new Failure('unavailable', `The host of a watermark image returned status ${response.status}, expected 200.`)
      return Buffer.concat(await Array.fromAsync(response.bytes))
    })
    return reencoding(accountId, () => reencodeImage(deps.sandbox, deps.tmp, bytes, signal))
  }

  async function idle(): Promise<void> {
    await Promise.all(inFlight.values())
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await idle()
  }

  return { request, find, idle, stop }
}

type ImageKey = Pick<WatermarkImageRow, 'accountId' | 'urlHash'>

export function watermarkImagePurpose(image: ImageKey): string {
  return `reelgate mark-image 2 ${storedName(image)}`
}

/** Opens a stored image. Versions up to 0.2.0 sealed it with a key that they derived from the master key. */
export function openImage(master: MasterKey, image: ImageKey, sealed: Buffer): Buffer {
  if (findKeyOf(master, sealed)) return unwrap(master, watermarkImagePurpose(image), sealed)
  for (const { bytes } of [master, ...master.older]) {
    try {
      return openBlob(deriveKey(bytes, 'reelgate mark-image 1', 32), storedName(image), sealed)
    } catch {
      // another key of the ring may have sealed it
    }
  }
  throw new Error('no key of the ring opens this image')
}

function hashUrl(url: string): Buffer {
  return createHash('sha256').update(url).digest()
}

function imageName(accountId: string, url: string): string {
  return storedName({ accountId, urlHash: hashUrl(url) })
}

function storedName({ accountId, urlHash }: ImageKey): string {
  return `${accountId}/${urlHash.toString('hex')}`
}
