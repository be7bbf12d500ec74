import type { FailedResponse } from './next-step.ts'
import { parseSignedRequest, type Signer } from './proof.ts'
import type { Damage } from './wire.ts'

/**
 * The end of a path: rendition, then `init` or the number of a segment, and, once that was repaired, how many times, or in a bucket what
 * its attempt is called.
 */
const FILE = /(\d+)\/(?:(init)\.mp4|(\d+)(?:\.\w+)?\.m4s)(?:\?|$)/
/** The addresses in a playlist: a line each, that of the init segment in quotes, and in a bucket with a signature behind it. */
const ADDRESS = /[^\s"]+\/(?:init\.mp4|[\w.]+\.m4s)(?:\?[^\s"]*)?(?="?$)/gm
const IV_KEY = /^#EXT-X-REELGATE-IV-KEY:([0-9a-f]{32})$/m
/** It is valid for an hour at least from when its playlist was sent. */
const VALID_MS = 60 * 60_000
const RENEW_BEFORE_MS = 5 * 60_000
const RESPONSE_TIMEOUT_MS = 15_000

export type SegmentPaths = {
  /** Takes the addresses from a playlist that was just read. */
  note(playlist: string, text: string, sentMs: number): void
  /** Reads the playlist of a segment again; when that fails, the old addresses are tried as long as they are valid. */
  renew(url: string): Promise<unknown>
  /**
   * Reads the playlist of a segment that is gone; of one that another origin does not have, after the server has checked its file.
   * @returns whether it has another address for the segment; the failed response, when it could not be read
   */
  replace(url: string): Promise<boolean | FailedResponse>
  /**
   * Reads the playlist of a segment that cannot be parsed, once for each of its addresses, after the server has checked its file; without
   * `url`, where a decoder failed, that of every rendition. Their segments wait for it.
   */
  rereadFor(url: string | undefined): void
  /** The newest address of a segment. */
  newest(url: string): Promise<string>
  /** The IV of a segment, which its playlist does not name; undefined for any other address. */
  ivOf(url: string): Promise<Uint8Array<ArrayBuffer> | undefined>
}

type Reads = Map<string, Promise<FailedResponse | undefined>>

/** A rendition's playlist as it was last read: its addresses by the names of their files. */
type Playlist = { url: string; sentMs: number; addresses: ReadonlyMap<string, string>; ivKey: string }

/**
 * Renews the addresses of segments: hls.js reads the playlist of a video once, its signatures are valid for an hour, and a segment that
 * was damaged on the server comes back under another name, or from another origin.
 * @see playback protocol, section 8
 */
export function createSegmentPaths(signer: Signer, session: string): SegmentPaths {
  /** By rendition. */
  const playlists = new Map<string, Playlist>()
  /** By rendition: its playlist is being read, and its segments wait for it. */
  const reading: Reads = new Map()
  /** By rendition: its playlist is being read, and its old addresses are valid. */
  const renewing: Reads = new Map()
  const unreadable = new Set<string>()

  const renew = (rendition: string) => oncePerRendition(renewing, rendition, () => readPlaylist(rendition))
  const reread = (rendition: string, damage?: Damage) =>
    oncePerRendition(reading, rendition, async () => {
      if (damage) await report(rendition, damage)
      return readPlaylist(rendition)
    })

  /** Resolves when the server has checked the segment, or cannot now. */
  async function report(rendition: string, damage: Damage): Promise<void> {
    const body = JSON.stringify(damage)
    const playlist = playlists.get(rendition)
    if (!playlist) return
    try {
      const headers = {
        'Content-Type': 'application/json',
        'Reelgate-Proof': await signer.sign({ operation: 'damage', session, body }),
      }
      const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS)
      const answer = await fetch(new URL('../damage', playlist.url), { method: 'POST', headers, body, signal })
      signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
    } catch {}
  }

  /** @returns the failed response */
  async function readPlaylist(rendition: string): Promise<FailedResponse | undefined> {
    const playlist = playlists.get(rendition)?.url
    const signed = playlist === undefined ? undefined : parseSignedRequest(playlist, session)
    if (playlist === undefined || !signed) return undefined
    const sentMs = performance.now()
    try {
      const headers = { 'Reelgate-Proof': await signer.sign(signed) }
      const answer = await fetch(playlist, { headers, cache: 'no-store', signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) })
      signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
      const body = await answer.text()
      if (!answer.ok) return { status: answer.status, retryAfter: answer.headers.get('Retry-After'), body }
      note(playlist, body, sentMs)
      return undefined
    } catch {
      return { status: 0, retryAfter: null, body: '' }
    }
  }

  function note(url: string, text: string, sentMs: number): void {
    const listed = Array.from(text.matchAll(ADDRESS), ([address]) => new URL(address, url).href)
    const [first] = listed
    if (first === undefined) return // of captions, or the multivariant one
    playlists.set(fileOf(first).rendition, {
      url,
      sentMs,
      ivKey: IV_KEY.exec(text)?.[1] ?? '',
      addresses: new Map(listed.map((address) => [fileOf(address).name, address])),
    })
  }

  function newestKnown(url: string): string {
    const { rendition, name } = fileOf(url)
    return playlists.get(rendition)?.addresses.get(name) ?? url
  }

  return {
    note,
    renew: (url) => renew(fileOf(url).rendition),
    async replace(url) {
      const { rendition } = fileOf(url)
      const isElsewhere = new URL(url).origin !== new URL(playlists.get(rendition)?.url ?? url).origin
      const failed = await reread(rendition, isElsewhere ? damageOf(url) : undefined)
      return failed ?? newestKnown(url) !== url
    },
    rereadFor(url) {
      if (url === undefined) {
        for (const rendition of playlists.keys()) void reread(rendition)
        return
      }
      const address = newestKnown(url)
      if (!unreadable.has(address)) void reread(fileOf(address).rendition, damageOf(address))
      unreadable.add(address)
    },
    async ivOf(url) {
      const { rendition, number } = fileOf(url)
      const ivKey = playlists.get(rendition)?.ivKey
      return ivKey && number !== undefined ? makeIv(ivKey, Number(rendition), Number(number)) : undefined
    },
    async newest(url) {
      const { rendition } = fileOf(url)
      const known = playlists.get(rendition)
      const ageMs = known ? performance.now() - known.sentMs : 0
      if (ageMs > VALID_MS) await renew(rendition)
      else if (ageMs > VALID_MS - RENEW_BEFORE_MS) void renew(rendition)
      await reading.get(rendition)
      return newestKnown(url)
    },
  }
}

/** AES of one block, which WebCrypto has only as the first block of CBC. @see playback protocol, section 5 */
async function makeIv(ivKey: string, rendition: number, segment: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = Uint8Array.from(ivKey.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
  const key = await crypto.subtle.importKey('raw', bytes, 'AES-CBC', false, ['encrypt'])
  const block = new DataView(new ArrayBuffer(16))
  block.setUint32(0, rendition)
  block.setUint32(4, segment)
  const sealed = await crypto.subtle.encrypt({ name: 'AES-CBC', iv: block }, key, new Uint8Array(16))
  return new Uint8Array(sealed.slice(0, 16))
}

/** Starts a read unless one is under way. */
function oncePerRendition(reads: Reads, rendition: string, start: () => Promise<FailedResponse | undefined>) {
  const read = reads.get(rendition) ?? start().finally(() => reads.delete(rendition))
  reads.set(rendition, read)
  return read
}

/** What the server is asked to check; undefined for an init segment. */
function damageOf(url: string): Damage | undefined {
  const { rendition, number } = fileOf(url)
  return number === undefined ? undefined : { rendition: Number(rendition), segment: Number(number) }
}

/** `name`: without how many times it was repaired. `number`: of a segment. */
function fileOf(url: string): { rendition: string; name: string; number: string | undefined } {
  const [, rendition = '', init = '', number] = FILE.exec(url) ?? []
  return { rendition, name: number ?? init, number }
}
