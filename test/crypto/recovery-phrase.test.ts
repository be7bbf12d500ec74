import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { assert, integer, property, uint8Array } from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { parseMasterKey, readMasterKeyFile, writeMasterKey } from '../../src/crypto/master-key.ts'
import { keyFromPhrase, phraseFromKey } from '../../src/crypto/recovery-phrase.ts'

const anyKey = uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => parseMasterKey(Buffer.from(bytes)))

test('every master key comes back from its 24 words, however they were written down', () => {
  assert(
    property(anyKey, (key) => {
      const words = phraseFromKey(key)
      expect(words).toHaveLength(24)
      const onPaper = words.map((word, index) => `${index + 1}. ${index % 2 ? word.toUpperCase() : word}`)
      for (const text of [words.join(' '), onPaper.join(',\t'), `\n${words.join('\r\n')}\n\n`])
        expect(keyFromPhrase(text)).toEqual(key)
    }),
  )
})

test('the words are BIP-39’s, so that another tool reads them', () => {
  // The first and the last 256-bit vectors of BIP-39's own list (trezor/python-mnemonic, vectors.json).
  expect(phraseFromKey(parseMasterKey(Buffer.alloc(32))).join(' ')).toBe(`${'abandon '.repeat(23)}art`)
  expect(phraseFromKey(parseMasterKey(Buffer.alloc(32, 0xff))).join(' ')).toBe(`${'zoo '.repeat(23)}vote`)
})

test('a misspelt word is named by its place, and never repeated', () => {
  assert(
    property(anyKey, integer({ min: 0, max: 23 }), (key, at) => {
      const words = phraseFromKey(key).with(at, 'xylograph')
      expect(() => keyFromPhrase(words.join(' '))).toThrow(new RegExp(`^Word ${at + 1} is not of the list`))
      expect(() => keyFromPhrase(words.join(' '))).not.toThrow(/xylograph/)
    }),
  )
  const two = phraseFromKey(parseMasterKey(Buffer.alloc(32)))
    .with(2, 'kittenx')
    .with(22, 'çafé')
  expect(() => keyFromPhrase(two.join(' '))).toThrow('Words 3 and 23 are not of the list')
})

test('of words that were swapped for others of the list at most one in 256 goes unseen', () => {
  const words = phraseFromKey(parseMasterKey(Buffer.alloc(32, 0x5a)))
  const unseen = wordlist.filter((word) => word !== words[7] && reads(words.with(7, word)))
  expect(unseen.length).toBeLessThan(2 * (wordlist.length / 256))
  expect(() => keyFromPhrase(words.with(7, wordlist.find((word) => !reads(words.with(7, word))) ?? '').join(' '))).toThrow(
    'These words do not belong together',
  )
})

test.each([0, 1, 12, 23, 25, 48])('%i words are no phrase, and the answer says how many there are', (count) => {
  const words = Array.from({ length: count }, () => 'abandon')
  expect(() => keyFromPhrase(words.join(' '))).toThrow(`A recovery phrase has 24 words; these are ${count}.`)
})

test('D07: a key file is never overwritten, only its user can read it, and nothing else is left next to it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-key-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'a', 'b', 'data.key')
  const key = parseMasterKey(Buffer.alloc(32, 1))
  writeMasterKey(file, key)
  expect(readMasterKeyFile(file)).toEqual(key)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  writeFileSync(`${file}.new`, 'left by a power cut')
  expect(() => writeMasterKey(file, parseMasterKey(Buffer.alloc(32, 2)))).toThrow(/data\.key is there already/)
  expect(readFileSync(file, 'utf8')).toBe(`${'01'.repeat(32)}\n`)
  expect(readdirSync(join(folder, 'a', 'b'))).toEqual(['data.key'])
  expect(existsSync(`${file}.new`)).toBe(false)
})

function reads(words: readonly string[]): boolean {
  try {
    keyFromPhrase(words.join(' '))
    return true
  } catch {
    return false
  }
}
