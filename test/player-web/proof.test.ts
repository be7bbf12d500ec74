import { createHash, createPublicKey, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { sha256Base64url, toBase64url } from '../../web/player/encoding.ts'
import {
  createSigner,
  type KeyPair,
  newKeyPair,
  parseSignedRequest,
  publicKeyText,
  type SignedRequest,
} from '../../web/player/proof.ts'

const NONCE = 'n'.repeat(24)
const SESSION = 'S'.repeat(22)

test('a proof is what the protocol says, byte for byte, and the public key of redeem verifies it', async () => {
  const pair = await newKeyPair()
  const signer = createSigner(pair.privateKey, NONCE)
  const body = '{"state":"playing","title":"Grüße"}'
  const match = /^1\.([\w-]{22})\.([1-9]\d{0,9})\.([\w-]{24})\.([\w-]{86})$/.exec(
    await signer.sign({ operation: 'beat', session: SESSION, body }),
  )
  const [, pageId = '', seq = '', nonce = '', signature = ''] = match ?? []
  const bodyHash = createHash('sha256').update(body).digest('base64url')
  const lines = `reelgate-proof-1\nbeat\n${SESSION}\n-\n${pageId}\n${seq}\n${nonce}\n${bodyHash}`
  expect({ pageId, seq, nonce }).toEqual({ pageId: signer.pageId, seq: '1', nonce: NONCE })
  expect(await verifies(pair, lines, signature)).toBe(true)
  expect(await verifies(pair, lines.replace('beat', 'leave'), signature)).toBe(false)
})

test('a request without session, argument or body signs a dash for each', async () => {
  const pair = await newKeyPair()
  const signer = createSigner(pair.privateKey, NONCE)
  const signature = (await signer.sign({ operation: 'redeem' })).split('.')[4] ?? ''
  expect(await verifies(pair, `reelgate-proof-1\nredeem\n-\n-\n${signer.pageId}\n1\n${NONCE}\n-`, signature)).toBe(true)
})

test('each proof works once: its seq is used by no other, even when fifty are signed concurrently', async () => {
  const signer = createSigner((await newKeyPair()).privateKey, NONCE)
  const asked: SignedRequest = { operation: 'key', session: SESSION, argument: '0' }
  const proofs = await Promise.all(Array.from({ length: 50 }, () => signer.sign(asked)))
  expect(new Set(proofs.map((proof) => proof.split('.')[2])).size).toBe(50)
})

test('a proof carries the newest nonce that an answer brought', async () => {
  const signer = createSigner((await newKeyPair()).privateKey, NONCE)
  signer.takeNonce('m'.repeat(24))
  signer.takeNonce(null)
  expect((await signer.sign({ operation: 'page', session: SESSION })).split('.')[3]).toBe('m'.repeat(24))
})

test('each page load is another page to the server', async () => {
  const { privateKey } = await newKeyPair()
  expect(createSigner(privateKey, NONCE).pageId).not.toBe(createSigner(privateKey, NONCE).pageId)
})

test('the private key cannot be read out of the browser', async () => {
  const { privateKey } = await newKeyPair()
  expect(privateKey.extractable).toBe(false)
  await expect(crypto.subtle.exportKey('pkcs8', privateKey)).rejects.toThrow()
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

async function verifies(pair: KeyPair, lines: string, signature: string): Promise<boolean> {
  const point = Buffer.from(await publicKeyText(pair), 'base64url')
  const spki = Buffer.concat([Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex'), point])
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
  return verify('sha256', Buffer.from(lines), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))
}
