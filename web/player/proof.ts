import { fromBase64url, randomId, sha256Base64url, toBase64url } from './encoding.ts'

type Operation = 'redeem' | 'page' | 'playlist' | 'key' | 'file' | 'beat' | 'damage' | 'leave'

/** What a proof speaks for: typed values, never a URL, so that no proxy's prefix or encoding can break it. */
export type SignedRequest = { operation: Operation; session?: string; argument?: string; body?: string }

type ProofPage = { pageId: string; seq: number; nonce: string }

/** The eight signed lines. `bodyHash`: SHA-256 of the body in base64url, absent when there is no body. @see playback protocol, section 3 */
function proofLines(request: SignedRequest, page: ProofPage, bodyHash: string | undefined): string {
  return [
    'reelgate-proof-2',
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

/** Signs as a new page of the browser that holds the proof key. `nonce` is the one that came with the page. */
export function createSigner({ key }: ProofKey, nonce: string): Signer {
  const pageId = randomId()
  let newestNonce = nonce
  let lastSeq = 0
  return {
    pageId,
    async sign(request) {
      const page = { pageId, seq: ++lastSeq, nonce: newestNonce }
      const bodyHash = request.body === undefined ? undefined : await sha256Base64url(request.body)
      const lines = new TextEncoder().encode(proofLines(request, page, bodyHash))
      const tag = await crypto.subtle.sign('HMAC', key, lines)
      return `2.${page.pageId}.${page.seq}.${page.nonce}.${toBase64url(new Uint8Array(tag))}`
    },
    takeNonce(nonce) {
      if (nonce) newestNonce = nonce
    },
  }
}

/** The server's public key and its id, as the page names them. */
export type ServerKey = { serverKey: string; serverKeyId: string }

/** The key under which a browser proves its requests, and what redeem says of it: both ends' sides of the agreement. */
export type ProofKey = {
  /** HMAC-SHA-256; no script can read it. */
  key: CryptoKey
  /** The browser's public point, 65 bytes in base64url. */
  publicKey: string
  serverKeyId: string
}

/**
 * Agrees with the server on a key for one OTP: one key for ever would make a viewer recognisable everywhere. The private key is dropped
 * here, since who can use it may derive a readable key from it.
 */
export async function agreeProofKey({ serverKey, serverKeyId }: ServerKey): Promise<ProofKey> {
  const curve = { name: 'ECDH', namedCurve: 'P-256' }
  const serverPoint = fromBase64url(serverKey)
  const [pair, publicServerKey] = await Promise.all([
    crypto.subtle.generateKey(curve, false, ['deriveKey']),
    crypto.subtle.importKey('raw', serverPoint, curve, false, []),
  ])
  const browserPoint = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey))
  const shared = await crypto.subtle.deriveKey({ name: 'ECDH', public: publicServerKey }, pair.privateKey, 'HKDF', false, [
    'deriveKey',
  ])
  const salt = await crypto.subtle.digest('SHA-256', new Uint8Array([...browserPoint, ...serverPoint]))
  const key = await crypto.subtle.deriveKey(
    { name: 'HKDF', hash: 'SHA-256', salt, info: new TextEncoder().encode('reelgate-proof-2') },
    shared,
    { name: 'HMAC', hash: 'SHA-256', length: 256 },
    false,
    ['sign'],
  )
  return { key, publicKey: toBase64url(browserPoint), serverKeyId }
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
