import { expect, test } from 'vitest'
import {
  deriveKey,
  parseMasterKey,
  readMasterKeyText,
  replaceMasterKey,
  rewrap,
  signingKeys,
  unwrap,
  wrap,
} from '../../src/crypto/master-key.ts'
import { sealBlob } from '../../src/crypto/sealed-blob.ts'
import { openImage } from '../../src/watermark/watermark-image.ts'

// The master keys of an installation: the current one, and during a rotation those before it.

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const SECRET = Buffer.from('a content key')

test('after a replacement the new key wraps, the old one opens what it wrapped, and not what was wrapped since', () => {
  const ring = parseMasterKey(OLD)
  const before = wrap(ring, 'use', SECRET)
  replaceMasterKey(ring, parseMasterKey(NEW))
  expect(unwrap(ring, 'use', before)).toEqual(SECRET)
  for (const since of [wrap(ring, 'use', SECRET), rewrap(ring, 'use', before)]) {
    expect(unwrap(ring, 'use', since)).toEqual(SECRET)
    expect(unwrap(parseMasterKey(NEW), 'use', since)).toEqual(SECRET)
    expect(() => unwrap(parseMasterKey(OLD), 'use', since)).toThrow(/another master key/)
    // Neither with the id of the old key written over that of the new one.
    const relabelled = Buffer.concat([parseMasterKey(OLD).id, since.subarray(4)])
    expect(() => unwrap(parseMasterKey(OLD), 'use', relabelled)).toThrow(/authenticate/)
  }
  expect(() => unwrap(parseMasterKey(NEW), 'use', before)).toThrow(/another master key/)
  expect(() => rewrap(ring, 'another use', before)).toThrow(/authenticate/)
})

test('a ring is written as its keys, the current one first; anything else is not a ring', () => {
  const [a, b] = ['ab'.repeat(32), 'CD'.repeat(32)]
  for (const text of [`${a}\n${b}\n`, `${a},${b}`, `  ${a}, ${b} `, `${a}\n${b}\n${a}\n`]) {
    const ring = readMasterKeyText(text)
    expect(ring?.bytes.toString('hex')).toBe(a)
    expect(ring?.older.map(({ bytes }) => bytes.toString('hex'))).toEqual([b.toLowerCase()])
  }
  expect(readMasterKeyText(`${a}\n`)?.older).toEqual([])
  for (const text of ['', a.slice(1), `${a}${b}`, `${a};${b}`, `${a} x`]) expect(readMasterKeyText(text)).toBeUndefined()
})

test('what an older key signed is valid until its time has passed, for its own use', () => {
  const ring = parseMasterKey(NEW)
  const former = deriveKey(OLD, 'paths', 32)
  ring.formerSigningKeys = [{ info: 'paths', key: former, endsAtS: 100 }]
  const current = deriveKey(NEW, 'paths', 32)
  expect(signingKeys(ring, 'paths', 32, 99)).toEqual([current, former])
  expect(signingKeys(ring, 'paths', 32, 100)).toEqual([current])
  expect(signingKeys(ring, 'forms', 32, 99)).toEqual([deriveKey(NEW, 'forms', 32)])
})

test('a watermark’s image that an earlier version sealed opens with any key of the ring', () => {
  const image = { accountId: 'a'.repeat(32), urlHash: Buffer.alloc(32, 5) }
  const name = `${image.accountId}/${image.urlHash.toString('hex')}`
  const sealed = sealBlob(deriveKey(OLD, 'reelgate mark-image 1', 32), name, SECRET)
  const ring = parseMasterKey(OLD)
  expect(openImage(ring, image, sealed)).toEqual(SECRET)
  replaceMasterKey(ring, parseMasterKey(NEW))
  expect(openImage(ring, image, sealed)).toEqual(SECRET)
  expect(() => openImage(parseMasterKey(NEW), image, sealed)).toThrow(/no key of the ring/)
})
