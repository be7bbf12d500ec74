import { randomId, sha256Base64url, toBase64url } from './encoding.ts'

export type Operation = 'redeem' | 'page' | 'playlist' | 'key' | 'file' | 'beat' | 'leave'

/** What a proof speaks for: typed values, never a URL, so that no proxy's prefix or encoding can break it. */
export type SignedRequest = { operation: Operation; session?: string; argument?: string; body?: string }

export type ProofPage = { pageId: string; seq: number; nonce: string }

/** The eight signed lines. `bodyHash`: SHA-256 of the body in base64url, absent when there is no body. @see playback protocol, section 3 */
export function proofLines(request: SignedRequest, page: ProofPage, bodyHash: string | undefined): string {
  return [
    'reelgate-proof-1',
    request.operation,
    request.session ?? '-',
    request.argument ?? '-',
    page.pageId,
    String(page.seq),
    page.nonce,
    bodyHash ?? '-',
  ].join('\n')
}

export type Signer = {
  /** 22 characters; a new signer is a new page to the server. */
  readonly pageId: string
  /** The value of the `Reelgate-Proof` header for one request; each call uses up one seq, so never send a value twice. */
  sign(request: SignedRequest): Promise<string>
  /** Remembers the newest nonce that an answer carried (null: it carried none). */
  takeNonce(nonce: string | null): void
}

/** Signs as a new page of the browser that holds `privateKey` (ECDSA P-256). `nonce` is the one that came with the page. */
export function createSigner(privateKey: CryptoKey, nonce: string): Signer {
  const pageId = randomId()
  let newestNonce = nonce
  let lastSeq = 0
  return {
    pageId,
    async sign(request) {
      const page = { pageId, seq: ++lastSeq, nonce: newestNonce }
      const bodyHash = request.body === undefined ? undefined : await sha256Base64url(request.body)
      const lines = new TextEncoder().encode(proofLines(request, page, bodyHash))
      const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, privateKey, lines)
      return `1.${page.pageId}.${page.seq}.${page.nonce}.${toBase64url(new Uint8Array(signature))}`
    },
    takeNonce(nonce) {
      if (nonce) newestNonce = nonce
    },
  }
}

export type KeyPair = { publicKey: CryptoKey; privateKey: CryptoKey }

/** A non-extractable pair for one OTP: one pair for ever would make a viewer recognisable everywhere. */
export function newKeyPair(): Promise<KeyPair> {
  return crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify'])
}

/** The 65 bytes of the public point in base64url: 87 characters, as redeem sends them. */
export async function publicKeyText(pair: KeyPair): Promise<string> {
  return toBase64url(new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey)))
}

/**
 * Which operation a request's address needs a proof for: `…/play/<session>/<playlist|key|file>/<argument>`.
 * Undefined: an address outside this session, such as a segment's, which goes unsigned.
 */
export function parseSignedRequest(url: string, session: string): SignedRequest | undefined {
  const match = /\/play\/([^/]+)\/(playlist|key|file)\/([^/]+)\/?$/.exec(new URL(url).pathname)
  if (match?.[1] !== session) return undefined
  const operation = match[2]
  if (operation !== 'playlist' && operation !== 'key' && operation !== 'file') return undefined
  return { operation, session, argument: decodeURIComponent(match[3] ?? '') }
}
