import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { deriveKey, type MasterKey } from '../crypto/master-key.ts'
import { openBlob, sealBlob } from '../crypto/sealed-blob.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { reencodeImage } from '../encode/image.ts'
import type { Sandbox } from '../encode/sandbox.ts'
import { Failure } from '../errors.ts'
import { createFairSemaphore } from '../jobs/fair-semaphore.ts'
import { guardedFetch } from '../outbound/fetch.ts'
import { describeUrl, type OutboundPolicy } from '../outbound/policy.ts'
import { findWatermarkImage, saveWatermarkImage } from './watermark-image-store.ts'

export type WatermarkImageDeps = {
  db: Db
  write: Write
  nowS: () => number
  masterKey: MasterKey
  sandbox: Sandbox
  outbound: OutboundPolicy
  /** Folder for a file that lives as long as one drawing. */
  tmp: string
  log: Logger
}

/** The images of image watermarks: asked for by this server, once, so that no viewer's browser asks anybody else. */
export type WatermarkImages = {
  /** Sees to it that these are here soon. Nobody waits for it. */
  request(accountId: string, urls: readonly string[]): void
  /** A picture as PNG, once it is here; undefined when it cannot be had, or not within `WAIT_MS`. */
  find(accountId: string, url: string): Promise<Buffer | undefined>
  /** Resolves when nothing is being fetched. */
  idle(): Promise<void>
  /** Gives up what is being fetched. */
  stop(): Promise<void>
}

const LIMITS = { maxBytes: 2 ** 20, idleMs: 5_000, totalMs: 10_000 }
/** What a viewer waits at most, at the first showing of a picture that is slow to come. */
const WAIT_MS = 3_000
const FRESH_S = 24 * 3600
const FAILED_S = 60
const KEPT_PER_ACCOUNT = 100
const AT_ONCE = { places: Number.POSITIVE_INFINITY, placesOfOne: 3 }
/** What an account wants beyond these is left to the next showing, so that it takes nobody else's place. */
const WANTED_PER_ACCOUNT = 50
/** A picture costs the processor for a moment, and videos are encoded beside it. */
const DRAWN_AT_ONCE = { places: 2, placesOfOne: 1 }
const REMEMBERED = 5_000

export function createWatermarkImages(deps: WatermarkImageDeps): WatermarkImages {
  const sealKey = deriveKey(deps.masterKey.bytes, 'reelgate mark-image 1', 32)
  const inFlight = new Map<string, Promise<void>>()
  const wantedBy = new Map<string, number>()
  /** Until when nothing need be asked, so that an OTP with a known picture costs no read. */
  const settledUntilS = new Map<string, number>()
  const stopping = new AbortController()
  const through = createFairSemaphore(AT_ONCE)
  const drawing = createFairSemaphore(DRAWN_AT_ONCE)

  function want(accountId: string, urls: readonly string[]): void {
    for (const url of urls) {
      const name = nameOf(accountId, url)
      const isSettled = (settledUntilS.get(name) ?? 0) > deps.nowS()
      const wanted = wantedBy.get(accountId) ?? 0
      if (isSettled || inFlight.has(name) || wanted >= WANTED_PER_ACCOUNT || stopping.signal.aborted) continue
      wantedBy.set(accountId, wanted + 1)
      const work = through(accountId, () => bring(accountId, url)).finally(() => settle(accountId, name))
      inFlight.set(name, work)
    }
  }

  function settle(accountId: string, name: string): void {
    inFlight.delete(name)
    const left = (wantedBy.get(accountId) ?? 0) - 1
    if (left > 0) wantedBy.set(accountId, left)
    else wantedBy.delete(accountId)
  }

  async function find(accountId: string, url: string): Promise<Buffer | undefined> {
    const kept = await openKept(accountId, url)
    want(accountId, [url])
    if (kept) return kept
    const work = inFlight.get(nameOf(accountId, url))
    if (!work) return undefined
    await Promise.race([work, pause(WAIT_MS, undefined, { ref: false })])
    return openKept(accountId, url)
  }

  async function openKept(accountId: string, url: string): Promise<Buffer | undefined> {
    const row = await findWatermarkImage(deps.db, accountId, hashOf(url))
    return row?.sealed ? openBlob(sealKey, nameOf(accountId, url), row.sealed) : undefined
  }

  /** Never rejects: what went wrong is written down, or logged. */
  async function bring(accountId: string, url: string): Promise<void> {
    let nextS = deps.nowS() + FAILED_S
    try {
      const row = await findWatermarkImage(deps.db, accountId, hashOf(url))
      const dueS = row ? row.triedAtS + (row.problem === null ? FRESH_S : FAILED_S) : 0
      if (dueS > deps.nowS()) nextS = dueS
      else if (await fetchAndKeep(accountId, url)) nextS = deps.nowS() + FRESH_S
    } catch (error) {
      if (!stopping.signal.aborted) deps.log.error({ err: error, accountId }, 'the picture of a mark could not be kept')
    }
    if (settledUntilS.size >= REMEMBERED) settledUntilS.clear()
    settledUntilS.set(nameOf(accountId, url), nextS)
  }

  async function fetchAndKeep(accountId: string, url: string): Promise<boolean> {
    const drawn = await fetchImage(accountId, url).catch((error: unknown) => {
      stopping.signal.throwIfAborted()
      if (!(error instanceof Failure)) throw error
      const from = describeUrl(new URL(url))
      deps.log.warn({ accountId, from, problem: error.message }, 'the picture of a mark could not be fetched')
      return error
    })
    const isDrawn = Buffer.isBuffer(drawn)
    const image = {
      accountId,
      urlHash: hashOf(url),
      sealed: isDrawn ? sealBlob(sealKey, nameOf(accountId, url), drawn) : null,
      problem: isDrawn ? null : drawn.message,
      triedAtS: deps.nowS(),
    }
    await deps.write((tx) => saveWatermarkImage(tx, image, KEPT_PER_ACCOUNT))
    return isDrawn
  }

  async function fetchImage(accountId: string, url: string): Promise<Buffer> {
    const { signal } = stopping
    const bytes = await guardedFetch(deps.outbound, { ...LIMITS, accountId, url, signal }, async (answer) => {
      if (answer.status !== 200)
        throw new Failure('unavailable', `The host of a mark's picture answers ${answer.status} instead of a picture.`)
      return Buffer.concat(await Array.fromAsync(answer.bytes))
    })
    return drawing(accountId, () => reencodeImage(deps.sandbox, deps.tmp, bytes, signal))
  }

  async function idle(): Promise<void> {
    await Promise.all(inFlight.values())
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await idle()
  }

  return { request: want, find, idle, stop }
}

function hashOf(url: string): Buffer {
  return createHash('sha256').update(url).digest()
}

function nameOf(accountId: string, url: string): string {
  return `${accountId}/${hashOf(url).toString('hex')}`
}
