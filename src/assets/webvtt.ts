import { Failure } from '../errors.ts'

// Owners' captions, WebVTT or SRT, are parsed leniently and written again: browsers get only cues and the few tags below. Styles,
// regions, notes and all other tags are dropped.

/** `text` is WebVTT's: escaped, with its tags. */
export type Cue = { startMs: number; endMs: number; settings: readonly string[]; text: string }
type ReadCue = Cue & { times: Line }

type Line = { number: number; text: string }

/** More would take too long; a caption per second for a whole day is below these. */
const MAX_LINES = 400_000
const MAX_TAGS = 100_000
const NO_CUE = /^(?:NOTE|STYLE|REGION)(?:[ \t].*)?$/

/** @throws Failure `invalid` with the number of the line that is wrong */
export function readCaptions(text: string): ReadCue[] {
  const lines = text.split(/\r\n|\r|\n/)
  if (lines.length > MAX_LINES || text.split('<').length > MAX_TAGS)
    throw new Failure('invalid', `The captions are too long: expected at most ${MAX_LINES} lines and ${MAX_TAGS} tags.`)
  const isWebVtt = /^WEBVTT(?:[ \t].*)?$/.test(lines[0] ?? '')
  const cues: ReadCue[] = []
  for (const block of splitBlocks(lines)) {
    if (isWebVtt && NO_CUE.test(block.lines[0] ?? '')) continue
    const timesAt = block.lines.slice(0, 2).findIndex((line) => line.includes('-->') || BROKEN_TIMES.test(line))
    if (timesAt >= 0) cues.push(readCue(block, timesAt))
    else if (!isWebVtt) appendToLastCue(cues, block)
  }
  const visible = cues
    .map((cue) => ({ ...cue, text: cleanText(cue.text) }))
    .filter(({ startMs, endMs, text }) => endMs > startMs && text !== '')
  const [first] = cues
  if (visible.length === 0 && first) throw invalidLine(first.times, 'text is expected below it, and an end after its start')
  if (visible.length === 0) throw new Failure('invalid', 'The file has no captions: it is empty, or neither WebVTT nor SRT.')
  return visible.toSorted((one, other) => one.startMs - other.startMs)
}

/** Lines up to an empty one. */
type Block = { firstLine: number; lines: readonly string[] }

function* splitBlocks(lines: readonly string[]): Generator<Block> {
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

function readCue({ firstLine, lines }: Block, timesAt: number): ReadCue {
  const lineAt = (index: number): Line => ({ number: firstLine + index, text: lines[index] ?? '' })
  const nextAt = lines.findIndex((line, index) => index > timesAt && TIMES.test(line))
  if (nextAt > 0) throw invalidLine(lineAt(nextAt), 'an empty line is expected before the next caption')
  return { ...readTimes(lineAt(timesAt)), text: lines.slice(timesAt + 1).join('\n') }
}

/** SRT files often have empty lines within a caption. */
function appendToLastCue(cues: readonly ReadCue[], { firstLine, lines }: Block): void {
  const last = cues.at(-1)
  if (!last) throw invalidLine({ number: firstLine, text: lines[0] ?? '' }, 'WEBVTT or the first caption of an SRT is expected')
  last.text += `\n${lines.join('\n')}`
}

const TIME = String.raw`(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?`
// What follows is not matched: of millions of spaces the expression would remember each, until its stack is full.
const TIMES = new RegExp(String.raw`^\s*${TIME}\s*-->\s*${TIME}(?=\s|$)`)

/** Of a line of times; all settings together take a hundred. Of millions of spaces an expression would fill its stack. */
const MAX_SETTINGS_CHARS = 1_000

/** Common mistakes in times: a line that begins like this does not belong to the text of the previous caption. */
const BROKEN_TIMES = /^\s*(?:\d{1,4}:)?\d{1,2}:\d{1,2}[.,]\d{1,3}\s*(?:[-=–—>]|$)/

function readTimes(line: Line): Omit<ReadCue, 'text'> {
  const found = TIMES.exec(line.text)
  if (!found) throw invalidLine(line, 'times are expected, written as 00:01:02.500 --> 00:01:04.000')
  const [startMs, endMs] = [parseTimeMs(found.slice(1, 5)), parseTimeMs(found.slice(5, 9))]
  if (startMs === undefined || endMs === undefined) throw invalidLine(line, 'minutes and seconds are expected from 0 to 59')
  if (endMs < startMs) throw invalidLine(line, 'an end is expected that is not before the start')
  const settings = line.text
    .slice(found[0].length, found[0].length + MAX_SETTINGS_CHARS)
    .split(/\s+/)
    .filter((setting) => SAFE_SETTINGS.some((form) => form.test(setting)))
  return { startMs, endMs, settings, times: line }
}

function parseTimeMs([hours, minutes, seconds, fraction = '']: readonly (string | undefined)[]): number | undefined {
  if (Number(minutes) > 59 || Number(seconds) > 59) return undefined
  return ((Number(hours ?? 0) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(fraction.padEnd(3, '0'))
}

const MAX_SHOWN_CHARS = 40

function invalidLine({ number, text }: Line, expected: string): Failure {
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

const TAGS = new Set(['b', 'i', 'u', 'ruby', 'rt', 'v'])
/** A tag or a timestamp of WebVTT, or an override code that players understand in SRT. It cannot backtrack. */
const MARKUP = /<(\/?)([a-z]+)((?:[^a-z<>][^<>]*)?)>|<\d[\d:.]*>|\{\\[^{}]*\}/gi
// biome-ignore lint/suspicious/noControlCharactersInRegex: captions may not contain them
const CONTROLS = /[\x00-\x09\x0b-\x1f\x7f]/g

/** Keeps the tags in `TAGS`, each closed; of other tags only the text between them remains. */
function cleanText(text: string): string {
  const open: string[] = []
  let clean = ''
  let at = 0
  for (const markup of text.matchAll(MARKUP)) {
    clean += escapeText(unescapeText(text.slice(at, markup.index)))
    at = markup.index + markup[0].length
    const [, slash, name = '', annotation = ''] = markup
    const tag = name.toLowerCase()
    if (!TAGS.has(tag)) continue
    if (slash === '') {
      if (open.includes(tag)) continue
      open.push(tag)
      clean += tag === 'v' ? `<v ${parseVoice(annotation)}>` : `<${tag}>`
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

function parseVoice(annotation: string): string {
  return escapeText(unescapeText(annotation.replace(/^\S*\s*/, ''))).replaceAll('\n', ' ')
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', nbsp: '\u00a0', lrm: '\u200e', rlm: '\u200f' }

function unescapeText(text: string): string {
  return text.replace(/&(amp|lt|gt|nbsp|lrm|rlm);/g, (entity, name: string) => ENTITIES[name] ?? entity)
}

export function escapeText(text: string): string {
  return text.replace(CONTROLS, ' ').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

export function writeWebVtt(cues: readonly Cue[]): string {
  const blocks = cues.map(({ startMs, endMs, settings, text }) => {
    const times = [`${formatTime(startMs)} --> ${formatTime(endMs)}`, ...settings].join(' ')
    return `${times}\n${text}\n`
  })
  return ['WEBVTT\n', ...blocks].join('\n')
}

const WRITTEN = /^(\d+):(\d\d):(\d\d)\.(\d{3}) --> (\d+):(\d\d):(\d\d)\.(\d{3})([^\n]*)\n(.*)$/s

/**
 * What `writeWebVtt` wrote, so much earlier; later, if negative. Cues that are over before the start are left out, and one that is shown
 * there begins there.
 */
export function shiftWebVtt(webVtt: string, earlierMs: number): string {
  if (earlierMs === 0) return webVtt
  const shown = readWritten(webVtt).filter(({ endMs }) => endMs > earlierMs)
  return writeWebVtt(
    shown.map((cue) => ({ ...cue, startMs: Math.max(0, cue.startMs - earlierMs), endMs: cue.endMs - earlierMs })),
  )
}

/** How many cues of what `writeWebVtt` wrote are never shown, because they are over before the one time or begin after the other. */
export function countUnseenCues(webVtt: string, { fromMs, toMs }: { fromMs: number; toMs: number }): number {
  return readWritten(webVtt).filter(({ startMs, endMs }) => endMs <= fromMs || startMs >= toMs).length
}

function readWritten(webVtt: string): Cue[] {
  return webVtt
    .trimEnd()
    .split('\n\n')
    .flatMap((block): Cue[] => {
      const found = WRITTEN.exec(block)
      const [startMs, endMs] = [parseTimeMs(found?.slice(1, 5) ?? []), parseTimeMs(found?.slice(5, 9) ?? [])]
      if (!found || startMs === undefined || endMs === undefined) return []
      return [{ startMs, endMs, settings: (found[9] ?? '').trim().split(' ').filter(Boolean), text: found[10] ?? '' }]
    })
}

function formatTime(ms: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  const seconds = ms / 1000
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}.${String(ms % 1000).padStart(3, '0')}`
}
