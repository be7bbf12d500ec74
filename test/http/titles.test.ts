import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'

// What owners call their videos comes back as they wrote it, or is refused; and no log is led astray by it.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_LOG_LEVEL: 'trace' } })
})
afterAll(() => reelgate.remove())

const MAX = 500
/** Sent byte by byte, so that nothing tidies the title up. */
const create = (encodedTitle: string) =>
  sendRaw(reelgate.url, `PUT /api/videos?title=${encodedTitle}`, [`Authorization: Apisecret ${reelgate.owner.apiKey}`])

const edit = (videoId: string, title: unknown) => reelgate.owner.call('POST', `/api/videos/${videoId}`, { body: { title } })
const rowsCalled = (title: string) => readRows(reelgate, 'select 1 from video where title = ?', title).length
const countVideos = () => readRows(reelgate, 'select 1 from video').length

const KEPT: [string, string][] = [
  ['of one character', 'x'],
  ['of one emoji', '😀'],
  ['of as many code points as may be', 'x'.repeat(MAX)],
  ['of as many emoji as may be', '😀'.repeat(MAX)],
  ['of one family of four and a flag', '👨‍👩‍👧‍👦 🇩🇪'],
  ['with Hebrew, Arabic and marks of direction', 'שלום \u202eمرحبا\u202c \u200f!'],
  ['with letters that have two spellings', 'é e\u0301 Å \u212b'],
  ['with control characters and a line break', 'a\u0001\u0008\tb\r\nc\u001b[31md\u007f\u0085'],
  ['with what is no character of XML', 'a\ufffe\uffff\u{1fffe}'],
  ['null', 'null'],
  ['undefined', 'undefined'],
  ['a number', '42'],
  ['a very long number', '123456789012345678901234567890'],
  ['true', 'true'],
  ['an object', '{"$ne":1}'],
  ['blanks', '   '],
  ['with blanks around', ' x '],
  ['__proto__', '__proto__'],
  ['of HTML, XML and SQL', `<a>&"'</a>]]><!--'; drop table video; --`],
  ['of the percent sign and plus', '100 % + 1'],
]

describe('U22: a title comes back byte for byte', () => {
  test.each(KEPT)('%s', async (_, title) => {
    const { status, text } = await create(encodeURIComponent(title))
    expect(status).toBe(200)
    const { videoId }: { videoId: string } = JSON.parse(text)
    expect((await reelgate.owner.video(videoId)).title).toBe(title)
    expect((await reelgate.owner.list('?limit=1')).rows[0]).toMatchObject({ id: videoId, title })
    expect(rowsCalled(title)).toBe(1)

    const { videoId: renamed } = await reelgate.owner.credentials('before')
    expect((await edit(renamed, title)).status).toBe(200)
    expect((await reelgate.owner.video(renamed)).title).toBe(title)
  })
})

describe('U22: is refused with 400, and no video is made', () => {
  test.each([
    ['no title', ''],
    ['one code point too many', 'x'.repeat(MAX + 1)],
    ['one emoji too many', encodeURIComponent('😀'.repeat(MAX + 1))],
    ['one Hebrew letter too many', encodeURIComponent('ש'.repeat(MAX + 1))],
    ['two titles', 'a&title=b'],
    ['a NUL', 'before%00after'],
  ])('%s', async (_, title) => {
    const before = countVideos()
    const { status, text } = await create(title)
    expect({ status, body: JSON.parse(text) }).toEqual({
      status: 400,
      body: { message: expect.stringMatching(/title/i), code: 'invalid', requestId: expect.any(String) },
    })
    expect(countVideos()).toBe(before)
  })

  test.each<[string, unknown]>([
    ['no title', ''],
    ['null', null],
    ['a number', 42],
    ['true', true],
    ['a list', ['a title']],
    ['an object', { $ne: 1 }],
    ['a NUL', 'before\u0000after'],
    ['half an emoji', '\ud83d'],
    ['one code point too many', 'x'.repeat(MAX + 1)],
    ['one emoji too many', '😀'.repeat(MAX + 1)],
  ])('in an edit, %s; the title stays', async (_, title) => {
    const { videoId } = await reelgate.owner.credentials('as it was')
    const response = await edit(videoId, title)
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 400,
      body: { message: expect.stringMatching(/title/i), code: 'invalid', requestId: expect.any(String) },
    })
    expect((await reelgate.owner.video(videoId)).title).toBe('as it was')
  })

  test.each([
    ['half a percent sign', '%'],
    ['a percent sign without a meaning', '%ZZ'],
    ['bytes that are no UTF-8', '%ff%fe'],
    ['half an emoji', '%ed%a0%bd'],
    ['an overlong NUL', '%c0%80'],
  ])('%s: refused, or taken as the text that it says', async (_, title) => {
    const before = countVideos()
    const { status, text } = await create(title)
    expect([200, 400]).toContain(status)
    if (status === 400) expect(countVideos()).toBe(before)
    else expect((await reelgate.owner.video(JSON.parse(text).videoId)).title).toBe(title)
  })
})

test('L02: nothing that a caller sends begins a line of the log, or colours it', async () => {
  const FORGED = '{"level":30,"time":1,"msg":"the master key was changed"}'
  const hostile = `a video\n${FORGED}\r\n\u001b[2J\u001b[31mred\u0007\u2028end`
  const lines = [`Authorization: Apisecret ${reelgate.owner.apiKey}`]
  await create(encodeURIComponent(hostile))
  await sendRaw(reelgate.url, `GET /api/videos/${encodeURIComponent(hostile)}`, lines)
  await sendRaw(reelgate.url, `GET /${encodeURIComponent(hostile)}`)
  await sendRaw(reelgate.url, 'POST /v2/otp', ['Content-Type: application/json'], JSON.stringify({ [hostile]: hostile }))
  await reelgate.newViewer().redeem(hostile)
  // What is no video is said in the log and to the owner, whatever its name.
  const upload = await reelgate.owner.credentials(hostile)
  expect((await reelgate.owner.send(upload, new Blob([`no video\n${FORGED}\n\u001b[31m`]), `x\n${FORGED}.mp4`)).status).toBe(201)
  await expect.poll(async () => (await reelgate.owner.video(upload.videoId)).status).toBe('Not a media file')
  await reelgate.stop()
  const said = reelgate.output()
  expect(said.split('\n')).not.toContain(FORGED)
  for (const control of ['\u001b', '\u0007', '\r', '\u2028']) expect(said.includes(control)).toBe(false)
  const logged = said.split('\n').filter((line) => line.startsWith('{"level"'))
  for (const line of logged) expect(JSON.parse(line).msg).not.toBe('the master key was changed')
  await reelgate.restart()
})
