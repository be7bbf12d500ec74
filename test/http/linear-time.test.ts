import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { type RawAnswer, readAnswer, sendRaw } from '../raw-http.ts'

// What a stranger sends costs little: what takes quadratic time, or waits for the rest of a body, runs into the timeout of the test.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_LIMITS: 'off' } })
})
afterAll(() => reelgate.remove())

const SIZE = 256 * 1024 - 100
const FORM = 'Content-Type: application/x-www-form-urlencoded'
const JSON_TYPE = 'Content-Type: application/json'

const BODIES = {
  'percent-encoded JSON that is followed by spaces': { type: FORM, body: `%7b${' '.repeat(SIZE)}x&` },
  'spaces before no JSON': { type: FORM, body: `${' '.repeat(SIZE)}x` },
  'escaped quotes in a text without an end': { type: JSON_TYPE, body: `{"a":"${'\\"'.repeat(SIZE / 2)}` },
  'quotes in a text without an end': { type: JSON_TYPE, body: '\\"'.repeat(SIZE / 2) },
  'opening brackets alone': { type: JSON_TYPE, body: '['.repeat(SIZE) },
} as const

test.each(Object.entries(BODIES))(
  'X17: one body without a key, of %s, is refused in linear time',
  async (_what, { type, body }) => {
    const console = [type, 'Reelgate-Console: 1']
    for (const line of ['POST /v2/otp', 'POST /v2/tags/add', 'POST /v2/nothing', 'POST /api/videos', 'POST /nothing'])
      expect((await sendRaw(reelgate.url, line, [type], body)).status).toBeOneOf([400, 401, 404, 405])
    expect((await sendRaw(reelgate.url, 'POST /console/api/sign-in', console, body)).status).toBeOneOf([400, 413])
  },
)

/** Sends a part of a body that is announced as 256 KiB, and waits for the answer to it. */
async function sendPart(path: string, part: string, lines: readonly string[] = [FORM]): Promise<RawAnswer> {
  const { hostname, port, host } = new URL(reelgate.url)
  const socket = connect(Number(port), hostname)
  const answer = once(socket, 'data')
  const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, ...lines, `Content-Length: ${256 * 1024}`]
  socket.write(`${head.join('\r\n')}\r\n\r\n${part}`)
  const [bytes] = await answer
  socket.destroy()
  return readAnswer(bytes)
}

const KIB = 1024

test('X18: a call of v2 without a true key is refused after 16 KiB of its body, one that changes tags after 64 KiB', async () => {
  const wrongKey = `clientSecretKey=${'x'.repeat(64)}&a=`
  for (const [path, kib] of [
    ['/v2/otp', 16],
    ['/v2/video', 16],
    ['/v2/tags/add', 64],
    ['/v2/tags/search', 64],
  ] as const) {
    const part = 'x'.repeat(kib * KIB)
    expect(await sendPart(path, `a=${part}`)).toMatchObject({ status: 401, text: expect.stringContaining(`first ${kib} KiB`) })
    expect((await sendPart(path, `${wrongKey}${part}`)).status).toBe(401)
  }
})

test('X18: a key is found in any body, after a thousand ids or all options of an OTP', async () => {
  const { owner } = reelgate
  const { videoId } = await owner.credentials('A title')
  const key = owner.apiKey
  const send = (path: string, type: string, body: string) =>
    sendRaw(reelgate.url, `POST /v2/${path}`, [`Content-Type: ${type}`], body)
  const annotate = JSON.stringify([{ type: 'text', text: 'x'.repeat(500), note: 'y'.repeat(14_000) }])
  const otp = `otp?video=${videoId}`
  const part = (name: string, value: string, more = '') =>
    `--b\r\n${more}Content-Disposition: form-data; name=${name}\r\n\r\n${value}\r\n`
  const json = JSON.stringify({ annotate, clientSecretKey: key }, undefined, 4)
  const answers = await Promise.all([
    send(otp, 'application/json', json),
    send(otp, 'text/plain', json),
    send(otp, 'application/x-www-form-urlencoded', encodeURIComponent(JSON.stringify({ ttl: 9, clientSecretKey: key }))),
    send(otp, 'application/x-www-form-urlencoded', `ttl=9&note=clientSecretKey&clientSecretKey=${key}`),
    send(
      otp,
      'multipart/form-data; boundary=b',
      `${part('annotate', annotate)}${part('clientSecretKey', key, 'Content-Type: text/plain; charset=utf-8\r\n')}--b--\r\n`,
    ),
    send(
      'tags/add',
      'application/x-www-form-urlencoded',
      `${`videos[]=${videoId}&`.repeat(400)}tags=x&padding=${'x'.repeat(40 * KIB)}&clientSecretKey=${key}`,
    ),
    send(otp, 'application/x-www-form-urlencoded', `clientSecretKey=${key}&padding=${'x'.repeat(200 * KIB)}`),
  ])
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
})

test('X19: a request for an unknown address is refused before its body is read', async () => {
  for (const path of ['/nothing', '/v2/nothing', '/api/nothing', '/console/api/nothing', '/play/nothing', '/demo'])
    expect((await sendPart(path, 'a=1', [FORM, 'Reelgate-Console: 1'])).status, path).toBeOneOf([400, 404, 405, 415])
})

test('X20: of a sign-in at most 4 KiB are read, whatever their type, and the attempt counts before', async () => {
  const limited = await startReelgate({ env: { REELGATE_LIMITS: '{}' } })
  const send = (path: string, type: string, body: string) =>
    sendRaw(limited.url, `POST /console/api/sign-in${path}`, [`Content-Type: ${type}`, 'Reelgate-Console: 1'], body)
  const long = 'x'.repeat(5 * KIB)
  for (const path of ['', '/link', '/passkey', '/passkey/options']) {
    expect((await send(path, 'application/json', JSON.stringify({ name: long }))).status).toBe(413)
    const form = `--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n${long}\r\n--b--\r\n`
    expect((await send(path, 'multipart/form-data; boundary=b', form)).status).toBe(413)
  }
  const counts = async () => (await send('', 'application/json', '{')).headers.get('ratelimit') ?? ''
  expect(await counts()).toMatch(/^"signIns";r=/)
  for (let tries = 0; tries < 100; tries++) await counts()
  expect((await send('', 'application/json', '{')).status).toBe(429)
})

test('X22: a tag of many combining marks is refused by its length, and one that is composed of them is kept', async () => {
  const { owner } = reelgate
  const { videoId } = await owner.credentials('Marks')
  const lines = [JSON_TYPE, `Authorization: Apisecret ${owner.apiKey}`]
  const tag = (text: string) =>
    sendRaw(reelgate.url, 'POST /api/videos/tags', lines, JSON.stringify({ videos: [videoId], tags: [text] }))
  expect((await tag('\u0301\u0316'.repeat(30_000))).status).toBe(400)
  expect((await tag('u\u0308\u0301'.repeat(255))).status).toBe(200)
  expect((await owner.video(videoId)).tags).toEqual(['\u01d8'.repeat(255)])
})
