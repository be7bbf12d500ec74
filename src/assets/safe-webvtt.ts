import { decodeCaptions } from './caption-encoding.ts'
import { readCaptions, writeWebVtt } from './webvtt.ts'

// Only for the thread that reads captions: the tables of encodings are 1 MB of code, which nothing else loads.

/**
 * Converts a file of captions, whatever its name, in UTF-8, UTF-16 or an older encoding of their language.
 * @param language as it is stored: it decides between encodings
 * @returns plain WebVTT
 * @throws Failure `invalid` with the number of the line that is wrong
 */
export function toSafeWebVtt(bytes: Buffer, language: string): string {
  return writeWebVtt(readCaptions(decodeCaptions(bytes, language)))
}
