import { entropyToMnemonic, mnemonicToEntropy } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english.js'
import { Failure } from '../errors.ts'
import { type MasterKey, parseMasterKey } from './master-key.ts'

// The master key in 24 English words, as BIP-39 writes 256 bits and 8 of checksum: no two words share their first four letters, so
// they survive paper, dictation and bad handwriting.

const WORDS = 24
const KNOWN: ReadonlySet<string> = new Set(wordlist)

export function phraseFromKey(key: MasterKey): string[] {
  return entropyToMnemonic(key.bytes, wordlist).split(' ')
}

/**
 * The key of a recovery phrase, as typed or pasted: anything between the words (numbers, commas, line ends) is
 * ignored. Errors name words by their position and never repeat them, since errors may be logged.
 * @throws Failure `invalid` when a word is missing or unknown, or they do not belong together
 */
export function keyFromPhrase(phrase: string): MasterKey {
  const words = phrase.toLowerCase().match(/\p{L}+/gu) ?? []
  if (words.length !== WORDS)
    throw new Failure('invalid', `A recovery phrase has ${WORDS} words; these are ${words.length}. Nothing was changed.`)
  const unknown = words.flatMap((word, index) => (KNOWN.has(word) ? [] : [index + 1]))
  if (unknown.length > 0) {
    const which = unknown.length === 1 ? `Word ${unknown[0]} is` : `Words ${listed(unknown)} are`
    throw new Failure(
      'invalid',
      `${which} not of the list that recovery phrases are made from. Correct the spelling; nothing was changed.`,
    )
  }
  try {
    return parseMasterKey(Buffer.from(mnemonicToEntropy(words.join(' '), wordlist)))
  } catch (cause) {
    throw new Failure(
      'invalid',
      'These words do not belong together: one is not the one that was printed, or two have changed places. Nothing was changed.',
      { cause },
    )
  }
}

function listed(positions: readonly number[]): string {
  return `${positions.slice(0, -1).join(', ')} and ${positions.at(-1)}`
}
