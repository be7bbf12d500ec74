import type { FailedResponse } from './next-step.ts'
import { parseSignedRequest, type Signer } from './proof.ts'

/** The signed beginning of a segment's address. */
const SIGNED = /media\/\d+\/[\w-]{22}\//
/** The end of a segment's address: rendition, number and, once the segment was repaired, how many times. */
const SEGMENT = /(\d+)\/(\d+)(\.\d+)?\.m4s/
const REPAIRED_SEGMENTS = /(\d+\/\d+)(\.\d+\.m4s)/g
/** It is valid for an hour at least from when its playlist was sent. */
const VALID_MS = 60 * 60_000
const RENEW_BEFORE_MS = 5 * 60_000
const RESPONSE_TIMEOUT_MS = 15_000

export type SegmentPaths = {
  /** Takes signature and repaired segments from a playlist that was just read. */
  note(playlist: string, text: string, sentMs: number): void
  /** Reads the playlist again; when that fails, the old addresses are tried as long as they are valid. */
  renew(): Promise<unknown>
  /**
   * Reads the playlist of a segment that is gone.
   * @returns whether it has another address for the segment; the failed response, when it could not be read
   */
  replace(url: string): Promise<boolean | FailedResponse>
  /**
   * Reads the playlist of a segment that cannot be parsed, once for each of its addresses; without `url`, where a decoder failed, that of
   * every rendition. Their segments wait for it.
   */
  rereadFor(url: string | undefined): void
  /** The address with the newest signature, of the segment as it was last repaired. */
  newest(url: string): Promise<string>
}

/**
 * Renews the paths of segments: hls.js reads the playlist of a video once, its signatures are valid for an hour, and a segment that was
 * damaged on the server comes back under another name.
 * @see playback protocol, section 8
 */
export function createSegmentPaths(signer: Signer, session: string): SegmentPaths {
  let known: { signature: string; playlist: string; sentMs: number } | undefined
  let renewing: Promise<unknown> | undefined
  /** By rendition. */
  const playlists = new Map<string, string>()
  /** The rest of a repaired segment's address, by what precedes it. */
  const repaired = new Map<string, string>()
  /** By rendition: its playlist is being read, and its segments wait for it. */
  const reading = new Map<string, Promise<FailedResponse | undefined>>()
  const unreadable = new Set<string>()

  function renew(): Promise<unknown> {
    renewing ??= readPlaylist(known?.playlist).finally(() => {
      renewing = undefined
    })
    return renewing
  }

  function reread(rendition: string): Promise<FailedResponse | undefined> {
    const read = reading.get(rendition) ?? readPlaylist(playlists.get(rendition)).finally(() => reading.delete(rendition))
    reading.set(rendition, read)
    return read
  }

  /** @returns the failed response */
  async function readPlaylist(playlist: string | undefined): Promise<FailedResponse | undefined> {
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

  function note(playlist: string, text: string, sentMs: number): void {
    const [signature] = SIGNED.exec(text) ?? []
    if (signature !== undefined) known = { signature, playlist, sentMs }
    if (SEGMENT.test(text)) playlists.set(renditionOf(text), playlist)
    for (const [, segment = '', rest = ''] of text.matchAll(REPAIRED_SEGMENTS)) repaired.set(segment, rest)
  }

  function withRepair(url: string): string {
    return url.replace(SEGMENT, (address, rendition, number) => {
      const segment = `${rendition}/${number}`
      return segment + (repaired.get(segment) ?? address.slice(segment.length))
    })
  }

  return {
    note,
    renew,
    async replace(url) {
      const failed = await reread(renditionOf(url))
      return failed ?? withRepair(url) !== url
    },
    rereadFor(url) {
      if (url === undefined) return [...playlists.keys()].forEach(reread)
      const address = withRepair(url)
      if (!unreadable.has(address)) void reread(renditionOf(address))
      unreadable.add(address)
    },
    async newest(url: string): Promise<string> {
      const ageMs = known ? performance.now() - known.sentMs : 0
      if (ageMs > VALID_MS) await renew()
      else if (ageMs > VALID_MS - RENEW_BEFORE_MS) void renew()
      await reading.get(renditionOf(url))
      return known ? withRepair(url).replace(SIGNED, known.signature) : url
    },
  }
}

function renditionOf(url: string): string {
  return SEGMENT.exec(url)?.[1] ?? ''
}
