import { createECDH, createHash, createHmac, type KeyObject } from 'node:crypto'
import { expect, test } from 'vitest'
import { deriveProofKey } from '../../src/playback/sessions/server-key.ts'
import { sha256Base64url, toBase64url } from '../../web/player/encoding.ts'
import { agreeProofKey, createSigner, parseSignedRequest, type SignedRequest } from '../../web/player/proof.ts'

const NONCE = 'n'.repeat(24)
const SESSION = 'S'.repeat(22)

test('a proof is what the protocol says, byte for byte, and the server agrees on its key', async () => {
  const { proofKey, serversKey } = await agree()
  const signer = createSigner(proofKey, NONCE)
  const body = '{"state":"playing","title":"Grüße"}'
  const match = /^2\.([\w-]{22})\.([1-9]\d{0,9})\.([\w-]{24})\.([\w-]{43})$/.exec(
    await signer.sign({ operation: 'beat', session: SESSION, body }),
  )
  const [, pageId = '', seq = '', nonce = '', tag = ''] = match ?? []
  const bodyHash = createHash('sha256').update(body).digest('base64url')
  const lines = `reelgate-proof-2\nbeat\n${SESSION}\n-\n${pageId}\n${seq}\n${nonce}\n${bodyHash}`
  expect({ pageId, seq, nonce }).toEqual({ pageId: signer.pageId, seq: '1', nonce: NONCE })
  expect(tag).toBe(tagOf(serversKey, lines))
})

test('a request without session, argument or body signs a dash for each', async () => {
  const { proofKey, serversKey } = await agree()
  const signer = createSigner(proofKey, NONCE)
  const tag = (await signer.sign({ operation: 'redeem' })).split('.')[4] ?? ''
  expect(tag).toBe(tagOf(serversKey, `reelgate-proof-2\nredeem\n-\n-\n${signer.pageId}\n1\n${NONCE}\n-`))
})

test('each proof works once: its seq is used by no other, even when fifty are signed concurrently', async () => {
  const signer = createSigner((await agree()).proofKey, NONCE)
  const asked: SignedRequest = { operation: 'key', session: SESSION, argument: '0' }
  const proofs = await Promise.all(Array.from({ length: 50 }, () => signer.sign(asked)))
  expect(new Set(proofs.map((proof) => proof.split('.')[2])).size).toBe(50)
})

test('a proof carries the newest nonce that an answer brought', async () => {
  const signer = createSigner((await agree()).proofKey, NONCE)
  signer.takeNonce('m'.repeat(24))
  signer.takeNonce(null)
  expect((await signer.sign({ operation: 'page', session: SESSION })).split('.')[3]).toBe('m'.repeat(24))
})

test('each page load is another page to the server', async () => {
  const { proofKey } = await agree()
  expect(createSigner(proofKey, NONCE).pageId).not.toBe(createSigner(proofKey, NONCE).pageId)
})

test('of what a browser keeps nothing can be exported, or used to derive anything', async () => {
  const { proofKey } = await agree()
  const kept = Object.values(proofKey).filter((value) => value instanceof CryptoKey)
  expect(kept.map(({ extractable, usages, algorithm }) => ({ extractable, usages, algorithm: algorithm.name }))).toEqual([
    { extractable: false, usages: ['sign'], algorithm: 'HMAC' },
  ])
  for (const key of kept) {
    await expect(crypto.subtle.exportKey('raw', key)).rejects.toThrow()
    await expect(crypto.subtle.exportKey('jwk', key)).rejects.toThrow()
  }
})

test('each OTP has a key of its own', async () => {
  const keys = [await agree(), await agree()]
  expect(new Set(keys.map(({ proofKey }) => proofKey.publicKey)).size).toBe(2)
})

test.each([
  ['/play/S/playlist/main', { operation: 'playlist', session: SESSION, argument: 'main' }],
  ['/play/S/playlist/17', { operation: 'playlist', session: SESSION, argument: '17' }],
  ['/behind/a/proxy/play/S/key/12', { operation: 'key', session: SESSION, argument: '12' }],
  ['/play/S/key/12/', { operation: 'key', session: SESSION, argument: '12' }],
  ['/play/S/file/captions-en.vtt', { operation: 'file', session: SESSION, argument: 'captions-en.vtt' }],
  ['/media/1764000000/sig/video/1/2/7.m4s', undefined],
  [`/play/${'T'.repeat(22)}/key/0`, undefined],
] as const)('%s is signed for what it asks', (path, asked) => {
  expect(parseSignedRequest(`https://videos.example${path.replace('/S/', `/${SESSION}/`)}`, SESSION)).toEqual(asked)
})

test('bytes and hashes are base64url without padding', async () => {
  expect(toBase64url(Uint8Array.of(0xfb, 0xff, 0xfe, 0))).toBe('-__-AA')
  expect(await sha256Base64url('Grüße')).toBe(createHash('sha256').update('Grüße').digest('base64url'))
})

/** A browser's proof key, and what the server derives from the public key that redeem sends. */
async function agree() {
  const server = createECDH('prime256v1')
  const serverKey = server.generateKeys().toString('base64url')
  const proofKey = await agreeProofKey({ serverKey, serverKeyId: 'I'.repeat(22) })
  const serversKey = deriveProofKey(server, Buffer.from(proofKey.publicKey, 'base64url'))
  if (!serversKey) throw new Error('the server refused the browser’s key')
  return { proofKey, serversKey }
}

function tagOf(key: KeyObject, lines: string): string {
  return createHmac('sha256', key).update(lines).digest('base64url')
}
