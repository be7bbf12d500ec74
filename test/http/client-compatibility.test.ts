import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../connection.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import type { RawAnswer } from '../raw-http.ts'
import { makeVideo } from '../videos.ts'

// What clients of the hosted service send, byte for byte as their libraries write it (wire-contract.md, sections 2 to 6).

const CAPTIONS = '1\r\n00:00:00,000 --> 00:00:01,500\r\nLight falls.\r\n'
const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

let reelgate: Reelgate & { remove(): Promise<void> }
let host: string
let key: string
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  host = new URL(reelgate.url).host
  key = reelgate.owner.apiKey
  videoId = (await reelgate.owner.credentials('A video')).videoId
})
afterAll(() => reelgate.remove())

/** A request's bytes: lines of the head, the body behind them. */
const request = (lines: string[], body: string | Buffer = '') =>
  Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), Buffer.from(body)])
const json = ({ text }: RawAnswer) => JSON.parse(text)

async function askOnce(bytes: Buffer): Promise<RawAnswer> {
  const connection = await openConnection(reelgate.url)
  const answer = await connection.ask(bytes)
  connection.close()
  return answer
}

const newCredentials = () => reelgate.owner.credentials('Sent by a client')
async function arrived(id: string): Promise<boolean> {
  return (await reelgate.owner.video(id)).status !== 'PRE-Upload'
}

/** The parts of an upload form as clients write text fields, then the file's. */
function formOf(boundary: string, fields: [string, string][], file: { head: string; bytes: string }, ending: string): string {
  const parts = fields.map(
    ([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  return `${parts.join('')}--${boundary}\r\n${file.head}\r\n\r\n${file.bytes}\r\n--${boundary}${ending}`
}

async function fieldsOfUpload(): Promise<{ id: string; fields: [string, string][] }> {
  const { clientPayload, videoId: id } = await newCredentials()
  const { uploadLink: _, ...signed } = clientPayload
  return { id, fields: [...Object.entries(signed), ['success_action_status', '201'], ['success_action_redirect', '']] }
}

async function curl(...args: string[]): Promise<{ status: number; text: string }> {
  const { stdout } = await promisify(execFile)('curl', ['-s', '-w', '\n%{http_code}', ...args])
  const end = stdout.lastIndexOf('\n')
  return { status: Number(stdout.slice(end + 1)), text: stdout.slice(0, end) }
}

test('curl -d: options of an OTP as a form, with its own Content-Type', async () => {
  const { status, text } = await curl(
    '-H',
    `Authorization: Apisecret ${key}`,
    '-d',
    'ttl=300',
    '-d',
    'userId=v1',
    `${reelgate.url}/api/videos/${videoId}/otp`,
  )
  expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 200, body: { otp: expect.stringMatching(/^\w{64}$/) } })
  const v2 = await curl('-d', `clientSecretKey=${key}`, `${reelgate.url}/v2/otp?video=${videoId}`)
  expect(v2.text).toMatch(/^\{"otp":"\w{64}"\}$/)
})

test('curl -F: the upload form, with Expect: 100-continue', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-curl-'))
  try {
    await writeFile(join(folder, 'video.mp4'), 'x'.repeat(2_000_000)) // so large that curl asks first
    const { id, fields } = await fieldsOfUpload()
    const parts = fields.filter(([, value]) => value !== '').flatMap(([name, value]) => ['-F', `${name}=${value}`])
    const answer = await curl('-H', 'Expect: 100-continue', ...parts, '-F', `file=@${folder}/video.mp4`, `${reelgate.url}/upload`)
    expect(answer).toMatchObject({ status: 201, text: expect.stringContaining('<PostResponse>') })
    expect(await arrived(id)).toBe(true)
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('U19: who asks with Expect: 100-continue and a bad key is refused before the body is sent', async () => {
  const connection = await openConnection(reelgate.url)
  const head = (secret: string) => [
    `POST /api/videos/${videoId}/otp HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Apisecret ${secret}`,
    'Content-Type: application/json',
    'Content-Length: 11',
    'Expect: 100-continue',
  ]
  expect((await connection.ask(request(head('A'.repeat(64))))).status).toBe(401)
  connection.close()
  const another = await openConnection(reelgate.url)
  expect((await another.ask(request(head(key)))).status).toBe(100)
  expect((await another.ask('{"ttl":300}')).status).toBe(200)
  another.close()
})

test('a PHP stream context: HTTP/1.0 with Connection: close, and an answer that is not chunked', async () => {
  const body = `clientSecretKey=${key}&annotate=${encodeURIComponent("[{'type':'rtext','text':'A viewer','alpha':'0.60','color':'0xFF0000','size':'15','interval':'5000'}]")}`
  const answer = await askOnce(
    request(
      [
        `POST /v2/otp?video=${videoId} HTTP/1.0`,
        `Host: ${host}`,
        'Connection: close',
        'Content-type: application/x-www-form-urlencoded',
        `Content-Length: ${body.length}`,
      ],
      body,
    ),
  )
  expect(answer.status).toBe(200)
  expect(answer.headers.get('transfer-encoding')).toBeNull()
  // They cut the OTP by its place in the text.
  expect(answer.text).toBe(`{"otp":"${answer.text.slice(8, 72)}"}`)
  expect(answer.text.slice(8, 72)).toMatch(/^[A-Za-z0-9]{64}$/)
})

test('PHP’s json_encode of no options is [], which is an empty body', async () => {
  const answer = await askOnce(
    request(
      [
        `POST /api/videos/${videoId}/otp HTTP/1.1`,
        `Host: ${host}`,
        `Authorization: Apisecret ${key}`,
        'Accept: application/json',
        'Content-Type: application/json',
        'Content-Length: 2',
      ],
      '[]',
    ),
  )
  expect(json(answer)).toEqual({ otp: expect.any(String), playbackInfo: expect.any(String) })
})

test('PHP’s http_build_query writes lists as videos[0]=…&tags[0]=…, others as tags[]=…&tags[]=… or tags=…&tags=…', async () => {
  for (const [tag, body] of [
    ['numbered', `videos%5B0%5D=${videoId}&tags%5B0%5D=numbered&tags%5B1%5D=two`],
    ['bracketed', `videos[]=${videoId}&tags[]=bracketed&tags[]=two`],
    ['repeated', `videos=${videoId}&tags=repeated&tags=two`],
  ]) {
    const whole = `clientSecretKey=${key}&${body}`
    const answer = await askOnce(
      request(
        [
          'POST /v2/tags/add HTTP/1.1',
          `Host: ${host}`,
          'Content-Type: application/x-www-form-urlencoded',
          `Content-Length: ${whole.length}`,
        ],
        whole,
      ),
    )
    expect(answer.text).toBe('{"message":"Done"}')
    expect((await reelgate.owner.video(videoId)).tags).toEqual(expect.arrayContaining([tag, 'two']))
  }
})

test('python’s requests: an empty PUT with Content-Length: 0, then fields and file of its own multipart', async () => {
  const head = [
    `Host: ${host}`,
    'User-Agent: python-requests/2.31.0',
    'Accept-Encoding: gzip, deflate',
    'Accept: */*',
    'Connection: keep-alive',
  ]
  const connection = await openConnection(reelgate.url)
  const issued = await connection.ask(
    request([
      'PUT /api/videos?title=Caf%C3%A9+au+lait HTTP/1.1',
      ...head,
      `Authorization: Apisecret ${key}`,
      'Content-Length: 0',
    ]),
  )
  const { clientPayload, videoId: id } = json(issued)
  const { uploadLink: _, ...signed } = clientPayload
  // A tuple (None, value) in `files` makes a part without a file name; a name beyond ASCII is written twice.
  const boundary = '0dd1c2a5a7b94b1f8c4e6f1d2b3a4c5e'
  const fields: [string, string][] = [
    ...Object.entries<string>(signed),
    ['success_action_status', '201'],
    ['success_action_redirect', ''],
  ]
  const file = { head: `Content-Disposition: form-data; name="file"; filename*=utf-8''caf%C3%A9.mp4`, bytes: 'no video' }
  const body = formOf(boundary, fields, file, '--\r\n')
  const answer = await connection.ask(
    request(
      [
        'POST /upload HTTP/1.1',
        ...head,
        `Content-Length: ${Buffer.byteLength(body)}`,
        `Content-Type: multipart/form-data; boundary=${boundary}`,
      ],
      body,
    ),
  )
  connection.close()
  expect(answer.status).toBe(201)
  expect(await reelgate.owner.video(id)).toMatchObject({ title: 'Café au lait' })
  expect(await arrived(id)).toBe(true)
})

test('axios in Node: credentials, a chunked form and a status check on one connection that is kept alive', async () => {
  const head = [
    `Host: ${host}`,
    'Accept: application/json, text/plain, */*',
    'User-Agent: axios/1.6.2',
    'Accept-Encoding: gzip, compress, deflate, br',
    'Connection: keep-alive',
  ]
  const connection = await openConnection(reelgate.url)
  const authorization = `Authorization: Apisecret ${key}`
  const issued = await connection.ask(
    request(['PUT /api/videos?title=axios HTTP/1.1', ...head, authorization, 'Content-Length: 0']),
  )
  const { clientPayload, videoId: id } = json(issued)
  const { uploadLink: _, ...signed } = clientPayload
  const boundary = '--------------------------364517268213845972418064'
  const fields: [string, string][] = [
    ...Object.entries<string>(signed),
    ['success_action_status', '201'],
    ['success_action_redirect', ''],
  ]
  const file = {
    head: 'Content-Disposition: form-data; name="file"; filename="video.mp4"\r\nContent-Type: video/mp4',
    bytes: 'no video',
  }
  const body = formOf(boundary, fields, file, '--\r\n')
  connection.write(
    request([
      'POST /upload HTTP/1.1',
      ...head,
      `Content-Type: multipart/form-data; boundary=${boundary}`,
      'Transfer-Encoding: chunked',
    ]),
  )
  for (const piece of body.match(/.{1,200}/gs) ?? []) connection.write(`${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`)
  expect((await connection.ask('0\r\n\r\n')).status).toBe(201)
  const video = await connection.ask(request([`GET /api/videos/${id} HTTP/1.1`, ...head, authorization]))
  connection.close()
  expect(json(video)).toMatchObject({ id, title: 'axios' })
})

test('the old request library: lower-case headers, and json: true sends {} with a GET', async () => {
  const answer = await askOnce(
    request(
      [
        `GET /api/videos/${videoId} HTTP/1.1`,
        `authorization: Apisecret ${key}`,
        `host: ${host}`,
        'accept: application/json',
        'content-type: application/json',
        'content-length: 2',
        'Connection: close',
      ],
      '{}',
    ),
  )
  expect(json(answer)).toMatchObject({ id: videoId })
  const deleted = await askOnce(
    request([
      `DELETE /api/videos?videos=${'0'.repeat(32)} HTTP/1.1`,
      `authorization: Apisecret ${key}`,
      `host: ${host}`,
      'content-type: application/json',
      'Connection: close',
    ]),
  )
  expect(json(deleted)).toEqual({ code: 200, message: 'Successfully deleted 0 videos' })
})

test('Ruby scripts write a fixed boundary, and no line break at the end', async () => {
  const { id, fields } = await fieldsOfUpload()
  const file = {
    head: 'Content-Disposition: form-data; name="file"; filename="video.mp4"\r\nContent-Type: video/mp4',
    bytes: 'no video',
  }
  const body = formOf('AaB03x', fields, file, '--')
  const answer = await askOnce(
    request(
      [
        'POST /upload HTTP/1.1',
        'Content-Type: multipart/form-data; boundary=AaB03x',
        'Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3',
        'Accept: */*',
        'User-Agent: Ruby',
        `Host: ${host}`,
        `Content-Length: ${body.length}`,
      ],
      body,
    ),
  )
  expect(answer.status).toBe(201)
  expect(await arrived(id)).toBe(true)
})

test('a form that comes byte by byte is whole at its last one', async () => {
  const { id, fields } = await fieldsOfUpload()
  const file = { head: 'Content-Disposition: form-data; name="file"; filename="video.mp4"', bytes: 'no video' }
  const body = formOf('slow', fields, file, '--\r\n')
  const connection = await openConnection(reelgate.url)
  connection.write(
    request([
      'POST /upload HTTP/1.1',
      `Host: ${host}`,
      'Content-Type: multipart/form-data; boundary=slow',
      'Transfer-Encoding: chunked',
    ]),
  )
  for (const byte of Buffer.from(body)) connection.write(Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a]))
  expect((await connection.ask('0\r\n\r\n')).status).toBe(201)
  connection.close()
  expect(await arrived(id)).toBe(true)
})

test('eight captions and posters sent concurrently after a video, while it is Queued, are all accepted', async () => {
  const { owner, url } = reelgate
  const id = await owner.upload('With captions', await makeVideo())
  const send = async (query: string, name: string, bytes: string | Buffer<ArrayBuffer>) => {
    const form = new FormData()
    form.append('file', new Blob([bytes]), name)
    const headers = { Authorization: `Apisecret ${key}` }
    return (await fetch(`${url}/api/videos/${id}/files${query}`, { method: 'POST', headers, body: form })).status
  }
  const languages = ['en', 'de', 'fr', 'es', 'pt', 'hi']
  const captions = languages.map((language) => send(`?language=${language}`, 'words.srt', CAPTIONS))
  const posters = [1, 2].map((n) => send('', `poster-${n}.png`, PICTURE))
  expect(await Promise.all([...captions, ...posters])).toEqual(Array(8).fill(200))
  await owner.until(id, 'ready')
  const files = (await (await owner.call('GET', `/api/videos/${id}/files`)).json()) as { type: string; lang: string }[]
  expect(files.flatMap(({ type, lang }) => (type === 'caption' ? [lang] : [])).sort()).toEqual(languages.sort())
})

const SMUGGLED: Record<string, { lines: string[]; body: string }> = {
  'a length with chunks': { lines: ['Content-Length: 2', 'Transfer-Encoding: chunked'], body: '0\r\n\r\n' },
  'two lengths': { lines: ['Content-Length: 2', 'Content-Length: 3'], body: '{}' },
  'chunks and identity': { lines: ['Transfer-Encoding: chunked, identity'], body: '0\r\n\r\n' },
  'a folded header': { lines: ['X-Folded: a', ' b', 'Content-Length: 2'], body: '{}' },
  'a space before the colon': { lines: ['Content-Length : 2'], body: '{}' },
}
test.each(Object.keys(SMUGGLED))('U16: a request with %s is 400, and the connection ends', async (name) => {
  const { lines, body } = SMUGGLED[name] ?? { lines: [], body: '' }
  const connection = await openConnection(reelgate.url)
  const head = [
    `POST /api/videos/${videoId}/otp HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Apisecret ${key}`,
    'Content-Type: application/json',
  ]
  expect((await connection.ask(request([...head, ...lines], body))).status).toBe(400)
  await connection.closed
})

test('U16: bare line feeds end no line of a request', async () => {
  const connection = await openConnection(reelgate.url)
  const text = `GET /api/videos HTTP/1.1\nHost: ${host}\nAuthorization: Apisecret ${key}\n\n`
  expect((await connection.ask(text)).status).toBe(400)
  await connection.closed
})

const FORM = 'Content-Type: application/x-www-form-urlencoded'
const JSON_TYPE = 'Content-Type: application/json'
/** Sent with the key, where there is one. */
const HEAVY: Record<string, { type: string; body: string; statuses: number[] }> = {
  'U13: 100 000 keys': { type: FORM, body: 'a=&'.repeat(100_000), statuses: [413] },
  'U13: 60 000 keys': { type: FORM, body: 'a=&'.repeat(60_000), statuses: [400, 413] },
  'U13: search[a][b]… a thousand deep': { type: FORM, body: `search${'[a]'.repeat(1000)}=1`, statuses: [200, 400] },
  'U13: __proto__[title]=polluted': {
    type: FORM,
    body: '__proto__[title]=polluted&constructor[prototype][title]=polluted',
    statuses: [200, 400],
  },
  'U14: JSON 100 000 deep': { type: JSON_TYPE, body: `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, statuses: [200, 400] },
  'U14: a key that comes twice': { type: JSON_TYPE, body: '{"ttl":5,"ttl":"no"}', statuses: [400] },
  'U14: a byte order mark': { type: JSON_TYPE, body: '\ufeff{"ttl":5}', statuses: [200, 400] },
  'U14: lone surrogates': { type: JSON_TYPE, body: '{"userId":"\\ud800"}', statuses: [400] },
  'U15: JSON that says it is text': { type: 'Content-Type: text/plain', body: '{"ttl":5}', statuses: [200] },
}
test.each(Object.keys(HEAVY))('%s is answered in order, and the next call is as ever', async (name) => {
  const { type, body, statuses } = HEAVY[name] ?? { type: '', body: '', statuses: [] }
  const head = [
    `POST /api/videos/${videoId}/otp HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Apisecret ${key}`,
    type,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  const answer = await askOnce(request(head, body))
  expect(statuses).toContain(answer.status)
  // An object that had got a title from nowhere would be edited by it.
  const nothing = await reelgate.owner.call('POST', `/api/videos/${videoId}`, { body: {} })
  expect(nothing.status).toBe(400)
  expect((await reelgate.owner.video(videoId)).title).toBe('A video')
})

test('U14: 50 MB of JSON are refused as soon as they are announced', async () => {
  const head = [`POST /api/videos/${videoId}/otp HTTP/1.1`, `Host: ${host}`, `Authorization: Apisecret ${key}`, JSON_TYPE]
  expect((await askOnce(request([...head, 'Content-Length: 50000000'], '{"a":"x'))).status).toBe(413)
})

test('U14: bytes that are no UTF-8 are a text with replacements or 400, never a fault', async () => {
  const body = Buffer.concat([Buffer.from('{"userId":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
  const head = [
    `POST /api/videos/${videoId}/otp HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Apisecret ${key}`,
    JSON_TYPE,
    `Content-Length: ${body.length}`,
  ]
  expect((await askOnce(request(head, body))).status).toBe(400)
})
