import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { Failure } from '../errors.ts'
import { parseJson } from '../json.ts'
import { type OutboundPolicy, parseOutboundUrl } from '../outbound/policy.ts'
import { utcDay } from '../time.ts'

/** An entry of `annotate`: validated and clamped. */
export type Watermark = TextWatermark | ImageWatermark

export type TextWatermark = {
  /** `rtext` moves to another place at each interval, `text` is fixed. */
  type: 'rtext' | 'text'
  text: string
  /** 0 to 1 */
  alpha: number
  /** `#rrggbb` */
  color: string
  sizePx: number
  intervalMs: number
  /** Time between two appearances during which the watermark is hidden. */
  skipMs: number
  /** Position of a `text`: pixels, or with `%` a part of the frame. */
  x?: string
  y?: string
}

export type ImageWatermark = {
  type: 'image'
  /** Fetched only by this server, never by a viewer's browser. */
  url: string
  alpha: number
  /** Absent: the image's own width. */
  widthPx?: number
  x: string
  y: string
}

/** The values of `{name}`, `{email}` and `{id}` in a watermark. */
export type Viewer = { name?: string; email?: string; userId?: string }

/** An option of an OTP that a watermark shows. */
export type ViewerOption = 'userId' | 'viewer.name' | 'viewer.email'

/** What a text may show, how long it can be, and which option brings it; the others are known when it is played. */
const PLACEHOLDERS: Readonly<
  Record<string, { maxChars: number; option?: ViewerOption; read?(viewer: Viewer): string | undefined }>
> = {
  '{id}': { maxChars: 36, option: 'userId', read: ({ userId }) => userId },
  '{name}': { maxChars: 128, option: 'viewer.name', read: ({ name }) => name },
  '{email}': { maxChars: 128, option: 'viewer.email', read: ({ email }) => email },
  '{ip}': { maxChars: 39 },
  '{date}': { maxChars: 10 },
}
const PLACEHOLDER = /\{(?:id|name|email|ip|date)\}/g

const MAX_WATERMARKS = 20
/** With each placeholder as long as it can be, so that no viewer's name makes a text too long. */
const MAX_TEXT_CHARS = 500
/** Each is sent inside the response that opens a playback session. */
const MAX_IMAGES = 4

const IMAGE_WIDTH_PX = { min: 8, max: 1920, default: 120 }

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
 * Parses the option `annotate`: a JSON array as a string (strict, or with single or typographic quotes), the array itself, or one
 * object; values may be strings or numbers. Sizes and times are clamped, so that the player remains usable.
 * @returns with the placeholders as they were written: see `fillForViewer`
 * @throws Failure `invalid` when it cannot be read
 * @see wire-contract.md, section 5
 */
export function parseWatermarks(outbound: OutboundPolicy, annotate: unknown): Watermark[] {
  if (annotate === undefined || annotate === null || annotate === '') return []
  const value = typeof annotate === 'string' ? parseLoosely(annotate) : annotate
  const entries = Array.isArray(value) ? value : [value]
  if (entries.length > MAX_WATERMARKS)
    throw new Failure('invalid', `annotate has ${entries.length} entries, expected at most ${MAX_WATERMARKS}.`)
  const watermarks = entries.map((entry) => parseWatermark(outbound, entry))
  if (listImageUrls(watermarks).length > MAX_IMAGES)
    throw new Failure('invalid', `annotate has more than ${MAX_IMAGES} entries of type "image". Combine them into one image.`)
  return watermarks
}

/** The options that each OTP with these watermarks has to bring. */
export function listNeededOptions(watermarks: readonly Watermark[]): ViewerOption[] {
  return findNeeded(watermarks).map(({ option }) => option)
}

/**
 * The watermarks of one viewer. `{ip}` and `{date}` are filled in by `fillForSession`.
 * @throws Failure `invalid` when a text shows what the viewer lacks: it would come out without who watches
 */
export function fillForViewer(watermarks: readonly Watermark[], viewer: Viewer): Watermark[] {
  const missing = findNeeded(watermarks).filter(({ read }) => isBlank(read(viewer) ?? ''))
  if (missing.length > 0) {
    const names = missing.map(({ name }) => name).join(' and ')
    const options = missing.map(({ option }) => option).join(' and ')
    throw new Failure(
      'invalid',
      `annotate shows ${names}, as the OTP or a default of its video or account says: send ${options} with the OTP.`,
    )
  }
  const fill = (name: string) => PLACEHOLDERS[name]?.read?.(viewer) ?? name
  return watermarks.map((watermark) =>
    watermark.type === 'image' ? watermark : { ...watermark, text: onOneLine(watermark.text.replace(PLACEHOLDER, fill)) },
  )
}

function findNeeded(watermarks: readonly Watermark[]) {
  const texts = watermarks.flatMap((watermark) => (watermark.type === 'image' ? [] : [watermark.text]))
  return Object.entries(PLACEHOLDERS).flatMap(([name, { option, read }]) =>
    option && read && texts.some((text) => text.includes(name)) ? [{ name, option, read }] : [],
  )
}

export function listImageUrls(watermarks: readonly Watermark[]): string[] {
  return watermarks.flatMap((watermark) => (watermark.type === 'image' ? [watermark.url] : []))
}

function parseWatermark(outbound: OutboundPolicy, entry: unknown): Watermark {
  if (!Value.Check(Entry, entry))
    throw new Failure(
      'invalid',
      'annotate has an invalid entry: expected an object with a type, and strings or numbers as values.',
    )
  if (entry.type === 'image') return parseImage(outbound, entry)
  if (entry.type !== 'rtext' && entry.type !== 'text')
    throw new Failure('invalid', `annotate has an entry of type "${entry.type.slice(0, 20)}". Use "rtext", "text" or "image".`)
  const text = String(entry.text ?? '')
  if (isBlank(text))
    throw new Failure(
      'invalid',
      `annotate has an entry of type "${entry.type}" without a text. Add one: {"type":"${entry.type}","text":"…"}.`,
    )
  const longest = text.replace(PLACEHOLDER, (name) => '.'.repeat(PLACEHOLDERS[name]?.maxChars ?? 0))
  if (Array.from(longest).length > MAX_TEXT_CHARS)
    throw new Failure(
      'invalid',
      `annotate has a text that can be longer than ${MAX_TEXT_CHARS} characters, with the longest values of its placeholders. Shorten it.`,
    )
  const watermark: TextWatermark = {
    type: entry.type,
    text: onOneLine(text),
    alpha: parseClamped(entry.alpha, { min: 0, max: 1, default: 1 }),
    color: parseColor(entry.color),
    sizePx: parseClamped(entry.size, { min: 6, max: 120, default: 15 }),
    intervalMs: parseClamped(entry.interval, { min: 500, max: 3_600_000, default: 5_000 }),
    skipMs: parseClamped(entry.skip, { min: 0, max: 3_600_000, default: 0 }),
  }
  return watermark.type === 'text' ? { ...watermark, x: parseCoordinate(entry.x), y: parseCoordinate(entry.y) } : watermark
}

function parseImage(outbound: OutboundPolicy, entry: Entry): ImageWatermark {
  return {
    type: 'image',
    url: parseImageUrl(outbound, entry.url),
    alpha: parseClamped(entry.alpha, { min: 0, max: 1, default: 1 }),
    ...(entry.size === undefined || entry.size === '' ? {} : { widthPx: parseClamped(entry.size, IMAGE_WIDTH_PX) }),
    x: parseCoordinate(entry.x),
    y: parseCoordinate(entry.y),
  }
}

function parseImageUrl(outbound: OutboundPolicy, url: string | undefined): string {
  try {
    return parseOutboundUrl(outbound, url ?? '').href
  } catch (cause) {
    if (!(cause instanceof Failure)) throw cause
    throw new Failure('invalid', `annotate has an entry of type "image" with an invalid url. ${cause.message}`, { cause })
  }
}

/** Nothing of it can be seen. */
function isBlank(text: string): boolean {
  return !/[^\p{Cc}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text)
}

function onOneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ')
}

/** A watermark as it is shown now: `{ip}` is where the viewer's request came from, `{date}` the day in UTC. */
export function fillForSession(watermark: TextWatermark, { address, nowS }: { address: string; nowS: number }): TextWatermark {
  const date = utcDay(nowS)
  return { ...watermark, text: watermark.text.replaceAll('{ip}', address).replaceAll('{date}', date) }
}

function parseClamped(amount: Entry['size'], bounds: { min: number; max: number; default: number }): number {
  if (amount === undefined || amount === '') return bounds.default
  const number = Number(amount)
  if (!Number.isFinite(number))
    throw new Failure('invalid', `annotate has "${String(amount).slice(0, 20)}" where a number was expected.`)
  return Math.min(bounds.max, Math.max(bounds.min, number))
}

/** `0xRRGGBB`, `#RRGGBB`, or a number. */
function parseColor(color: Entry['color']): string {
  if (color === undefined || color === '') return '#ffffff'
  const number = Number(typeof color === 'string' ? color.trim().replace(/^#/, '0x') : color)
  if (!Number.isInteger(number) || number < 0 || number > 0xffffff) {
    throw new Failure('invalid', `annotate has the colour "${String(color).slice(0, 20)}", expected 0xRRGGBB.`)
  }
  return `#${number.toString(16).padStart(6, '0')}`
}

function parseCoordinate(coordinate: Entry['x']): string {
  const text = String(coordinate ?? '0').trim() || '0'
  if (!/^-?\d{1,5}(\.\d{1,6})?%?$/.test(text))
    throw new Failure(
      'invalid',
      `annotate has the coordinate "${text.slice(0, 20)}", expected pixels or a part of the frame such as 10%.`,
    )
  return text
}

/** Strict JSON, or JSON with other quotes, as older sites and word processors write it. */
function parseLoosely(text: string): unknown {
  const value = parseJson(text) ?? parseJson(withStraightQuotes(text))
  if (value === undefined)
    throw new Failure(
      'invalid',
      'annotate is not JSON. Expected an array such as [{"type":"rtext","text":"{name}","alpha":"0.6"}].',
    )
  return value
}

/** Each quote that may open a string, with those that may close it. */
const QUOTES: Readonly<Record<string, string>> = { "'": "'‘’", '‘': "'‘’", '’': "'‘’", '"': '"“”', '“': '"“”', '”': '"“”' }
const AFTER_STRING = /\s*(?:[,:}\]]|$)/y

/**
 * Replaces single and typographic quotes around strings by JSON's, in one pass. A quote closes a string only where JSON
 * continues after it, so that 'Sean O'Brien' is one string.
 */
function withStraightQuotes(text: string): string {
  let result = ''
  let closers: string | undefined // the quotes that may close the current string; undefined between strings
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    if (closers === undefined) {
      closers = QUOTES[char]
      result += closers === undefined ? char : '"'
    } else if (char === '\\') {
      const escaped = text[++at] ?? ''
      result += escaped in QUOTES && escaped !== '"' ? escaped : char + escaped
    } else if (closers.includes(char) && isStringEnd(text, at)) {
      closers = undefined
      result += '"'
    } else {
      result += char === '"' ? '\\"' : char
    }
  }
  return result
}

function isStringEnd(text: string, at: number): boolean {
  AFTER_STRING.lastIndex = at + 1
  return AFTER_STRING.test(text)
}
