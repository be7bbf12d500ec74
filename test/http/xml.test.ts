import fc from 'fast-check'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { xmlDocument } from '../../src/http/wire/xml.ts'
import { startChromium } from '../browser/chromium.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { rounds } from '../seeded-random.ts'

// XML that the earlier interface answers, read by libxml2, which is Chromium's parser, against the JSON of the same call.

let reelgate: Reelgate & { remove(): Promise<void> }
let browser: Browser
let page: Page
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  browser = await startChromium()
  page = await browser.newPage()
})
afterAll(async () => {
  await browser.close()
  await reelgate.remove()
})

type Parsed = { name: string; children: Parsed[]; text: string }

type Element = { nodeName: string; children: Iterable<Element>; textContent: string }
declare const DOMParser: new () => { parseFromString(text: string, type: string): { documentElement: Element } }

/** @throws Error with the parser's words when it is not well formed */
async function parse(xml: string): Promise<Parsed> {
  const root = await page.evaluate((text) => {
    const read = (element: Element): Parsed => ({
      name: element.nodeName,
      children: [...element.children].map(read),
      text: element.textContent,
    })
    return read(new DOMParser().parseFromString(text, 'application/xml').documentElement)
  }, xml)
  if (JSON.stringify(root).includes('"parsererror"')) throw new Error(root.text)
  return root
}

/** What XML 1.0 cannot say is left out; written apart from the writer, by code point. */
function withoutForbidden(text: string): string {
  return Array.from(text)
    .filter((letter) => {
      const code = letter.codePointAt(0) ?? 0
      if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd
      return !(code >= 0xd800 && code <= 0xdfff) && code !== 0xfffe && code !== 0xffff
    })
    .join('')
}

const fieldsOf = ({ children }: Parsed) => Object.fromEntries(children.map(({ name, text }) => [name, text]))
const asXml = (fields: object) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, withoutForbidden(String(value))]))

const HOSTILE = [
  ...['<', '>', '&', '"', "'", ']]>', '<!--', '-->', '<![CDATA[', '<?xml', '?>', '&amp;', '&#0;', '&#x1F;', '&lol;', '%lol;'],
  ...['<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>', '</title></video>', '<script>', '{{', '\\u0000'],
  ...[
    '\u0001',
    '\u0008',
    '\t',
    '\n',
    '\r',
    '\r\n',
    '\u000b',
    '\u001f',
    '\u007f',
    '\u0085',
    '\u2028',
    '\ufeff',
    '\ufffe',
    '\uffff',
  ],
  ...['\u{1fffe}', '\u{10ffff}', '🎬', 'e\u0301', '\u202e', ' ', 'a', 'Title'],
]
const titles = fc.array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'binary', maxLength: 4 })), {
  minLength: 1,
  maxLength: 8,
})
const kept = titles.map((parts) => parts.join('').replaceAll('\0', '')).filter((title) => title !== '' && title.isWellFormed())

const TITLES = rounds(300, 1_000)
const seed = Number(process.env.REELGATE_SEED ?? Date.now() % 2 ** 31)

test('X01, X02, X03: hundreds of hostile titles, listed in XML, are well formed and say what the JSON says', async () => {
  const { owner } = reelgate
  const wanted = fc.sample(kept, { numRuns: TITLES, seed })
  for (let first = 0; first < wanted.length; first += 50)
    await Promise.all(wanted.slice(first, first + 50).map((title) => owner.credentials(title)))
  const ask = async (path: string) => {
    const body = new URLSearchParams({ clientSecretKey: owner.apiKey })
    return (await fetch(`${owner.url}/v2${path}`, { method: 'POST', body })).text()
  }
  const listed: { id: string; title: string }[] = []
  for (let number = 1; number <= TITLES / 100; number++) {
    const query = `limit=100&page=${number}`
    const json = JSON.parse(await ask(`/videos?${query}`)) as { id: string; title: string }[]
    const xml = await parse(await ask(`/videos?${query}&type=xml`))
    expect([xml.name, ...new Set(xml.children.map(({ name }) => name))]).toEqual(['videos', 'video'])
    expect(xml.children.map(fieldsOf), `seed ${seed}`).toEqual(json.map(asXml))
    listed.push(...json)
  }
  expect(listed.map(({ title }) => title).sort(), `seed ${seed}`).toEqual(wanted.toSorted())
  for (const { id } of listed.slice(0, 20)) {
    const one = await parse(await ask(`/video?id=${id}&type=xml`))
    expect(one.name).toBe('video')
    expect(fieldsOf(one)).toEqual(asXml(JSON.parse(await ask(`/video?id=${id}`)) as object))
  }
})

test('X01, X02: whatever texts, numbers, lists and records a document holds, a parser reads the same', async () => {
  const name = fc.constantFrom('id', 'title', 'x-amz-date', 'video', 'Code')
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    titles.map((parts) => parts.join('')),
    fc.constant('\ud800 half'),
  )
  const leaf = fc.oneof(text, fc.integer(), fc.boolean())
  const record = fc.dictionary(name, fc.oneof(leaf, fc.array(leaf, { maxLength: 3 }), fc.dictionary(name, leaf)))
  await fc.assert(
    fc.asyncProperty(record, async (fields) => {
      expect(await parse(xmlDocument({ root: fields }))).toEqual(asParsed('root', fields))
    }),
    { numRuns: rounds(50, 200), seed },
  )
})

/** As a parser should see it, by the rules of docs/videos.md. */
function asParsed(name: string, value: unknown): Parsed {
  if (typeof value !== 'object' || value === null) return { name, children: [], text: withoutForbidden(String(value)) }
  const children = Object.entries(value).flatMap(([field, one]) => [one].flat().map((each) => asParsed(field, each)))
  return { name, children, text: children.map(({ text }) => text).join('') }
}

test('X01: answers and refusals of every operation say in XML what they say in JSON', async () => {
  const { owner } = reelgate
  const { videoId } = await owner.credentials('<a>&"\' ]]> <!-- \r\n')
  const ask = async (path: string, fields: Record<string, string>) => {
    const body = new URLSearchParams({ clientSecretKey: owner.apiKey, ...fields })
    return (await fetch(`${owner.url}/v2${path}`, { method: 'POST', body })).text()
  }
  const calls: [path: string, fields: Record<string, string>][] = [
    ['/tags/add?', { videos: videoId, tags: '<tag>' }],
    ['/tags/add?', { videos: 'unknown', tags: 'x' }],
    ['/tags/remove?', { videos: videoId }],
    ['/video?id=unknown', {}],
    ['/video?', {}],
    ['/videos?search=<&>', {}],
    ['/otp?video=unknown', {}],
    ['/uploadPolicy?', { title: '' }],
    ['/nothing?', {}],
    ['/videos?', { clientSecretKey: '<wrong>' }],
  ]
  for (const [path, fields] of calls) {
    const xml = await parse(await ask(`${path}&type=xml`, fields))
    expect([path, xml.name, fieldsOf(xml)]).toEqual([path, 'result', asXml(JSON.parse(await ask(path, fields)) as object)])
  }
  const policy = await parse(await ask('/uploadPolicy?type=xml', { title: 'x' }))
  const fields = Object.keys(JSON.parse(await ask('/uploadPolicy', { title: 'x' })) as object)
  expect(policy.children.map(({ name }) => name)).toEqual(fields)
  expect(await ask('/tags/search?type=xml', { tags: 'none' })).toMatch(/\n<videos><\/videos>$/)
})
