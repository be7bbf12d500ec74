import { Failure } from '../errors.ts'

// Captions as owners have them, WebVTT or SRT, read leniently and written anew: what a browser gets holds cues, the few tags below
// and nothing else. Styles, regions, notes and every tag that is not known here stay behind.

type Cue = { startMs: number; endMs: number; settings: readonly string[]; text: string; times: Line }

/** A line as it came, and its number. */
type Line = { number: number; text: string }

/**
 * Reads a file of captions, whatever it is called: UTF-8, UTF-16 or, where it can be nothing else, Windows-1252.
 * @returns plain WebVTT
 * @throws Failure `invalid` with the number of the line that is wrong
 */
export function toSafeWebVtt(bytes: Buffer): string {
  return writeWebVtt(readCaptions(decodeText(bytes)))
}

function decodeText(bytes: Buffer): string {
  const text = decodersFor(bytes)
    .values()
    .map((encoding) => decode(bytes, encoding))
    .find((decoded) => decoded !== undefined && !BINARY.test(decoded))
  if (text === undefined)
    throw new Failure('invalid', 'The captions are not text that can be read. Save them as UTF-8, as WebVTT or SRT.')
  return text
}

// Control characters that no text has: what holds them is a zip, a picture, a program.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const BINARY = /[\x00-\x08\x0e-\x19\x1c-\x1f\ufffe\uffff]/

function decodersFor(bytes: Buffer): string[] {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return ['utf-16le']
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return ['utf-16be']
  // A text of captions begins with ASCII, so a zero among its first two bytes is half of a UTF-16 character.
  if (bytes[1] === 0 && bytes[0] !== 0) return ['utf-16le']
  if (bytes[0] === 0 && bytes[1] !== 0) return ['utf-16be']
  // Letters of UTF-8 among others mean that it was damaged, not that it is something else.
  return HAS_UTF8.test(bytes.toString('latin1')) ? ['utf-8'] : ['utf-8', 'windows-1252']
}

const HAS_UTF8 = /[\xc2-\xdf][\x80-\xbf](?![\x80-\xbf])|[\xe1-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}/

function decode(bytes: Buffer, encoding: string): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Reading more would hold up everybody else; a caption a second of a whole day has less. */
const MOST = { lines: 400_000, tags: 100_000 }
const NO_CUE = /^(?:NOTE|STYLE|REGION)(?:[ \t].*)?$/

function readCaptions(text: string): Cue[] {
  const lines = text.split(/\r\n|\r|\n/)
  if (lines.length > MOST.lines || text.split('<').length > MOST.tags)
    throw new Failure('invalid', `Captions have at most ${MOST.lines} lines and ${MOST.tags} tags.`)
  const isWebVtt = /^WEBVTT(?:[ \t].*)?$/.test(lines[0] ?? '')
  const cues: Cue[] = []
  for (const block of blocksOf(lines)) {
    if (isWebVtt && NO_CUE.test(block.lines[0] ?? '')) continue
    const timesAt = block.lines.slice(0, 2).findIndex((line) => line.includes('-->') || BROKEN_TIMES.test(line))
    if (timesAt >= 0) cues.push(readCue(block, timesAt))
    else if (!isWebVtt) goOn(cues, block)
  }
  const shown = cues
    .map((cue) => ({ ...cue, text: cleanText(cue.text) }))
    .filter(({ startMs, endMs, text }) => endMs > startMs && text !== '')
  const [first] = cues
  if (shown.length === 0 && first) throw wrongLine(first.times, 'text is expected below it, and time to read it')
  if (shown.length === 0) throw new Failure('invalid', 'The file has no captions: it is empty, or neither WebVTT nor SRT.')
  return shown.toSorted((one, other) => one.startMs - other.startMs)
}

/** Lines up to an empty one. */
type Block = { firstLine: number; lines: readonly string[] }

function* blocksOf(lines: readonly string[]): Generator<Block> {
  let block: string[] = []
  for (const [index, line] of lines.entries()) {
    if (line.trim() !== '') block.push(line)
    if (block.length > 0 && (line.trim() === '' || index === lines.length - 1)) {
      const end = line.trim() === '' ? index : index + 1
      yield { firstLine: end - block.length + 1, lines: block }
      block = []
    }
  }
}

function readCue({ firstLine, lines }: Block, timesAt: number): Cue {
  const lineAt = (index: number): Line => ({ number: firstLine + index, text: lines[index] ?? '' })
  const nextAt = lines.findIndex((line, index) => index > timesAt && TIMES.test(line))
  if (nextAt > 0) throw wrongLine(lineAt(nextAt), 'an empty line is expected before the next caption')
  return { ...readTimes(lineAt(timesAt)), text: lines.slice(timesAt + 1).join('\n') }
}

/** In SRT people leave empty lines within a caption. */
function goOn(cues: readonly Cue[], { firstLine, lines }: Block): void {
  const last = cues.at(-1)
  if (!last) throw wrongLine({ number: firstLine, text: lines[0] ?? '' }, 'WEBVTT or the first caption of an SRT is expected')
  last.text += `\n${lines.join('\n')}`
}

const TIME = String.raw`(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?`
// `s`: what the end takes, nothing keeps it from, so that no space is gone through twice.
const TIMES = new RegExp(String.raw`^\s*${TIME}\s*-->\s*${TIME}(?:\s+(.*))?$`, 's')

/** Times as people break them: a line that begins like them is no text of the caption before. */
const BROKEN_TIMES = /^\s*(?:\d{1,4}:)?\d{1,2}:\d{1,2}[.,]\d{1,3}\s*(?:[-=–—>]|$)/

function readTimes(line: Line): Omit<Cue, 'text'> {
  const found = TIMES.exec(line.text)
  if (!found) throw wrongLine(line, 'times are expected, written as 00:01:02.500 --> 00:01:04.000')
  const [startMs, endMs] = [msOf(found.slice(1, 5)), msOf(found.slice(5, 9))]
  if (startMs === undefined || endMs === undefined) throw wrongLine(line, 'minutes and seconds are expected from 0 to 59')
  if (endMs < startMs) throw wrongLine(line, 'an end is expected that is not before the beginning')
  return { startMs, endMs, settings: (found[9] ?? '').split(/\s+/).filter(isSafeSetting), times: line }
}

function msOf([hours, minutes, seconds, fraction = '']: readonly (string | undefined)[]): number | undefined {
  if (Number(minutes) > 59 || Number(seconds) > 59) return undefined
  return ((Number(hours ?? 0) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(fraction.padEnd(3, '0'))
}

const MAX_SHOWN_CHARS = 40

function wrongLine({ number, text }: Line, expected: string): Failure {
  const start = text.slice(0, MAX_SHOWN_CHARS).replace(/\p{C}/gu, ' ').trim()
  const shown = text.length > MAX_SHOWN_CHARS ? `${start}…` : start
  return new Failure(
    'invalid',
    `Line ${number} of the captions is "${shown}", but ${expected}. Correct it and send the file again.`,
  )
}

const PERCENT = String.raw`(?:100(?:\.0+)?|\d{1,2}(?:\.\d+)?)%`
const SAFE_SETTINGS = [
  /^vertical:(?:rl|lr)$/,
  new RegExp(`^line:(?:-?\\d{1,4}|${PERCENT})(?:,(?:start|center|end))?$`),
  new RegExp(`^position:${PERCENT}(?:,(?:line-left|center|line-right))?$`),
  new RegExp(`^size:${PERCENT}$`),
  /^align:(?:start|center|end|left|right)$/,
]

function isSafeSetting(setting: string): boolean {
  return SAFE_SETTINGS.some((form) => form.test(setting))
}

const TAGS = new Set(['b', 'i', 'u', 'ruby', 'rt', 'v'])
/** A tag or a time stamp of WebVTT; of SRT also what players of subtitles read as a command. No text is gone through twice. */
const MARKUP = /<(\/?)([a-z]+)((?:[^a-z<>][^<>]*)?)>|<\d[\d:.]*>|\{\\[^{}]*\}/gi
// biome-ignore lint/suspicious/noControlCharactersInRegex: a text may not hold them
const CONTROLS = /[\x00-\x09\x0b-\x1f\x7f]/g

/** Keeps the tags above, each closed, and the text of all others. */
function cleanText(text: string): string {
  const open: string[] = []
  let clean = ''
  let at = 0
  for (const markup of text.matchAll(MARKUP)) {
    clean += escapeText(unescapeText(text.slice(at, markup.index)))
    at = markup.index + markup[0].length
    const [, slash, name = '', rest = ''] = markup
    const tag = name.toLowerCase()
    if (!TAGS.has(tag)) continue
    if (slash === '') {
      if (open.includes(tag)) continue
      open.push(tag)
      clean += tag === 'v' ? `<v ${voiceIn(rest)}>` : `<${tag}>`
    } else if (open.includes(tag)) {
      for (let closed = ''; closed !== tag; clean += `</${closed}>`) closed = open.pop() ?? tag
    }
  }
  clean += escapeText(unescapeText(text.slice(at)))
  for (const tag of open.reverse()) clean += `</${tag}>`
  return clean
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n')
}

function voiceIn(rest: string): string {
  return escapeText(unescapeText(rest.replace(/^\S*\s*/, ''))).replaceAll('\n', ' ')
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', nbsp: '\u00a0', lrm: '\u200e', rlm: '\u200f' }

function unescapeText(text: string): string {
  return text.replace(/&(amp|lt|gt|nbsp|lrm|rlm);/g, (entity, name: string) => ENTITIES[name] ?? entity)
}

function escapeText(text: string): string {
  return text.replace(CONTROLS, ' ').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function writeWebVtt(cues: readonly Cue[]): string {
  const blocks = cues.map(({ startMs, endMs, settings, text }) => {
    const times = [`${timeOf(startMs)} --> ${timeOf(endMs)}`, ...settings].join(' ')
    return `${times}\n${text}\n`
  })
  return ['WEBVTT\n', ...blocks].join('\n')
}

function timeOf(ms: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  const seconds = ms / 1000
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}.${String(ms % 1000).padStart(3, '0')}`
}
