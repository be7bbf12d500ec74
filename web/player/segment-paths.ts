import type { Asked, Signer } from './proof.ts'
import { askedBy } from './proof.ts'

/** The signed beginning of a segment's address. */
const SIGNED = /media\/\d+\/[\w-]{22}\//
/** It lives an hour at least from when its playlist was sent. */
const LIFE_MS = 60 * 60_000
const RENEWED_BEFORE_MS = 5 * 60_000

/**
 * Keeps the addresses of segments alive: hls.js asks for the playlist of a video once, and what it signs lives an hour.
 * @see playback protocol, section 8
 */
export function createSegmentPaths(signer: Signer, session: string) {
  let known: { signed: string; playlist: string; sentMs: number } | undefined
  let renewing: Promise<void> | undefined

  /** Asks for the playlist again; without an answer the old addresses are tried as long as they live. */
  function renew(): Promise<void> {
    renewing ??= ask().finally(() => {
      renewing = undefined
    })
    return renewing
  }

  async function ask(): Promise<void> {
    const asked: Asked | undefined = known && askedBy(known.playlist, session)
    if (!known || !asked) return
    const sentMs = performance.now()
    try {
      const answer = await fetch(known.playlist, { headers: { 'Reelgate-Proof': await signer.sign(asked) }, cache: 'no-store' })
      signer.takeNonce(answer.headers.get('Reelgate-Nonce'))
      if (answer.ok) note(known.playlist, await answer.text(), sentMs)
    } catch {
      // the next segment asks again
    }
  }

  function note(playlist: string, text: string, sentMs: number): void {
    const [signed] = SIGNED.exec(text) ?? []
    if (signed !== undefined) known = { signed, playlist, sentMs }
  }

  return {
    note,
    renew,
    /** The address with the newest signature. */
    async newest(url: string): Promise<string> {
      const ageMs = known ? performance.now() - known.sentMs : 0
      if (ageMs > LIFE_MS) await renew()
      else if (ageMs > LIFE_MS - RENEWED_BEFORE_MS) void renew()
      return known ? url.replace(SIGNED, known.signed) : url
    },
  }
}
