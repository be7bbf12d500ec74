import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify from 'fastify'
import { toSafeWebVtt } from '../src/assets/safe-webvtt.ts'
import { parseTagFilter } from '../src/catalogue/tag.ts'
import { contentDisposition } from '../src/http/media/attachment.ts'
import { findSecret } from '../src/http/v2/key-field.ts'
import { addBodyParsers } from '../src/http/wire/bodies.ts'
import { csvDocument } from '../src/http/wire/csv.ts'
import { readStringList } from '../src/http/wire/list-params.ts'
import { xmlDocument } from '../src/http/wire/xml.ts'
import { displayName } from '../src/ingest/source.ts'
import { parseJson } from '../src/json.ts'
import { createOutboundPolicy } from '../src/outbound/policy.ts'
import { readRules } from '../src/playback/rules/rules.ts'
import { parseWatermarks } from '../src/watermark/watermark.ts'
import { measureInterleaved, repeat } from './interleaved.ts'
import type { Row } from './row.ts'

/** A parser of texts from outside. `starts`: after them it reads on. It may refuse a text. */
type Parser = { name: string; starts?: readonly string[]; parse(text: string): unknown }

const FIELD = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
const outbound = createOutboundPolicy([])

const SIZE = 128 * 1024
const PAIRS = 15

const PARSERS: readonly Parser[] = [
  { name: 'json', starts: ['', '{"a":"', '['], parse: bodyParser('application/json') },
  { name: 'form', starts: ['', '%7b', '{', 'a='], parse: bodyParser('application/x-www-form-urlencoded') },
  { name: 'multipart', starts: ['', '--b\r\n', FIELD, FIELD.slice(0, -8)], parse: bodyParser('multipart/form-data; boundary=b') },
  { name: 'key', starts: ['', 'clientSecretKey'], parse: (text) => findSecret(Buffer.from(text)) },
  { name: 'json-text', starts: ['', '{"a":"'], parse: parseJson },
  { name: 'list', starts: ['', '['], parse: (text) => readStringList({ tags: text }, 'tags') },
  { name: 'tags', parse: (text) => parseTagFilter([text]) },
  { name: 'watermark', starts: ['', "[{'type':'text','text':'"], parse: (text) => parseWatermarks(outbound, text) },
  { name: 'rules', starts: ['', '{"allow":['], parse: (text) => readRules({ ipGeo: text }) },
  { name: 'whitelist', parse: (text) => readRules({ whitelisthref: text }) },
  {
    name: 'captions',
    starts: ['', 'WEBVTT\n\n00:01.000 --> 00:02.000\n'],
    parse: (text) => toSafeWebVtt(Buffer.from(text), 'en'),
  },
  { name: 'file-name', parse: displayName },
  { name: 'saved-name', parse: contentDisposition },
  { name: 'csv', parse: (text) => csvDocument([[text]]) },
  { name: 'xml', parse: (text) => xmlDocument({ title: text }) },
]

/** What is repeated. Each is special to some parser. */
const UNITS: readonly string[] = [
  ...[' ', '\n', '\r', '\t', 'a', '1', '.', ' .', '/', '\\', ':', ';', ',', ', ', '=', '-', '_', '*', '|', '+', 'x'.repeat(65)],
  ...['"', "'", '‘', '\\"', '"a"', "'a' ", '",', "', ", '{', '[', '}', ']', '{"a":', '[{', '"a":1,', '\\u0061', '__proto__'],
  ...[
    '%',
    '%7b',
    '%e4',
    '&',
    '&a=1',
    '&a[]=1',
    '&amp',
    '&amp;',
    '<',
    '<b',
    '<b>',
    '</b>',
    '<b></i>',
    '<v a',
    '<1',
    '{\\',
    '{\\a}',
  ],
  ...['-->', '00:', '00:01.000 --> 00:02.000\n', '00:01.000 --> 00:02.000\nx\n\n', '1\n\nx\n\n', 'NOTE\n\n'],
  ...['--b\r\n', '\r\n--b', FIELD, '{name}', 'clientSecretKey', '\u0301\u0316', 'é', '😀', '\ud800', '\0', '\u200e'],
]

/** Of each parser, the text that takes it longest: one that takes quadratic time takes seconds. */
export const PARSE_ROWS: readonly Row[] = PARSERS.map(({ name, starts = [''], parse }) => ({
  name: `parse-${name}`,
  what: `256 KiB of the slowest of ${starts.length * UNITS.length} repeated texts, processor time; peer: 128 KiB of it`,
  unit: 'ms',
  aim: { ratioAtMost: 2.5 },
  measure: async () => {
    const texts = starts.flatMap((start) => UNITS.map((unit) => (size: number) => start + unit.repeat(size / unit.length)))
    let slowest = { ms: 0, text: (_size: number) => '' }
    for (const text of texts) {
      const ms = Math.min(...(await repeat(2, () => timeParsingMs(parse, text(2 * SIZE)))))
      if (ms > slowest.ms) slowest = { ms, text }
    }
    const [whole, half] = [slowest.text(2 * SIZE), slowest.text(SIZE)]
    return measureInterleaved(
      PAIRS,
      () => timeParsingMs(parse, whole),
      () => timeParsingMs(parse, half),
    )
  },
}))

/** Short parsing is repeated, because a clock is not finer. */
const MIN_TIMED_MS = 10

/** In processor time of this thread, so that other programs do not count. */
async function timeParsingMs(parse: Parser['parse'], text: string): Promise<number> {
  const startedAt = performance.now()
  const before = process.threadCpuUsage()
  let times = 0
  do {
    times += 1
    try {
      await parse(text)
    } catch {
      // It refuses the text, which takes time, too.
    }
  } while (performance.now() - startedAt < MIN_TIMED_MS)
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000 / times
}

/** The parsers of bodies of both APIs, without the service around them. */
function bodyParser(type: string): Parser['parse'] {
  const app = Fastify({ bodyLimit: 4 * SIZE }).withTypeProvider<TypeBoxTypeProvider>()
  addBodyParsers(app)
  app.post('/', async () => 'read')
  return (payload) => app.inject({ method: 'POST', url: '/', headers: { 'content-type': type }, payload })
}
