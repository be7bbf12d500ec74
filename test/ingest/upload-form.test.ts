import { createHash, randomBytes } from 'node:crypto'
import { XMLParser } from 'fast-xml-parser'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uploadForm } from '../client.ts'
import { getStoredSource, listFiles } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { BOUNDARY, formBody, type Part, post, uploadParts } from './raw-form.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

const uploadLink = () => `${reelgate.url}/upload`
const readXml = (text: string) => new XMLParser({ parseTagValue: false }).parse(text)

test('the credentials are a form that S3 clients know, for the address where it is sent', async () => {
  const { clientPayload, videoId } = await reelgate.owner.credentials('A video')
  expect(Object.keys(clientPayload).sort()).toEqual(
    ['key', 'policy', 'uploadLink', 'x-amz-algorithm', 'x-amz-credential', 'x-amz-date', 'x-amz-signature'].sort(),
  )
  expect(clientPayload.uploadLink).toBe(uploadLink())
  const policy = JSON.parse(Buffer.from(clientPayload.policy ?? '', 'base64').toString())
  expect(Date.parse(policy.expiration) - Date.now()).toBeGreaterThan(23 * 3_600_000)
  expect(Date.parse(policy.expiration) - Date.now()).toBeLessThanOrEqual(24 * 3_600_000)
  expect(policy.conditions).toEqual([
    { bucket: expect.any(String) },
    ...['key', 'x-amz-algorithm', 'x-amz-credential', 'x-amz-date'].map((name) => ({ [name]: clientPayload[name] })),
    ['starts-with', '$success_action_status', ''],
    ['starts-with', '$success_action_redirect', ''],
  ])
  expect((await reelgate.owner.video(videoId)).status).toBe('PRE-Upload')
})

test.each([
  { asked: '200', status: 200 },
  { asked: '201', status: 201 },
  { asked: '204', status: 204 },
  { asked: '404', status: 204 },
  { asked: undefined, status: 204 },
])('success_action_status $asked is answered $status', async ({ asked, status }) => {
  const upload = await reelgate.owner.credentials('A video')
  const more: Record<string, string> = asked === undefined ? {} : { success_action_status: asked }
  const answer = await post(uploadLink(), formBody(uploadParts(upload, 'no video', more)))
  expect(answer?.status).toBe(status)
  expect(answer?.headers.get('Access-Control-Allow-Origin')).toBe('*')
  expect(answer?.headers.get('ETag')).toBe(`"${sha256('no video')}"`)
  if (status !== 201) expect(answer?.text).toBe('')
})

test('201 carries the PostResponse document of S3', async () => {
  const upload = await reelgate.owner.credentials('A video')
  const answer = await post(uploadLink(), formBody(uploadParts(upload, 'no video', { success_action_status: '201' })))
  expect(answer?.headers.get('Content-Type')).toContain('application/xml')
  const { PostResponse } = readXml(answer?.text ?? '')
  expect(PostResponse).toEqual({
    Location: answer?.headers.get('Location'),
    Bucket: 'reelgate',
    Key: upload.clientPayload.key,
    ETag: `"${sha256('no video')}"`,
  })
})

test('success_action_redirect is followed with 303 and bucket, key and etag, keeping its own parameters', async () => {
  const upload = await reelgate.owner.credentials('A video')
  const more = { success_action_redirect: 'https://site.example/done?video=7#top', success_action_status: '201' }
  const answer = await post(uploadLink(), formBody(uploadParts(upload, 'no video', more)))
  expect(answer?.status).toBe(303)
  const target = new URL(answer?.headers.get('Location') ?? '')
  expect(target.origin + target.pathname + target.hash).toBe('https://site.example/done#top')
  expect(Object.fromEntries(target.searchParams)).toEqual({
    video: '7',
    bucket: 'reelgate',
    key: upload.clientPayload.key,
    etag: `"${sha256('no video')}"`,
  })
})

test.each(['javascript:alert(1)', 'not an address', '//site.example/'])(
  'a redirect to %s is not made',
  async (success_action_redirect) => {
    const upload = await reelgate.owner.credentials('A video')
    const answer = await post(uploadLink(), formBody(uploadParts(upload, 'no video', { success_action_redirect })))
    expect(answer?.status).toBe(204)
  },
)

test('field names may be written in any case, and the types of parts are ignored', async () => {
  const upload = await reelgate.owner.credentials('A video')
  const parts = uploadParts(upload, 'no video', { success_action_status: '201' }).map(
    ({ name = '', body }): Part => ({
      header: `content-disposition: form-data; name="${name.toUpperCase()}"${name === 'file' ? '; filename="a.mp4"' : ''}\r\nContent-Type: application/octet-stream`,
      body,
    }),
  )
  expect(await post(uploadLink(), formBody(parts))).toMatchObject({ status: 201 })
})

test('a file part without a file name is a file all the same', async () => {
  const upload = await reelgate.owner.credentials('A video')
  const parts = uploadParts(upload, 'no video').map(({ name, body }) => ({ name, body }))
  expect(await post(uploadLink(), formBody(parts))).toMatchObject({ status: 204 })
  expect(await getStoredSource(reelgate, upload.videoId).clear()).toEqual(Buffer.from('no video'))
})

test('a form whose last boundary has no line break after it is whole', async () => {
  const upload = await reelgate.owner.credentials('A video')
  expect(await post(uploadLink(), formBody(uploadParts(upload, 'no video'), { ending: '--' }))).toMatchObject({ status: 204 })
  expect(await getStoredSource(reelgate, upload.videoId).clear()).toEqual(Buffer.from('no video'))
})

// Boundaries and line breaks inside a file, cut at every byte, are where parsers of forms go wrong.
const AWKWARD = Buffer.concat([
  Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}\r\n\r\n--\r\n--`),
  randomBytes(700),
  Buffer.from('\r\n\r\n-'),
])

test.each([
  { sent: 'in one piece', chunkBytes: undefined },
  { sent: 'in one chunk', chunkBytes: 2 ** 20 },
  { sent: 'a byte at a time', chunkBytes: 1 },
  { sent: 'in chunks of 37 bytes', chunkBytes: 37 },
])('a file sent $sent arrives byte for byte, with its hash and size', async ({ chunkBytes }) => {
  const upload = await reelgate.owner.credentials('A video')
  const answer = await post(uploadLink(), formBody(uploadParts(upload, AWKWARD, { success_action_status: '201' })), {
    chunkBytes,
  })
  expect(answer?.status).toBe(201)
  const source = getStoredSource(reelgate, upload.videoId)
  expect(await source.clear()).toEqual(AWKWARD)
  expect(source.sha256.toString('hex')).toBe(sha256(AWKWARD))
  expect(source.sizeBytes).toBe(AWKWARD.length)
})

test.each([
  { sent: 'C:\\Videos\\My video.mp4', kept: 'My video.mp4' },
  { sent: '../../etc/passwd', kept: 'passwd' },
  { sent: '/', kept: '' },
  { sent: '..\\..\\..', kept: '' },
  { sent: 'a\u0007b\u202Ec.mp4', kept: 'abc.mp4' },
  { sent: 'video.mp4\0.jpg', kept: 'video.mp4.jpg' },
  { sent: `${'n'.repeat(5000)}.mp4`, kept: 'n'.repeat(255) },
  { sent: 'Ünïcödé 電影.mp4', kept: 'Ünïcödé 電影.mp4' },
  { sent: `${'🎬'.repeat(300)}.mp4`, kept: '🎬'.repeat(255) },
])('S24: the file name $sent is shown as $kept, and is the name of no file', async ({ sent, kept }) => {
  const upload = await reelgate.owner.credentials('A video')
  // As browsers write it; a backslash and a quote would be escaped, which is not what is tried here.
  const answer = await post(uploadLink(), formBody(uploadParts(upload, 'no video', {}, sent.replaceAll('\\', '\\\\'))))
  expect(answer?.status).toBe(204)
  expect(readRows(reelgate, 'select file_name from video where id = ?', upload.videoId)).toEqual([{ file_name: kept }])
  expect(await listFiles(reelgate, `sources/${upload.videoId}`)).toEqual([expect.stringMatching(/^[0-9a-f]{32}\.sealed$/)])
})

test.each([
  { change: 'another signature', fields: { 'x-amz-signature': '0'.repeat(64) } },
  { change: 'a shorter signature', fields: { 'x-amz-signature': '00' } },
  { change: 'another key', fields: { key: 'orig/0/0' } },
  { change: 'another date', fields: { 'x-amz-date': '20200101T000000Z' } },
  { change: 'another credential', fields: { 'x-amz-credential': 'REELGATE/20200101/us-east-1/s3/aws4_request' } },
  { change: 'another algorithm', fields: { 'x-amz-algorithm': 'none' } },
  {
    change: 'another policy',
    fields: { policy: Buffer.from('{"expiration":"2099-01-01T00:00:00Z","conditions":[]}').toString('base64') },
  },
  { change: 'a policy that is not one', fields: { policy: 'ä' } },
  { change: 'a field that was not signed', fields: { acl: 'public-read' } },
  { change: 'a title', fields: { title: 'Another video' } },
])('U01: a form with $change is refused with S3’s AccessDenied, and stores nothing', async ({ fields }) => {
  const upload = await reelgate.owner.credentials('A video')
  const form = { ...upload, clientPayload: Object.assign({}, upload.clientPayload, fields) }
  const answer = await post(uploadLink(), formBody(uploadParts(form, 'no video')))
  expect(answer?.status).toBe(403)
  expect(readXml(answer?.text ?? '').Error).toMatchObject({ Code: 'AccessDenied', Message: expect.stringMatching(/\.$/) })
  expect((await reelgate.owner.video(upload.videoId)).status).toBe('PRE-Upload')
  expect(await listFiles(reelgate, 'tmp')).toEqual([])
  // The credentials themselves are still good.
  expect((await reelgate.owner.send(upload, new Blob(['no video']))).status).toBe(201)
})

test.each(['policy', 'key', 'x-amz-signature', 'x-amz-algorithm', 'x-amz-date', 'x-amz-credential'])(
  'U01: a form without its field %s is refused',
  async (missing) => {
    const upload = await reelgate.owner.credentials('A video')
    const answer = await post(uploadLink(), formBody(uploadParts(upload, 'no video').filter(({ name }) => name !== missing)))
    expect(answer?.status).toBe(403)
  },
)

test('U01: fields of another upload do not mix with these', async () => {
  const [one, other] = [await reelgate.owner.credentials('One'), await reelgate.owner.credentials('Other')]
  const form = { ...one, clientPayload: { ...one.clientPayload, key: other.clientPayload.key ?? '' } }
  expect((await post(uploadLink(), formBody(uploadParts(form, 'no video'))))?.status).toBe(403)
})

test('U02: credentials that were used are refused the second time, and the first video stays', async () => {
  const upload = await reelgate.owner.credentials('A video')
  expect((await reelgate.owner.send(upload, new Blob(['first']))).status).toBe(201)
  const second = await reelgate.owner.send(upload, new Blob(['second']))
  expect(second.status).toBe(403)
  expect(await second.text()).toContain('already used')
  expect(await getStoredSource(reelgate, upload.videoId).clear()).toEqual(Buffer.from('first'))
})

test('F-02: an upload whose answer was lost is sent again and answered as the first time; there is one video', async () => {
  const upload = await reelgate.owner.credentials('A video')
  const video = new Blob(['a video '.repeat(100_000)])
  const first = await reelgate.owner.send(upload, video)
  const files = await listFiles(reelgate, 'sources')
  const again = await reelgate.owner.send(upload, video)
  expect([first.status, again.status]).toEqual([201, 201])
  expect(again.headers.get('etag')).toBe(first.headers.get('etag'))
  expect(await again.text()).toBe(await first.text())
  expect(await listFiles(reelgate, 'sources')).toEqual(files)
  // A part of it, or more than it, is another file.
  for (const other of ['a video ', 'a video '.repeat(100_001)])
    expect((await reelgate.owner.send(upload, new Blob([other]))).status).toBe(403)
  await reelgate.owner.delete([upload.videoId])
  expect((await reelgate.owner.send(upload, video)).status).toBe(403)
})

test('F-02: the same upload sent twenty times concurrently is accepted each time, and there is one video', async () => {
  const upload = await reelgate.owner.credentials('A video')
  const video = new Blob(['a video '.repeat(20_000)])
  const answers = await Promise.all(Array.from({ length: 20 }, () => reelgate.owner.send(upload, video)))
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201))
  expect(await listFiles(reelgate, `sources/${upload.videoId}`)).toHaveLength(1)
  expect(await listFiles(reelgate, 'tmp')).toEqual([])
})

test('U02: of twenty concurrent uploads with the same credentials, one becomes the video and the others leave nothing', async () => {
  const upload = await reelgate.owner.credentials('A video')
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => reelgate.owner.send(upload, new Blob([`video ${i} `.repeat(20_000)]))),
  )
  const accepted = answers.flatMap(({ status }, i) => (status === 201 ? [i] : []))
  expect(accepted).toHaveLength(1)
  expect(answers.every(({ status }) => [201, 403, 409].includes(status))).toBe(true)
  expect(await getStoredSource(reelgate, upload.videoId).clear()).toEqual(Buffer.from(`video ${accepted[0]} `.repeat(20_000)))
  expect(await listFiles(reelgate, `sources/${upload.videoId}`)).toHaveLength(1)
  expect(await listFiles(reelgate, 'tmp')).toEqual([])
})

test.each([
  { what: 'a zero-byte file', bytes: '' },
  { what: 'one byte', bytes: 'x' },
  { what: 'a text', bytes: 'This is not a video. '.repeat(500) },
])('U20: $what ends as "Not a media file", with a reason', async ({ bytes }) => {
  const upload = await reelgate.owner.credentials('A video')
  expect((await reelgate.owner.send(upload, new Blob([bytes]))).status).toBe(201)
  const { status, statusReason } = await reelgate.owner.until(upload.videoId, 'Not a media file', 'Encoding error', 'ready')
  expect({ status, statusReason }).toEqual({ status: 'Not a media file', statusReason: expect.stringMatching(/^[A-Z].+\.$/) })
})

test('D10: a browser of any site may send the form: the preflight says so, without credentials', async () => {
  const preflight = await fetch(uploadLink(), {
    method: 'OPTIONS',
    headers: {
      Origin: 'https://site.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'x-requested-with',
    },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('Access-Control-Allow-Origin')).toBe('*')
  expect(preflight.headers.get('Access-Control-Allow-Methods')).toContain('POST')
  expect(preflight.headers.get('Access-Control-Allow-Headers')).toBe('*')
  expect(preflight.headers.get('Access-Control-Allow-Credentials')).toBeNull()
})

test('a refusal can be read by a browser of any site too', async () => {
  const refused = await fetch(uploadLink(), {
    method: 'POST',
    body: uploadForm({ clientPayload: { uploadLink: '' }, videoId: '' }, new Blob(['x']), 'x'),
  })
  expect(refused.status).toBe(403)
  expect(refused.headers.get('Access-Control-Allow-Origin')).toBe('*')
})

function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

test('fields that begin with x-ignore- are ignored, as S3 does; another field that was not signed is not', async () => {
  const upload = await reelgate.owner.credentials('A video')
  const ignored = await post(
    uploadLink(),
    formBody(uploadParts(upload, 'no video', { 'x-ignore-session': 'anything', 'X-Ignore-2': '' })),
  )
  expect(ignored?.status).toBe(204)
  const other = await reelgate.owner.credentials('A video')
  const refused = await post(uploadLink(), formBody(uploadParts(other, 'no video', { 'x-session': 'anything' })))
  expect(refused?.status).toBe(403)
})
