import type { SignedRequest, Signer } from './proof.ts'
import { parseSignedRequest } from './proof.ts'

/** The signed beginning of a segment's address. */
const SIGNED = /media\/\d+\/[\w-]{22}\//
/** It is valid for an hour at least from when its playlist was sent. */
const VALID_MS = 60 * 60_000
const RENEW_BEFORE_MS = 5 * 60_000

export type SegmentPaths = {
  /** Takes the signature from a playlist that was just read. */
  note(playlist: string, text: string, sentMs: number): void
  /** Reads the playlist again; when that fails, the old addresses are tried as long as they are valid. */
  renew(): Promise<void>
  /** The address with the newest signature. */
  newest(url: string): Promise<string>
}

/**
 * Renews the signed paths of segments: hls.js reads the playlist of a video once, and its signatures are valid for an hour.
 * @see playback protocol, section 8
 */
export function createSegmentPaths(signer: Signer, session: string): SegmentPaths {
  let known: { signature: string; playlist: string; sentMs: number } | undefined
  let renewing: Promise<void> | undefined

  function renew(): Promise<void> {
    renewing ??= readPlaylist().finally(() => {
      renewing = undefined
    })
    return renewing
  }

  async function readPlaylist(): Promise<void> {
    const signed: SignedRequest | undefined = known && parseSignedRequest(known.playlist, session)
    if (!known || !signed) return
    const sentMs = performance.now()
    try {
      const answer = await fetch(known.playlist, { headers: { 'Reelgate-Proof': await signer.sign(signed) }, cache: 'no-store' })
      signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
      if (answer.ok) note(known.playlist, await answer.text(), sentMs)
    } catch {
      // the next segment tries again
    }
  }

  function note(playlist: string, text: string, sentMs: number): void {
    const [signature] = SIGNED.exec(text) ?? []
    if (signature !== undefined) known = { signature, playlist, sentMs }
  }

  return {
    note,
    renew,
    async newest(url: string): Promise<string> {
      const ageMs = known ? performance.now() - known.sentMs : 0
      if (ageMs > VALID_MS) await renew()
      else if (ageMs > VALID_MS - RENEW_BEFORE_MS) void renew()
      return known ? url.replace(SIGNED, known.signature) : url
    },
  }
}
