import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { readRenditions } from '../viewer.ts'

// The OTP operation of the current interface: wire-contract.md, sections 3 and 5.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo({ size: '640x480' }) })
  videoId = reelgate.videoId
})
afterAll(() => reelgate.remove())

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

async function ask(text: string, type = JSON_TYPE) {
  const lines = [`Authorization: Apisecret ${reelgate.owner.apiKey}`, ...(type === 'none' ? [] : [`Content-Type: ${type}`])]
  const answer = await sendRaw(reelgate.url, `POST /api/videos/${videoId}/otp`, lines, text)
  return { status: answer.status, body: JSON.parse(answer.text) }
}
const askJson = (options: unknown) => ask(JSON.stringify(options))
const askForm = (options: Record<string, string>) => ask(new URLSearchParams(options).toString(), FORM_TYPE)

const issued = () => ({
  status: 200,
  body: {
    otp: expect.stringMatching(/^[A-Za-z0-9]{64}$/),
    playbackInfo: Buffer.from(`{"videoId":"${videoId}"}`).toString('base64'),
  },
})
const refused = (message: RegExp) => ({
  status: 400,
  body: { message: expect.stringMatching(message), code: 'invalid', requestId: expect.any(String) },
})

describe('an OTP is exactly otp and playbackInfo', () => {
  test.each([
    ['an empty form', '', FORM_TYPE],
    ['JSON without a Content-Type', '{"ttl":300}', 'none'],
    ['a form without a Content-Type', 'ttl=300', 'none'],
    ['JSON with a charset', '{"ttl":300}', 'application/json; charset=UTF-8'],
    ['unknown keys', '{"ttl":300,"colour":"red","deep":{"er":[1]},"constructor":1}', JSON_TYPE],
  ])('for %s', async (_, text, type) => {
    expect(await ask(text, type)).toEqual(issued())
  })

  test('for a multipart form', async () => {
    const form = new FormData()
    form.append('ttl', '300')
    const response = await fetch(`${reelgate.url}/api/videos/${videoId}/otp/`, {
      method: 'POST',
      headers: { Authorization: `Apisecret ${reelgate.owner.apiKey}` },
      body: form,
    })
    expect({ status: response.status, body: await response.json() }).toEqual(issued())
  })

  test('an unknown video is 404', async () => {
    const response = await reelgate.owner.call('POST', `/api/videos/${'0'.repeat(32)}/otp`, { body: {} })
    expect(response.status).toBe(404)
    expect(await response.json()).toEqual({ message: 'Video not found', code: 'not-found', requestId: expect.any(String) })
  })
})

describe('ttl', () => {
  const MAX = 365 * 24 * 3600
  test.each<[string, unknown, number]>([
    ['nothing', undefined, 21_600],
    ['an empty text', '', 21_600],
    ['null', null, 21_600],
    ['1', 1, 1],
    ['"300" as text', '300', 300],
    ['decades', 30 * 365 * 24 * 3600, MAX],
    ['a year', MAX, MAX],
    ['more than 2⁵³', 1e20, MAX],
    ['twenty nines as text', '9'.repeat(20), MAX],
  ])('%s', async (_, ttl, lifeS) => {
    const { otp }: { otp: string } = (await askJson({ ttl })).body
    const [row] = readRows<{ life: number }>(
      reelgate,
      'select expires_at_s - issued_at_s as life from otp where hash = ?',
      createHash('sha256').update(otp).digest(),
    )
    expect(row?.life).toBe(lifeS)
  })

  test.each([0, -1, 1.5, '0', '-5', '1.5', 'soon', true, [], {}, '1e3', ' 5'])('%j is 400', async (ttl) => {
    expect(await askJson({ ttl })).toEqual(refused(/^ttl /))
  })
})

describe('the owner’s rules are kept with the OTP, from JSON and from forms, as text and as values', () => {
  const DE = { ipGeoRules: [{ action: true, ipSet: [], countrySet: ['DE'] }] }
  test.each<[string, unknown, object]>([
    ['whitelisthref', 'Example.org', { whitelist: { host: 'example.org' } }],
    ['whitelisthref', '^(www|m)\\.example', { whitelist: { expression: '^(www|m)\\.example' } }],
    ['ipGeo', { allow: ['de', ['FR', '192.0.2.7']] }, { ipGeo: { allow: ['DE', ['FR', '192.0.2.7/32']] } }],
    ['ipGeoRules', '[{"action":"true","ipSet":[],"countrySet":["DE"]}]', DE],
    ['ipGeoRules', [{ action: true, ipSet: [], countrySet: ['DE'] }], DE],
  ])('%s %j', async (rule, value, kept) => {
    for (const answer of [
      await askJson({ [rule]: value }),
      await askForm({ [rule]: typeof value === 'string' ? value : JSON.stringify(value) }),
    ]) {
      expect(answer).toEqual(issued())
      const hash = createHash('sha256').update(String(answer.body.otp)).digest()
      const [row] = readRows<{ rules: string }>(reelgate, 'select rules from otp where hash = ?', hash)
      expect(JSON.parse(row?.rules ?? '')).toEqual(kept)
    }
  })

  test.each<[string, unknown]>([
    ['whitelisthref', '(?=good)'],
    ['whitelisthref', '(a)\\1'],
    ['whitelisthref', 'https://example.org'],
    ['ipGeo', { allow: ['UK'] }],
    ['ipGeoRules', [{ action: 'yes' }]],
  ])('%s %j is refused by name, and no OTP is made', async (rule, value) => {
    const issuedBefore = readRows(reelgate, 'select hash from otp').length
    expect(await askJson({ [rule]: value })).toEqual(refused(new RegExp(`^${rule}`)))
    expect(await askForm({ [rule]: typeof value === 'string' ? value : JSON.stringify(value) })).toEqual(
      refused(new RegExp(`^${rule}`)),
    )
    expect(readRows(reelgate, 'select hash from otp')).toHaveLength(issuedBefore)
  })

  test.each(['whitelisthref', 'ipGeo', 'ipGeoRules'])('an empty %s is no rule', async (rule) => {
    expect(await askJson({ [rule]: '' })).toEqual(issued())
    expect(await askJson({ [rule]: null })).toEqual(issued())
  })
})

test('X06: an annotate of a megabyte is refused for its length', async () => {
  const annotate = JSON.stringify([{ type: 'rtext', text: 'x'.repeat(2 ** 20) }])
  const refusal = { status: 413, body: { message: expect.any(String), code: 'too-large', requestId: expect.any(String) } }
  expect(await askJson({ annotate })).toEqual(refusal)
  expect(await askForm({ annotate })).toEqual(refusal)
})

describe('annotate reaches the player', () => {
  const marksOf = async (answer: { status: number; body: { otp: string } }) => {
    expect(answer).toEqual(issued())
    return (await reelgate.newViewer().redeem(answer.body.otp)).body.marks
  }
  const MOVING = { type: 'rtext', text: 'a viewer', alpha: 0.6, color: '#ff0000', sizePx: 20, intervalMs: 4000, skipMs: 100 }
  const entry = { type: 'rtext', text: 'a viewer', alpha: '0.60', color: '0xFF0000', size: '20', interval: '4000', skip: '100' }

  test.each<[string, unknown]>([
    ['a strict JSON array as text', JSON.stringify([entry])],
    ['single quotes', JSON.stringify([entry]).replaceAll('"', "'")],
    ['double quotes of a word processor', JSON.stringify([entry]).replace(/"([^"]*)"/g, '“$1”')],
    ['single quotes of a word processor', JSON.stringify([entry]).replace(/"([^"]*)"/g, '‘$1’')],
    ['closing quotes alone', JSON.stringify([entry]).replaceAll('"', '”')],
    ['an array', [entry]],
    ['one object', entry],
    ['one object as text', JSON.stringify(entry)],
    ['numbers instead of texts', [{ ...entry, alpha: 0.6, color: 0xff0000, size: 20, interval: 4000, skip: 100 }]],
    ['unknown keys', [{ ...entry, font: 'Comic' }]],
  ])('written as %s', async (_, annotate) => {
    expect(await marksOf(await askJson({ annotate }))).toEqual([MOVING])
  })

  test('in a form', async () => {
    expect(await marksOf(await askForm({ annotate: JSON.stringify([entry]) }))).toEqual([MOVING])
    expect(await marksOf(await askForm({ annotate: JSON.stringify([entry]).replaceAll('"', "'") }))).toEqual([MOVING])
  })

  test('a fixed text with its place, and an apostrophe in single quotes', async () => {
    const annotate = "[{'type':'text', 'text':'Ann\\'s \"copy\"', 'x':'10%', 'y':12}]"
    expect(await marksOf(await askJson({ annotate }))).toMatchObject([{ type: 'text', text: 'Ann\'s "copy"', x: '10%', y: '12' }])
  })

  test.each([
    ["[{'type':'text','text':'Sean O'Brien'}]", "Sean O'Brien"],
    ['[{‘type’:‘text’,‘text’:‘Sean O’Brien’}]', 'Sean O’Brien'],
    ["[{“type”:“text”,“text”:“Sean “Scoop” O'Brien”}]", "Sean “Scoop” O'Brien"],
    ["[{'type' : 'text' , 'text' : 'the students' book', 'alpha':'1'}]", "the students' book"],
  ])('O17: an apostrophe or a quote inside a text ends it only where JSON continues: %s', async (annotate, text) => {
    expect(await marksOf(await askJson({ annotate }))).toMatchObject([{ type: 'text', text }])
    expect(await marksOf(await askForm({ annotate }))).toMatchObject([{ type: 'text', text }])
  })

  test('with the viewer’s name and e-mail filled in', async () => {
    const marks = await marksOf(
      await askJson({
        annotate: [{ type: 'text', text: '{name} <{email}>' }],
        viewer: { name: 'Ann', email: 'ann@example.org' },
      }),
    )
    expect(marks).toMatchObject([{ text: 'Ann <ann@example.org>' }])
  })

  test('with the userId, and with the address and the day of the playback', async () => {
    const answer = await askJson({ userId: 'ann', annotate: [{ type: 'rtext', text: '{id} {ip} {date}' }] })
    const [before, marks, after] = [today(), await marksOf(answer), today()]
    expect([before, after].map((date) => `ann 127.0.0.1 ${date}`)).toContain((marks as { text: string }[])[0]?.text)
    const unnamed = await askJson({ annotate: [{ type: 'rtext', text: 'from {ip}' }] })
    expect(await marksOf(unnamed)).toMatchObject([{ text: 'from 127.0.0.1' }])
  })
  const today = () => new Date().toISOString().slice(0, 10)

  test('X07: what is a command to ffmpeg’s filters is text here, and two viewers with different watermarks get the same segments', async () => {
    const text = "':%{eif\\:1\\:d} %{localtime} textfile=/etc/passwd \\ [out];drawtext"
    const segmentsOf = async (otp: string) => {
      const viewer = reelgate.newViewer()
      const { marks } = (await viewer.redeem(otp)).body
      return { marks, segments: (await viewer.download('1')).segments }
    }
    const marked = await segmentsOf((await askJson({ annotate: [{ type: 'rtext', text }] })).body.otp)
    const plain = await segmentsOf((await askJson({})).body.otp)
    expect(marked.marks).toMatchObject([{ text }])
    expect(marked.segments).toEqual(plain.segments)
  })

  test('X06: brought within reason where it is beyond it', async () => {
    const beyond = { type: 'rtext', text: '😀'.repeat(500), alpha: '99', size: 1e9, interval: 0, skip: -1 }
    const below = { type: 'text', text: 'a\u0000\n', alpha: -1, size: -5, x: '-99999', y: '99999%' }
    expect(await marksOf(await askJson({ annotate: [beyond, below] }))).toEqual([
      { type: 'rtext', text: '😀'.repeat(500), alpha: 1, color: '#ffffff', sizePx: 120, intervalMs: 500, skipMs: 0 },
      {
        ...{ type: 'text', text: 'a  ', alpha: 0, color: '#ffffff', sizePx: 6, intervalMs: 5000, skipMs: 0 },
        x: '-99999',
        y: '99999%',
      },
    ])
  })

  test('nothing is no mark', async () => {
    for (const annotate of ['', null, [], '[]']) expect(await marksOf(await askJson({ annotate }))).toEqual([])
  })

  test.each<[string, unknown]>([
    ['half an array', '[{"type":"rtext"'],
    ['words', 'the viewer’s name'],
    ['a number', 5],
    ['a number as text', '5'],
    ['an array of texts', ['rtext']],
    ['no type', [{ text: 'x' }]],
    ['O17: a moving text without text', [{ type: 'rtext', alpha: '0.6' }]],
    ['O17: a text that is empty', [{ type: 'text', text: ' ' }]],
    ['O18: a text of characters that do not show', [{ type: 'text', text: '\u0000\n\u200b\u3164' }]],
    ['O18: a name that the OTP does not bring', [{ type: 'text', text: '{name}' }]],
    ['O18: an id that the OTP does not bring, after the address', [{ type: 'rtext', text: 'from {ip}{id}' }]],
    ['O19: a text of 501 characters', [{ type: 'rtext', text: 'x'.repeat(501) }]],
    ['O19: 20 long texts, which end with the name', Array(20).fill({ type: 'rtext', text: `${'x'.repeat(490)}{name}` })],
    ['O17: an image without address', [{ type: 'image' }]],
    ['an unknown type', [{ type: 'blink', text: 'x' }]],
    ['a size that is no number', [{ type: 'rtext', text: 'x', size: 'big' }]],
    ['a colour that is none', [{ type: 'rtext', text: 'x', color: 'reddish' }]],
    ['a text that is a list', [{ type: 'rtext', text: ['x'] }]],
    ['an image without a url', [{ type: 'image' }]],
    ['an image at a path', [{ type: 'image', url: '/logo.png' }]],
    ['S13: an image of a file', [{ type: 'image', url: 'file:///etc/passwd' }]],
    ['S13: an image inside its own address', [{ type: 'image', url: 'data:image/png;base64,AAAA' }]],
    ['X05: an image that is a script', [{ type: 'image', url: 'javascript:alert(1)' }]],
    ['S01: an image of this machine', [{ type: 'image', url: 'http://127.0.0.1/logo.png' }]],
    ['S14: an image at another port', [{ type: 'image', url: 'http://example.org:8080/logo.png' }]],
    ['five images', Array(5).fill({ type: 'image', url: 'https://example.org/logo.png' })],
    ['X05: a colour that is more than one', [{ type: 'rtext', text: 'x', color: '0xff0000;background:url(//x)' }]],
    ['X05: a place that is more than one', [{ type: 'text', text: 'x', x: '1px;background:url(//x)' }]],
    ['X06: a size that is not a number', [{ type: 'rtext', text: 'x', size: 'NaN' }]],
    ['X06: a size without end', [{ type: 'rtext', text: 'x', size: 'Infinity' }]],
    ['X06: ten thousand entries', JSON.stringify(Array(10_000).fill({ type: 'rtext' }))],
    ['X06: JSON inside JSON inside JSON', `${'['.repeat(5000)}${']'.repeat(5000)}`],
  ])('%s is 400', async (_, annotate) => {
    expect(await askJson({ annotate })).toEqual(refused(/^annotate /))
  })
})

describe('forcedBitrate', () => {
  const renditionsFor = async (options: unknown) => {
    const viewer = reelgate.newViewer()
    await viewer.redeem((await askJson(options)).body.otp)
    return readRenditions(await viewer.playlist('main'))
  }

  test('leaves the one rendition nearest to it', async () => {
    const all = await renditionsFor({})
    expect(all.length).toBeGreaterThan(1)
    const byHeight = all.toSorted((a, b) => a.heightPx - b.heightPx).map((rendition) => rendition.heightPx)
    const held = async (forcedBitrate: unknown) => (await renditionsFor({ forcedBitrate })).map((rendition) => rendition.heightPx)
    expect(await held(1)).toEqual([byHeight[0]])
    expect(await held('1')).toEqual([byHeight[0]])
    expect(await held(1_000_000)).toEqual([byHeight.at(-1)])
    expect(await held('9223372036854775808')).toEqual([byHeight.at(-1)])
  })

  test('P02: the playlist of every other rendition is refused', async () => {
    const [free, held] = [reelgate.newViewer(), reelgate.newViewer()]
    await free.redeem((await askJson({})).body.otp)
    await held.redeem((await askJson({ forcedBitrate: 1 })).body.otp)
    const namesOf = async (viewer: typeof free) =>
      readRenditions(await viewer.playlist('main')).map(({ uri }) => uri.split('/').at(-1) ?? '')
    const [only = ''] = await namesOf(held)
    for (const name of await namesOf(free)) {
      expect((await free.call('playlist', name)).status).toBe(200)
      expect([name, (await held.call('playlist', name)).status]).toEqual([name, name === only ? 200 : 400])
    }
  })

  test.each(['abc', 1.5, [], {}, '1.5', '-1', true])('O10: %j is 400', async (forcedBitrate) => {
    expect(await askJson({ forcedBitrate })).toEqual(refused(/^forcedBitrate /))
  })

  test('O10: 1e309 and NaN are 400', async () => {
    expect(await ask('{"forcedBitrate":1e309}')).toEqual(refused(/^forcedBitrate /))
    expect(await ask('{"forcedBitrate":NaN}')).toEqual(refused(/JSON/))
  })
})

describe('userId', () => {
  test.each(['a', 'A_b-9', '-', 'x'.repeat(36), 42])('%j is taken', async (userId) => {
    expect(await askJson({ userId })).toEqual(issued())
    expect(await askForm({ userId: String(userId) })).toEqual(issued())
  })

  test.each(['x'.repeat(37), 'a b', 'ä', 'a@b', 'a.b', -1, 1.5, true, ['a'], {}])('%j is 400', async (userId) => {
    expect(await askJson({ userId })).toEqual(refused(/^userId /))
  })
})

test('whatever is sent as options, the answer is an OTP or a refusal with a reason', async () => {
  const options = fc.record(
    Object.fromEntries(
      ['ttl', 'annotate', 'userId', 'forcedBitrate', 'viewer', 'licenseRules', 'ipGeo', 'ipGeoRules', 'whitelisthref'].map(
        (name) => [name, fc.jsonValue()],
      ),
    ),
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(options, async (given) => {
      const { status, body } = await askJson(given)
      if (status !== 200)
        expect({ status, code: body.code, message: typeof body.message }).toEqual({
          status: 400,
          code: 'invalid',
          message: 'string',
        })
    }),
    { numRuns: 150 },
  )
})
