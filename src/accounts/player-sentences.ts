import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import { findStoredSentences } from './account-store.ts'

/** Sentences of the player in an owner's own words: by language, such as `de`, and by their name. */
export type PlayerSentences = Readonly<Record<string, Readonly<Record<string, string>>>>

const LANGUAGE = /^[a-z]{2}$/
const NAME = /^[a-z][a-z0-9.-]{0,59}$/
const MAX_SENTENCE_LENGTH = 500
/** Each session's answer has them. */
const MAX_BYTES = 16_000

/**
 * As they are stored. Names that a player does not know are kept: another version may.
 * @returns undefined: not given; null: none
 * @throws Failure `invalid`
 */
export function formatPlayerSentences(sentences: PlayerSentences | null | undefined): string | null | undefined {
  if (!sentences) return sentences
  const languages = Object.entries(sentences).filter(([, named]) => Object.keys(named).length > 0)
  for (const [language, named] of languages) {
    if (!LANGUAGE.test(language)) throw invalid(`"${language.slice(0, 60)}" is no language such as de.`)
    for (const [name, sentence] of Object.entries(named)) {
      if (!NAME.test(name)) throw invalid(`"${name.slice(0, 60)}" is no name of a sentence, such as refusal.otp-used.`)
      if (sentence.trim() === '' || sentence.length > MAX_SENTENCE_LENGTH || /\p{Cc}/u.test(sentence))
        throw invalid(`${name} needs 1 to ${MAX_SENTENCE_LENGTH} characters on one line.`)
    }
  }
  const stored = JSON.stringify(Object.fromEntries(languages))
  if (Buffer.byteLength(stored) > MAX_BYTES) throw invalid(`all sentences together take at most ${MAX_BYTES / 1000} kB.`)
  return languages.length === 0 ? null : stored
}

function invalid(why: string): Failure {
  return new Failure('invalid', `playerSentences: ${why}`)
}

/** Empty: the player speaks its own words. */
export async function findPlayerSentences(db: Db, accountId: string): Promise<PlayerSentences> {
  return JSON.parse((await findStoredSentences(db, accountId)) ?? '{}')
}
