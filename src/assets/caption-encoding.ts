import jschardet from 'jschardet'
import { Failure } from '../errors.ts'

// Unicode shows itself. In older encodings a detector knows how frequent letters are, and the language of the captions says which
// encodings and letters to expect. Neither is enough alone: a wrong encoding often gives letters, too.

/**
 * Decodes a file of captions in UTF-8, UTF-16 or an older encoding of their language.
 * @param language as it is stored; for one that is not in the table, all encodings are tried
 * @throws Failure `invalid` for what is no text, and when it is not sure which encoding it has
 */
export function decodeCaptions(bytes: Buffer, language: string): string {
  const unicode = findUnicode(bytes)
  const text = unicode ? decode(bytes, unicode) : (decode(bytes, 'utf-8') ?? decodeByLanguage(bytes, language))
  if (text !== undefined && !BINARY.test(text)) return text
  if (text === undefined && !unicode) throw new Failure('invalid', NOT_SURE)
  throw new Failure('invalid', 'The captions are not readable text. Save them as UTF-8, as WebVTT or SRT.')
}

const NOT_SURE =
  'The captions are not in UTF-8, and it is not sure which other encoding they have. Check their language, or save them as UTF-8 and send them again.'

// Control characters that no text contains: a file with them is an archive, an image or a program.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it searches for
const BINARY = /[\x00-\x08\x0e-\x19\x1c-\x1f\ufffe\uffff]/

/** The encoding of bytes that show it; undefined: UTF-8 or an older one. */
function findUnicode(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  // Captions begin with ASCII, so a zero in the first two bytes is half of a UTF-16 character.
  if (bytes[1] === 0 && bytes[0] !== 0) return 'utf-16le'
  if (bytes[0] === 0 && bytes[1] !== 0) return 'utf-16be'
  return bytes.includes(TO_JAPANESE) ? 'iso-2022-jp' : undefined
}

/** In ISO-2022-JP, all of which is ASCII, this switches to JIS X 0208. */
const TO_JAPANESE = '\x1b$B'

function decode(bytes: Buffer, encoding: string): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

type Language = { encodings: readonly string[]; letters: string | undefined }

const CENTRAL = ['windows-1250', 'iso-8859-2']
const CYRILLIC = ['windows-1251', 'koi8-r', 'koi8-u', 'ibm866', 'iso-8859-5', 'x-mac-cyrillic']
/** What the files of languages are written in. */
const ENCODINGS: Readonly<Record<string, readonly string[]>> = {
  'ca da de en es fi fr is it nl no pt sv': ['windows-1252', 'macintosh', 'iso-8859-15'],
  'bs cs hr hu pl ro sk sl sq': CENTRAL,
  'et lt lv': ['windows-1257', 'iso-8859-13'],
  'be bg kk ky mk mn ru tg tt uk': CYRILLIC,
  sr: [...CYRILLIC, ...CENTRAL],
  'ar fa ps ur': ['windows-1256', 'iso-8859-6'],
  el: ['windows-1253', 'iso-8859-7'],
  he: ['windows-1255', 'iso-8859-8-i'],
  ja: ['shift_jis', 'euc-jp', 'iso-2022-jp'],
  ko: ['euc-kr'],
  th: ['windows-874'],
  tr: ['windows-1254'],
  vi: ['windows-1258'],
  zh: ['gb18030', 'big5'],
}
/** Their letters beyond ASCII, in lower case; missing: not needed to decide. */
const LETTERS: Readonly<Record<string, string>> = {
  bs: 'čćđšž',
  ca: 'àçèéíïòóúü',
  cs: 'áčďéěíňóřšťúůýž',
  da: 'æøåé',
  de: 'äöüß',
  en: 'éïö',
  es: 'áéíñóúüªº',
  et: 'äõöüšž',
  fi: 'äöå',
  fr: 'àâæçéèêëîïôœùûüÿ',
  hr: 'čćđšž',
  hu: 'áéíóöőúüű',
  is: 'áðéíóúýþæö',
  it: 'àèéìíîòóùú',
  lt: 'ąčęėįšųūž',
  lv: 'āčēģīķļņšūž',
  nl: 'áèéëïóöü',
  no: 'æøåéèêóòô',
  pl: 'ąćęłńóśźż',
  pt: 'áâãàçéêíóôõúüªº',
  ro: 'ăâîşţ',
  sk: 'áäčďéíĺľňóôŕšťúýž',
  sl: 'čćđšž',
  sq: 'ëç',
  sr: 'абвгдђежзијклљмнњопрстћуфхцчџшčćđšž',
  sv: 'åäöé',
  tr: 'çğıöşüâîû',
}
const SAME_AS: Readonly<Record<string, string>> = { nb: 'no', nn: 'no', gl: 'es', eu: 'es' }

/** Two encodings whose probabilities differ by less are as good as each other. */
const CLOSE = 1.1
/** The language is doubted when a text in another one is more probable by more. */
const MIN_LIKELIHOOD = 0.7
/** Foreign names and damaged characters: so many of the characters beyond ASCII may be odd or foreign. */
const MAX_ODD = 0.02
const MAX_FOREIGN = 1 / 3
/** Enough to decide by, and read in milliseconds. */
const MAX_EXAMINED_BYTES = 200_000

/** A text that the bytes may be, with the number of characters in it that speak against it. */
type Reading = { encoding: string; confidence: number; text: string; oddities: number }

/** @returns undefined when it is not sure which encoding the bytes have */
function decodeByLanguage(bytes: Buffer, language: string): string | undefined {
  const examined = linesBeyondAscii(bytes)
  if (examined === '' || isMostlyUtf8(examined)) return undefined
  const { language: code } = new Intl.Locale(language) // of three letters two, where there are two
  const expected = findLanguage(SAME_AS[code] ?? code)
  const found = jschardet.detectAll(Buffer.from(examined, 'latin1'), { minimumThreshold: 0.01 })
  const minConfidence = (found[0]?.confidence ?? 0) * MIN_LIKELIHOOD
  const readings = found
    .filter(({ confidence }) => confidence >= minConfidence)
    .flatMap(({ encoding, confidence }) => readAs(examined, { name: encoding ?? '', confidence, expected }))
  // An unknown language says nothing about the letters.
  const margin = expected ? CLOSE : 1 / MIN_LIKELIHOOD
  const close = readings.filter(({ confidence }) => confidence * margin > (readings[0]?.confidence ?? 0))
  const fewest = Math.min(...close.map(({ oddities }) => oddities))
  const [best, ...others] = close.filter(({ oddities }) => oddities === fewest)
  return best && others.every(({ text }) => text === best.text) ? decode(bytes, best.encoding) : undefined
}

function findLanguage(code: string): Language | undefined {
  const [, encodings] = Object.entries(ENCODINGS).find(([codes]) => codes.split(' ').includes(code)) ?? []
  return encodings && { encodings, letters: LETTERS[code] }
}

/** Those lines of the bytes that show their encoding, one byte in each character. */
function linesBeyondAscii(bytes: Buffer): string {
  const lines = bytes.toString('latin1').split(/[\r\n]+/)
  const examined: string[] = []
  let sizeBytes = 0
  for (const line of lines.filter((line) => /[\x80-\xff]/.test(line))) {
    sizeBytes += line.length
    if (sizeBytes > MAX_EXAMINED_BYTES) break
    examined.push(line)
  }
  return examined.join('\n')
}

/** Then it is damaged UTF-8, not another encoding. */
function isMostlyUtf8(bytes: string): boolean {
  const inUtf8 = bytes.match(UTF8)?.reduce((sum, { length }) => sum + length, 0) ?? 0
  return inUtf8 * 2 > (bytes.match(/[\x80-\xff]/g)?.length ?? 0)
}

const UTF8 = /[\xc2-\xdf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}/g

/** @returns none when the bytes are no text of the language in this encoding */
function readAs(
  bytes: string,
  { name, confidence, expected }: { name: string; confidence: number; expected: Language | undefined },
): Reading[] {
  const encoding = findEncoding(name)
  if (encoding === undefined || (expected && !expected.encodings.includes(encoding))) return []
  const text = decode(Buffer.from(bytes, 'latin1'), encoding)
  const oddities = text === undefined ? undefined : countOddities(text, expected?.letters)
  return text === undefined || oddities === undefined ? [] : [{ encoding, confidence, text, oddities }]
}

/** The detector's names that no decoder has. */
const LABELS: Readonly<Record<string, string>> = {
  maccyrillic: 'x-mac-cyrillic',
  macroman: 'macintosh',
  cp874: 'windows-874',
  cp932: 'shift_jis',
  cp949: 'euc-kr',
}

function findEncoding(name: string): string | undefined {
  try {
    return new TextDecoder(LABELS[name.toLowerCase()] ?? name).encoding
  } catch {
    return undefined // an encoding of DOS or of mainframes
  }
}

/**
 * Counts characters that do not fit: odd ones where they are, and letters of other languages.
 * @returns undefined: too many for a text
 */
function countOddities(text: string, letters: string | undefined): number | undefined {
  let [beyondAscii, odd, foreign, upper, lower] = [0, 0, 0, 0, 0]
  let before = ' '
  const characters = [...text, ' ']
  for (const [index, character] of characters.entries()) {
    const after = characters[index + 1] ?? ' '
    if (character > '\x7f') {
      beyondAscii += 1
      if (isOdd(before, character, after)) odd += 1
      else if (letters !== undefined && LETTER.test(character) && !letters.includes(character.toLowerCase())) foreign += 1
      if (CYRILLIC_OR_GREEK.test(character)) character === character.toLowerCase() ? lower++ : upper++
    }
    before = character
  }
  // Capitals of one Cyrillic encoding are small letters of another: only a text with both shows which is which.
  const hasOneCase = upper + lower > 0 && (upper === 0 || lower === 0)
  return hasOneCase || odd > beyondAscii * MAX_ODD || foreign > beyondAscii * MAX_FOREIGN ? undefined : odd + foreign
}

const LETTER = /\p{L}/u
const NO_TEXT = /[\x80-\x9f\p{Co}\p{Cn}\ufffd\ufb00-\ufb06]/u
const LATIN = /\p{Script=Latin}/u
const CYRILLIC_OR_GREEK = /[\p{Script=Cyrillic}\p{Script=Greek}]/u
const GREEK = /\p{Script=Greek}/u
const WITH_CASE = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}]/u
const SMALL = /\p{Ll}/u
const CAPITAL = /\p{Lu}/u
/** Letters of their own that are accents, as `ˆ`. */
const ACCENT = /\p{Lm}/u
const WITHIN_WORDS = /[\p{L}\p{M}\p{N}’‘ʼ‐‑–—…\u00ad\u00a0]/u
const SIGN = /[\p{S}¶§]/u
const OPENING = /[„‚¿¡]/u
const EAST_ASIAN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u

/** Whether a character beyond ASCII is not where texts have it: a wrong encoding puts signs and capitals into words. */
function isOdd(before: string, character: string, after: string): boolean {
  const [follows, precedes] = [WITH_CASE.test(before), WITH_CASE.test(after)]
  if (NO_TEXT.test(character) || (ACCENT.test(character) && character !== 'ʼ')) return true
  if (SIGN.test(character)) return (follows && !'°™®'.includes(character)) || (precedes && character !== '°')
  if (character === '·') return !(follows && before === after)
  if (follows && (OPENING.test(character) || (precedes && !WITHIN_WORDS.test(character)))) return true
  if (SMALL.test(before) && CAPITAL.test(character)) return true
  if (SMALL.test(character) && CAPITAL.test(after)) return true
  if (EAST_ASIAN.test(character)) return LATIN.test(before) && LATIN.test(after)
  // Greek words begin with an accented capital more often than with an apostrophe.
  if (character === '’' && !follows && GREEK.test(after)) return true
  const otherScript = CYRILLIC_OR_GREEK.test(character) ? LATIN : LATIN.test(character) ? CYRILLIC_OR_GREEK : undefined
  return otherScript !== undefined && (otherScript.test(before) || otherScript.test(after))
}
