import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { Failure } from '../errors.ts'
import { type OutboundPolicy, parseOutboundUrl } from '../outbound/policy.ts'

/** A watermark entry: checked, clamped, its words filled in. */
export type Watermark = TextWatermark | ImageWatermark

export type TextWatermark = {
  /** `rtext` moves to another place at each interval, `text` stays. */
  type: 'rtext' | 'text'
  text: string
  /** 0 to 1 */
  alpha: number
  /** `#rrggbb` */
  color: string
  sizePx: number
  intervalMs: number
  /** Time between two appearances, without the watermark. */
  skipMs: number
  /** Place of a `text`: pixels, or with `%` a part of the picture. */
  x?: string
  y?: string
}

export type ImageWatermark = {
  type: 'image'
  /** Asked by this server alone, never by a viewer's browser. */
  url: string
  alpha: number
  /** Absent: as wide as the picture itself is. */
  widthPx?: number
  x: string
  y: string
}

/** What `{name}` and `{email}` in a watermark stand for. */
export type Viewer = { name?: string; email?: string }

const MAX_MARKS = 20
const MAX_TEXT_LENGTH = 500
/** Each comes whole with the answer that opens a playback session. */
const MAX_IMAGES = 4

const IMAGE_WIDTHS_PX = { least: 8, most: 1920, otherwise: 120 }

const Amount = Type.Union([Type.Number(), Type.String({ maxLength: 32 })])
const Entry = Type.Object({
  type: Type.String(),
  text: Type.Optional(Type.Union([Type.String(), Type.Number()])),
  url: Type.Optional(Type.String()),
  alpha: Type.Optional(Amount),
  color: Type.Optional(Amount),
  size: Type.Optional(Amount),
  interval: Type.Optional(Amount),
  skip: Type.Optional(Amount),
  x: Type.Optional(Amount),
  y: Type.Optional(Amount),
})
type Entry = Static<typeof Entry>

/**
 * Reads the option `annotate`: a JSON array as a string (strict, or in single or typographic quotes), the array itself, or one object; values may be
 * strings or numbers. Sizes and times beyond reason are brought within it, so that the player stays usable.
 * @throws Failure `invalid` when it cannot be read
 * @see wire-contract.md, section 5
 */
export function parseWatermarks(outbound: OutboundPolicy, annotate: unknown, viewer: Viewer = {}): Watermark[] {
  if (annotate === undefined || annotate === null || annotate === '') return []
  const value = typeof annotate === 'string' ? parseLoosely(annotate) : annotate
  const entries = Array.isArray(value) ? value : [value]
  if (entries.length > MAX_MARKS)
    throw new Failure('invalid', `annotate has ${entries.length} entries; at most ${MAX_MARKS} are shown at once.`)
  const marks = entries.map((entry) => parseWatermark(outbound, entry, viewer))
  if (listImageUrls(marks).length > MAX_IMAGES)
    throw new Failure('invalid', `annotate has more than ${MAX_IMAGES} entries of type "image". Put them into one picture.`)
  return marks
}

/** Where the images of image watermarks come from. */
export function listImageUrls(marks: readonly Watermark[]): string[] {
  return marks.flatMap((watermark) => (watermark.type === 'image' ? [watermark.url] : []))
}

function parseWatermark(outbound: OutboundPolicy, entry: unknown, viewer: Viewer): Watermark {
  if (!Value.Check(Entry, entry))
    throw new Failure('invalid', 'annotate has an entry that cannot be read: each is an object with a type and plain values.')
  if (entry.type === 'image') return readImage(outbound, entry)
  if (entry.type !== 'rtext' && entry.type !== 'text')
    throw new Failure('invalid', `annotate has an entry of type "${entry.type.slice(0, 20)}". Use "rtext", "text" or "image".`)
  const text = String(entry.text ?? '')
  if (text.trim() === '')
    throw new Failure(
      'invalid',
      `annotate has an entry of type "${entry.type}" without a text. Give it one: {"type":"${entry.type}","text":"…"}.`,
    )
  const watermark: TextWatermark = {
    type: entry.type,
    text: fillIn(text, viewer),
    alpha: within(entry.alpha, { least: 0, most: 1, otherwise: 1 }),
    color: readColor(entry.color),
    sizePx: within(entry.size, { least: 6, most: 120, otherwise: 15 }),
    intervalMs: within(entry.interval, { least: 500, most: 3_600_000, otherwise: 5_000 }),
    skipMs: within(entry.skip, { least: 0, most: 3_600_000, otherwise: 0 }),
  }
  return watermark.type === 'text' ? { ...watermark, x: readPlace(entry.x), y: readPlace(entry.y) } : watermark
}

function readImage(outbound: OutboundPolicy, entry: Entry): ImageWatermark {
  return {
    type: 'image',
    url: readUrl(outbound, entry.url),
    alpha: within(entry.alpha, { least: 0, most: 1, otherwise: 1 }),
    ...(entry.size === undefined || entry.size === '' ? {} : { widthPx: within(entry.size, IMAGE_WIDTHS_PX) }),
    x: readPlace(entry.x),
    y: readPlace(entry.y),
  }
}

function readUrl(outbound: OutboundPolicy, url: string | undefined): string {
  try {
    return parseOutboundUrl(outbound, url ?? '').href
  } catch (cause) {
    if (!(cause instanceof Failure)) throw cause
    throw new Failure('invalid', `annotate has an entry of type "image" whose url cannot be asked. ${cause.message}`, { cause })
  }
}

function fillIn(text: string, viewer: Viewer): string {
  const filled = text.replaceAll('{name}', viewer.name ?? '').replaceAll('{email}', viewer.email ?? '')
  return Array.from(filled.replace(/\p{Cc}/gu, ' '))
    .slice(0, MAX_TEXT_LENGTH)
    .join('')
}

function within(amount: Entry['size'], bounds: { least: number; most: number; otherwise: number }): number {
  if (amount === undefined || amount === '') return bounds.otherwise
  const number = Number(amount)
  if (!Number.isFinite(number))
    throw new Failure('invalid', `annotate has "${String(amount).slice(0, 20)}" where a number belongs.`)
  return Math.min(bounds.most, Math.max(bounds.least, number))
}

/** `0xRRGGBB`, `#RRGGBB`, or a number. */
function readColor(color: Entry['color']): string {
  if (color === undefined || color === '') return '#ffffff'
  const number = Number(typeof color === 'string' ? color.trim().replace(/^#/, '0x') : color)
  if (!Number.isInteger(number) || number < 0 || number > 0xffffff) {
    throw new Failure('invalid', `annotate has the colour "${String(color).slice(0, 20)}"; write it as 0xRRGGBB.`)
  }
  return `#${number.toString(16).padStart(6, '0')}`
}

function readPlace(place: Entry['x']): string {
  const text = String(place ?? '0').trim() || '0'
  if (!/^-?\d{1,5}(\.\d{1,6})?%?$/.test(text))
    throw new Failure(
      'invalid',
      `annotate has the place "${text.slice(0, 20)}"; write pixels, or a part of the picture such as 10%.`,
    )
  return text
}

/** Strict JSON, or JSON in other quotes, as older sites write it and word processors spoil it. */
function parseLoosely(text: string): unknown {
  for (const candidate of [text, withStraightQuotes(text)]) {
    try {
      return JSON.parse(candidate)
    } catch {
      // The other way of writing, or the refusal below.
    }
  }
  throw new Failure('invalid', 'annotate is not JSON. Write an array such as [{"type":"rtext","text":"{name}","alpha":"0.6"}].')
}

/** Each quote that may begin a text, with those that may end it. */
const QUOTES: Readonly<Record<string, string>> = { "'": "'‘’", '‘': "'‘’", '’': "'‘’", '"': '"“”', '“': '"“”', '”': '"“”' }
const BEHIND_A_TEXT = /\s*(?:[,:}\]]|$)/y

/**
 * Turns texts in single or typographic quotes into JSON's, in one pass. A quote ends a text only where JSON goes on behind it, so that
 * 'Sean O'Brien' is one text.
 */
function withStraightQuotes(text: string): string {
  let result = ''
  let ends: string | undefined // the quotes that may end the text that goes on
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    if (ends === undefined) {
      ends = QUOTES[char]
      result += ends === undefined ? char : '"'
    } else if (char === '\\') {
      const escaped = text[++at] ?? ''
      result += escaped in QUOTES && escaped !== '"' ? escaped : char + escaped
    } else if (ends.includes(char) && goesOnBehind(text, at)) {
      ends = undefined
      result += '"'
    } else {
      result += char === '"' ? '\\"' : char
    }
  }
  return result
}

function goesOnBehind(text: string, at: number): boolean {
  BEHIND_A_TEXT.lastIndex = at + 1
  return BEHIND_A_TEXT.test(text)
}
