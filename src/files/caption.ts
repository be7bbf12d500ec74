import type { Readable } from 'node:stream'
import { Failure } from '../errors.ts'
import { type AdditionDeps, storeAddition } from './addition.ts'
import { atMost } from './at-most.ts'
import { toSafeWebVtt } from './webvtt.ts'

const MAX_CAPTION_BYTES = 5 * 2 ** 20
/** Language, script and region of BCP 47. */
const LANGUAGE = /^[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|\d{3}))?$/

/** @returns the language as it is kept: lower case, with `-` @throws Failure `invalid` */
export function readLanguage(text: string): string {
  const language = text.trim().toLowerCase().replaceAll('_', '-')
  if (LANGUAGE.test(language)) return language
  throw new Failure('invalid', 'language is a code such as en, de or pt-BR.')
}

/** Takes in a file of captions. @throws Failure `too-large` */
export async function receiveCaption(bytes: Readable): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of atMost(bytes, MAX_CAPTION_BYTES, 'A file of captions')) parts.push(part)
  return Buffer.concat(parts)
}

/**
 * Gives a video captions in a language, in place of those it had in it. Durable when it resolves.
 * @throws Failure `invalid`, naming the line that is wrong; `not-found` when the account has no such video
 */
export async function addCaption(deps: AdditionDeps, accountId: string, videoId: string, language: string, text: Buffer) {
  const bytes = Buffer.from(toSafeWebVtt(text))
  const [stored] = await storeAddition(deps, accountId, { videoId, type: 'caption', language }, [{ bytes }])
  if (!stored) throw new Error('captions without a number')
  return { ...stored, sizeBytes: bytes.length, language }
}
