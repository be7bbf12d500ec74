import type { Entries } from './ffprobe-lines.ts'

export const MAX_TRACK_NAME_CHARACTERS = 60

// ISO 639-2's codes for no language, several, and one that is not known; and those that are left for private use.
const NO_LANGUAGE = /^(und|mis|mul|zxx|q[a-t][a-z])$/
const LANGUAGE = /^[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}$/

/** The language that a file gives an audio track, by its shortest code in lower case: `ger` is `de`. */
export function trackLanguage([track]: readonly Entries[]): { language?: string } {
  const tag = (track?.['tag:language'] ?? '').trim().toLowerCase().replaceAll('_', '-')
  if (!LANGUAGE.test(tag) || NO_LANGUAGE.test(tag)) return {}
  try {
    return { language: new Intl.Locale(tag).toString().toLowerCase() }
  } catch {
    return {}
  }
}

/** The title that a file gives an audio track. */
export function trackName([track]: readonly Entries[]): { name?: string } {
  const name = cleanTrackName((track?.['tag:title'] ?? '').replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? ' ' : escaped)))
  return name === '' ? {} : { name }
}

/** As playlists can carry it: in one line, and without the quotation mark that would end it. */
export function cleanTrackName(text: string): string {
  const line = text
    .toWellFormed()
    .replaceAll('"', '')
    .replace(/[\s\p{C}]+/gu, ' ')
    .trim()
  return [...line].slice(0, MAX_TRACK_NAME_CHARACTERS).join('').trim()
}
