import { createCipheriv } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createSegmentIvDeriver,
  deriveWindowKey,
  encryptSegment,
  newContentKey,
  unwrapContentKey,
  wrapContentKey,
} from '../../src/crypto/content-key.ts'
import { windowOfAudioSegment, windowOfVideoSegment } from '../../src/crypto/key-window.ts'
import { deriveKey, parseMasterKey } from '../../src/crypto/master-key.ts'
import { hashSecret, isSecret, newSecret } from '../../src/crypto/secret.ts'
import { decrypt } from '../viewer.ts'

// Known answers: what is stored today must open tomorrow, and by others' tools.

const CONTENT_KEY = Buffer.from(Array.from({ length: 32 }, (_, i) => i))
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

describe('the vectors of the playback protocol, section 5', () => {
  test.each([
    [0, '256e5ae3056bd389c4d4f9f4b5295405'],
    [299, '2c45934287c8ea9a6f9a5d7a563659aa'],
  ])('key of window %i', (window, key) => {
    expect(deriveWindowKey(CONTENT_KEY, window).toString('hex')).toBe(key)
  })

  test('the key of any window is HKDF-SHA256 without salt', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.nat(999_999_999), (bytes, window) => {
        const contentKey = Buffer.from(bytes)
        expect(deriveWindowKey(contentKey, window)).toEqual(deriveKey(contentKey, `reelgate window-key 1 ${window}`, 16))
      }),
    )
  })

  test('the key that IVs are made with', () => {
    expect(deriveKey(CONTENT_KEY, 'reelgate iv-key 1', 16).toString('hex')).toBe('9f8dd5427da6b1f4c88ddb7ac8d14d6b')
  })

  test.each([
    [1, 0, '23e51ef048b44128473ae33b99527cb0'],
    [3, 899, 'd01392ced0e6d80a1163e7933185f66a'],
  ])('IV of rendition %i, segment %i', (rendition, segment, iv) => {
    expect(createSegmentIvDeriver(CONTENT_KEY)(rendition, segment).toString('hex')).toBe(iv)
  })
})

test('HKDF-SHA256 without salt and info, as in RFC 5869, test case 3', () => {
  const okm = '8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8'
  expect(deriveKey(Buffer.alloc(22, 0x0b), '', 42).toString('hex')).toBe(okm)
})

test('AES-128-CBC as in NIST SP 800-38A, F.2.1, and then one block of padding', () => {
  const clear = hex(
    '6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51 30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710',
  )
  const sealed = hex(
    '7649abac8119b246cee98e9b12e9197d 5086cb9b507219ee95db113a917678b2 73bed6b8e3c1743b7116e69e22229516 3ff1caa1681fac09120eca307586e1a7',
  )
  const key = hex('2b7e151628aed2a6abf7158809cf4f3c')
  const iv = hex('000102030405060708090a0b0c0d0e0f')
  const segment = encryptSegment(clear, key, iv)
  expect(segment.subarray(0, 64)).toEqual(sealed)
  expect(segment).toHaveLength(80)
  expect(decrypt(segment, key, iv)).toEqual(clear)
})

test('an IV is one AES block over rendition, segment and eight zero bytes', () => {
  fc.assert(
    fc.property(
      fc.nat(2 ** 32 - 1),
      fc.nat(2 ** 32 - 1),
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      (rendition, segment, bytes) => {
        const contentKey = Buffer.from(bytes)
        const block = Buffer.alloc(16)
        block.writeUInt32BE(rendition, 0)
        block.writeUInt32BE(segment, 4)
        // One block of CBC under a zero IV is one block of ECB.
        const cipher = createCipheriv('aes-128-cbc', deriveKey(contentKey, 'reelgate iv-key 1', 16), Buffer.alloc(16))
        expect(createSegmentIvDeriver(contentKey)(rendition, segment)).toEqual(cipher.update(block))
      },
    ),
  )
})

test('P05: in a video of ten renditions and an hour no IV comes twice, and no window has another’s key', () => {
  const ivOf = createSegmentIvDeriver(newContentKey())
  const ivs = Array.from({ length: 10 }, (_, rendition) =>
    Array.from({ length: 900 }, (_, segment) => ivOf(rendition + 1, segment).toString('hex')),
  ).flat()
  expect(new Set(ivs).size).toBe(9000)
  const contentKey = newContentKey()
  expect(new Set(Array.from({ length: 300 }, (_, window) => deriveWindowKey(contentKey, window).toString('hex'))).size).toBe(300)
})

describe('a wrapped content key', () => {
  const master = parseMasterKey(Buffer.alloc(32, 7))
  const videoId = '0123456789abcdef'.repeat(2)
  const wrapped = wrapContentKey(master, videoId, 1, CONTENT_KEY)

  test('opens for its video and generation, and is 64 bytes of which none shows the key', () => {
    expect(unwrapContentKey(master, videoId, 1, wrapped)).toEqual(CONTENT_KEY)
    expect(wrapped).toHaveLength(4 + 12 + 32 + 16)
    expect(wrapped.includes(CONTENT_KEY.subarray(0, 8))).toBe(false)
    expect(wrapContentKey(master, videoId, 1, CONTENT_KEY)).not.toEqual(wrapped)
  })

  test('moved to another video or generation, or opened with another master key, does not open', () => {
    expect(() => unwrapContentKey(master, videoId.replace('0', '1'), 1, wrapped)).toThrow()
    expect(() => unwrapContentKey(master, videoId, 2, wrapped)).toThrow()
    expect(() => unwrapContentKey(parseMasterKey(Buffer.alloc(32, 8)), videoId, 1, wrapped)).toThrow(/another master key/)
  })

  test('with any one bit changed does not open', () => {
    for (let bit = 0; bit < wrapped.length * 8; bit++) {
      const changed = Buffer.from(wrapped)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(() => unwrapContentKey(master, videoId, 1, changed)).toThrow()
    }
  })
})

test('an audio segment belongs to the key window of its first sample, for any frame rate', () => {
  const rates = fc.constantFrom([24, 1], [25, 1], [30, 1], [50, 1], [60, 1], [24_000, 1001], [30_000, 1001], [60_000, 1001])
  fc.assert(
    fc.property(rates, fc.integer({ min: 24, max: 480 }), fc.nat(20_000), ([rateNum = 1, rateDen = 1], gopFrames, segment) => {
      const window = windowOfAudioSegment(segment, { rateNum, rateDen, gopFrames })
      // window · 3 · gop · den/num ≤ segment · 188 · 1024 / 48000 < (window + 1) · …, in integers.
      const startsAt = BigInt(segment) * 188n * 1024n * BigInt(rateNum)
      const lasts = 3n * BigInt(gopFrames) * BigInt(rateDen) * 48_000n
      expect(BigInt(window) * lasts <= startsAt && startsAt < BigInt(window + 1) * lasts).toBe(true)
    }),
  )
  expect([0, 1, 2, 3, 4, 5, 6].map(windowOfVideoSegment)).toEqual([0, 0, 0, 1, 1, 1, 2])
})

test('O01: secrets are 64 letters and digits, each of the 62 as likely as another', () => {
  const letters = new Map<string, number>()
  for (let i = 0; i < 1000; i++) {
    const secret = newSecret()
    expect(isSecret(secret)).toBe(true)
    for (const letter of secret) letters.set(letter, (letters.get(letter) ?? 0) + 1)
  }
  expect(letters.size).toBe(62)
  // Chi-squared of 61 degrees of freedom: above 130 once in a million runs. `byte % 62` alone would come to about 330.
  const expected = 64_000 / 62
  expect([...letters.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)).toBeLessThan(130)
  expect(hashSecret('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})
