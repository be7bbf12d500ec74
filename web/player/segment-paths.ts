import type { SignedRequest, Signer } from './proof.ts'
import { parseSignedRequest } from './proof.ts'

/** The signed beginning of a segment's address. */
const SIGNED = /media\/\d+\/[\w-]{22}\//
/** The end of a segment's address: rendition, number and, once the segment was repaired, how many times. */
const SEGMENT = /(\d+)\/(\d+)(\.\d+)?\.m4s/
const REPAIRED_SEGMENTS = /(\d+\/\d+)(\.\d+\.m4s)/g
/** It is valid for an hour at least from when its playlist was sent. */
const VALID_MS = 60 * 60_000
const RENEW_BEFORE_MS = 5 * 60_000

export type SegmentPaths = {
  /** Takes signature and repaired segments from a playlist that was just read. */
  note(playlist: string, text: string, sentMs: number): void
  /** Reads the playlist again; when that fails, the old addresses are tried as long as they are valid. */
  renew(): Promise<void>
  /**
   * Reads the playlist of a segment that is gone or cannot be parsed, once for each of its addresses.
   * @returns whether the playlist has another address for it
   */
  replace(url: string): Promise<boolean>
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
  let renewing: Promise<void> | undefined
  /** By rendition. */
  const playlists = new Map<string, string>()
  /** The rest of a repaired segment's address, by what precedes it. */
  const repaired = new Map<string, string>()
  /** Of segments that were gone or not parsed, the newest addresses, without their signatures. */
  const replacing = new Map<string, Promise<void>>()

  function renew(): Promise<void> {
    renewing ??= readPlaylist(known?.playlist).finally(() => {
      renewing = undefined
    })
    return renewing
  }

  async function readPlaylist(playlist: string | undefined): Promise<void> {
    const signed: SignedRequest | undefined = playlist === undefined ? undefined : parseSignedRequest(playlist, session)
    if (playlist === undefined || !signed) return
    const sentMs = performance.now()
    try {
      const answer = await fetch(playlist, { headers: { 'Reelgate-Proof': await signer.sign(signed) }, cache: 'no-store' })
      signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
      if (answer.ok) note(playlist, await answer.text(), sentMs)
    } catch {
      // the next segment tries again
    }
  }

  function note(playlist: string, text: string, sentMs: number): void {
    const [signature] = SIGNED.exec(text) ?? []
    if (signature !== undefined) known = { signature, playlist, sentMs }
    const [, rendition] = SEGMENT.exec(text) ?? []
    if (rendition !== undefined) playlists.set(rendition, playlist)
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
      const before = withRepair(url)
      const [address = '', rendition = ''] = SEGMENT.exec(before) ?? []
      const reading = replacing.get(address) ?? readPlaylist(playlists.get(rendition))
      replacing.set(address, reading)
      await reading
      return withRepair(url) !== before
    },
    async newest(url: string): Promise<string> {
      const ageMs = known ? performance.now() - known.sentMs : 0
      if (ageMs > VALID_MS) await renew()
      else if (ageMs > VALID_MS - RENEW_BEFORE_MS) void renew()
      const [address = ''] = SEGMENT.exec(withRepair(url)) ?? []
      await replacing.get(address)
      return known ? withRepair(url).replace(SIGNED, known.signature) : url
    },
  }
}
