import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  deriveKey,
  parseMasterKey,
  readMasterKeyText,
  replaceKeyFile,
  replaceMasterKey,
  signingKeys,
  unwrap,
  wrap,
  writeMasterKey,
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
  for (const since of [wrap(ring, 'use', SECRET), wrap(ring, 'use', unwrap(ring, 'use', before))]) {
    expect(unwrap(ring, 'use', since)).toEqual(SECRET)
    expect(unwrap(parseMasterKey(NEW), 'use', since)).toEqual(SECRET)
    expect(() => unwrap(parseMasterKey(OLD), 'use', since)).toThrow(/another master key/)
    // Neither with the id of the old key written over that of the new one.
    const relabelled = Buffer.concat([parseMasterKey(OLD).id, since.subarray(4)])
    expect(() => unwrap(parseMasterKey(OLD), 'use', relabelled)).toThrow(/authenticate/)
  }
  expect(() => unwrap(parseMasterKey(NEW), 'use', before)).toThrow(/another master key/)
  expect(() => unwrap(ring, 'another use', before)).toThrow(/authenticate/)
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

test('a key file is replaced whole: behind its symbolic link, readable by its owner alone, with nothing left next to it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-ring-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const [file, link] = [join(folder, 'secret/master.key'), join(folder, 'data.key')]
  await mkdir(join(folder, 'secret'))
  writeMasterKey(file, parseMasterKey(OLD))
  await symlink(file, link)
  replaceKeyFile(link, [parseMasterKey(NEW), parseMasterKey(OLD)])
  expect(await readlink(link)).toBe(file)
  expect(await readFile(file, 'utf8')).toBe(`${NEW.toString('hex')}\n${OLD.toString('hex')}\n`)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await readdir(folder, { recursive: true })).toEqual(expect.arrayContaining(['data.key', 'secret', 'secret/master.key']))
  expect(await readdir(join(folder, 'secret'))).toEqual(['master.key'])
  expect(() => replaceKeyFile(join(folder, 'none.key'), [parseMasterKey(NEW)])).toThrow(/cannot be replaced/)
  expect(await readdir(folder)).not.toContain('none.key.new')
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
