import { type Check, check, type Section } from '../check.ts'
import { expectAnswer, expectValue } from '../expect.ts'
import { multipart, type Parts } from '../http.ts'
import { type Credentials, type Installation, NOT_MEDIA } from '../installation.ts'
import { exactly, inOrder, is, isRecord } from '../shape.ts'

const refusedXml = (status: number) => ({
  status,
  headers: { 'content-type': /^application\/xml/ },
  text: /^<\?xml [^>]*\?>\s*<Error><Code>\w+<\/Code><Message>[^<]+<\/Message>.*<\/Error>$/,
})

const filePart = (bytes: Buffer | string = NOT_MEDIA, fileName = 'bars.mp4'): Parts[number] => ['file', { fileName, bytes }]

/** The form with other parts, or under another boundary, or otherwise written. */
async function post(at: Installation, { uploadLink }: Credentials, type: string, body: Buffer | string) {
  return at.send({ method: 'POST', url: uploadLink, headers: [['Content-Type', type]], body })
}

async function postParts(at: Installation, issued: Credentials, parts: Parts) {
  const { type, body } = multipart(parts)
  return post(at, issued, type, body)
}

const TAMPERED: Record<string, (fields: Record<string, string>) => Record<string, string>> = {
  'another signature': (fields) => ({ ...fields, 'x-amz-signature': '0'.repeat(64) }),
  'another key': (fields) => ({ ...fields, key: `${fields.key}x` }),
  'another date': (fields) => ({ ...fields, 'x-amz-date': '20200101T000000Z' }),
  'another policy': (fields) => ({
    ...fields,
    policy: Buffer.from('{"expiration":"2099-01-01T00:00:00Z","conditions":[]}').toString('base64'),
  }),
}

const STATUSES = [
  { asked: '200', status: 200, text: '' },
  {
    asked: '201',
    status: 201,
    text: /<PostResponse><Location>[^<]+<\/Location><Bucket>[^<]+<\/Bucket><Key>[^<]+<\/Key><ETag>[^<]+<\/ETag><\/PostResponse>$/,
  },
  { asked: '204', status: 204, text: '' },
] as const

export const upload: Section = {
  section: 4,
  title: 'Form upload',
  checks: [
    check('policy: base64 JSON of expiration in 24 h and conditions that fix bucket, key and the x-amz fields', async (at) => {
      const { fields } = await at.credentials()
      const policy: unknown = JSON.parse(Buffer.from(fields.policy ?? '', 'base64').toString())
      const inADay = is('in 24 hours', (value) => Math.abs(Date.parse(String(value)) - Date.now() - 86_400_000) < 300_000)
      expectValue(policy, exactly({ expiration: inADay, conditions: is('an array', Array.isArray) }), 'policy')
      const conditions = (policy as { conditions: unknown[] }).conditions
      const fixed = Object.assign({}, ...conditions.filter(isRecord))
      expectValue(fixed.bucket, /./, 'conditions: bucket')
      for (const field of ['key', 'x-amz-algorithm', 'x-amz-date', 'x-amz-credential'])
        expectValue(fixed[field], fields[field] ?? null, field)
      for (const field of ['success_action_status', 'success_action_redirect'])
        expectValue(
          conditions.filter(Array.isArray).some((one) => one.join() === `starts-with,$${field},`),
          true,
          `starts-with "" for ${field}`,
        )
    }),
    check('policy: signed with AWS Signature V4', async (at) => {
      const { fields } = await at.credentials()
      expectValue(fields['x-amz-algorithm'], 'AWS4-HMAC-SHA256', 'x-amz-algorithm')
      expectValue(fields['x-amz-date'], /^\d{8}T\d{6}Z$/, 'x-amz-date')
      expectValue(fields['x-amz-credential'], /^[^/]+\/\d{8}\/[^/]+\/s3\/aws4_request$/, 'x-amz-credential')
      expectValue(fields['x-amz-signature'], /^[0-9a-f]{64}$/, 'x-amz-signature')
    }),
    ...STATUSES.map(({ asked, status, text }) =>
      check(`success_action_status ${asked} answers ${status}${asked === '201' ? ' with S3’s PostResponse' : ''}`, async (at) => {
        expectAnswer(await at.upload(await at.credentials(), [['success_action_status', asked]]), { status, text })
      }),
    ),
    check('success_action_redirect answers 303 to it, with bucket, key and etag', async (at) => {
      const issued = await at.credentials()
      const answer = await at.upload(issued, [['success_action_redirect', 'https://example.org/done?a=b']])
      expectAnswer(answer, { status: 303 })
      const location = new URL(answer.headers.location ?? 'http://nothing')
      expectValue(`${location.origin}${location.pathname}`, 'https://example.org/done', 'Location')
      expectValue(location.searchParams.get('a'), 'b', 'what the address held')
      expectValue(location.searchParams.get('key'), issued.fields.key ?? null, 'key')
      for (const name of ['bucket', 'etag']) expectValue(location.searchParams.get(name), /./, name)
    }),
    check('an empty success_action_redirect does not redirect', async (at) => {
      const more: Parts = [
        ['success_action_redirect', ''],
        ['success_action_status', '201'],
      ]
      expectAnswer(await at.upload(await at.credentials(), more), { status: 201 })
    }),
    check('field names in any letter case', async (at) => {
      const issued = await at.credentials()
      const fields = Object.entries(issued.fields).map(([name, value]): Parts[number] => [name.toUpperCase(), value])
      expectAnswer(
        await postParts(at, issued, [
          ...fields,
          ['Success_Action_Status', '201'],
          ['FILE', { fileName: 'a.mp4', bytes: NOT_MEDIA }],
        ]),
        { status: 201 },
      )
    }),
    check('the type of the file’s part is ignored, and its name becomes the video’s file, never a path', async (at) => {
      const issued = await at.credentials()
      const file: Parts[number] = ['file', { fileName: '../../etc/my video.mp4', type: 'text/html', bytes: NOT_MEDIA }]
      expectAnswer(await postParts(at, issued, [...Object.entries(issued.fields), ['success_action_status', '201'], file]), {
        status: 201,
      })
      expectAnswer(await at.v2(`/video?id=${issued.videoId}`), { status: 200, body: { file: /^[^/\\]*my video\.mp4$/ } })
    }),
    check('a file name is cleaned to 255 characters', async (at) => {
      const issued = await at.credentials()
      const parts: Parts = [
        ...Object.entries(issued.fields),
        ['success_action_status', '201'],
        filePart(NOT_MEDIA, `${'n'.repeat(300)}.mp4`),
      ]
      expectAnswer(await postParts(at, issued, parts), { status: 201 })
      const short = is('at most 255 characters', (value) => typeof value === 'string' && value.length > 0 && value.length <= 255)
      expectAnswer(await at.v2(`/video?id=${issued.videoId}`), { status: 200, body: { file: short } })
    }),
    check('any bytes are accepted with 201', async (at) => {
      await at.nonMediaVideo()
    }),
    check('no bytes at all are accepted, and fail with a reason', async (at) => {
      const issued = await at.credentials()
      expectAnswer(await at.upload(issued, undefined, Buffer.alloc(0)), { status: 201 })
      await at.until(
        'Not a media file',
        () => at.video(issued.videoId),
        ({ status, statusReason }) => status === 'Not a media file' && statusReason !== '',
      )
    }),
    check('one policy makes at most one source', async (at) => {
      const issued = await at.credentials()
      expectAnswer(await at.upload(issued), { status: 201 })
      expectAnswer(await at.upload(issued, undefined, Buffer.from('other bytes')), refusedXml(403))
    }),
    ...Object.entries(TAMPERED).map(
      ([name, tamper]): Check =>
        check(`a form with ${name} is refused with S3’s XML`, async (at) => {
          const issued = await at.credentials()
          expectAnswer(await at.upload({ ...issued, fields: tamper(issued.fields) }), refusedXml(403))
          expectAnswer(await at.api('GET', `/videos/${issued.videoId}`), { status: 200, body: { status: 'PRE-Upload' } })
        }),
    ),
    check('a form without its fields, its file, or that is none is 400 in S3’s XML', async (at) => {
      const issued = await at.credentials()
      expectAnswer(await postParts(at, issued, Object.entries(issued.fields)), refusedXml(400))
      expectAnswer(await post(at, issued, 'multipart/form-data; boundary=x', 'no form'), refusedXml(400))
    }),
    check('a fixed boundary and no final CRLF work', async (at) => {
      const issued = await at.credentials()
      const { type, body } = multipart([...Object.entries(issued.fields), ['success_action_status', '201'], filePart()])
      expectAnswer(await post(at, issued, type, body.subarray(0, -2)), { status: 201 })
    }),
    check('fields that begin with x-ignore- are accepted and ignored', async (at) => {
      expectAnswer(
        await at.upload(await at.credentials(), [
          ['x-ignore-page', 'lesson'],
          ['success_action_status', '201'],
        ]),
        { status: 201 },
      )
    }),
    check('a body that comes byte by byte works', async (at) => {
      const issued = await at.credentials()
      const { type, body } = multipart([...Object.entries(issued.fields), ['success_action_status', '201'], filePart()])
      const headers: [string, string][] = [['Content-Type', type]]
      const answer = await at.send({ method: 'POST', url: issued.uploadLink, headers, body, byteByByte: true })
      expectAnswer(answer, { status: 201 })
    }),
    check('CORS is open to any origin', async (at) => {
      const issued = await at.credentials()
      const preflight = await at.send({
        method: 'OPTIONS',
        url: issued.uploadLink,
        headers: [
          ['Origin', 'https://site.example'],
          ['Access-Control-Request-Method', 'POST'],
        ],
      })
      const open = { 'access-control-allow-origin': '*' }
      expectAnswer(preflight, { status: 204, headers: { ...open, 'access-control-allow-methods': /POST/ } })
      expectAnswer(await at.upload(issued), { status: 201, headers: open })
    }),
    check('the earlier interface finds the file by its name', async (at) => {
      const issued = await at.credentials()
      const fileName = `${at.titlePrefix}-by-name.mp4`
      expectAnswer(
        await postParts(at, issued, [
          ...Object.entries(issued.fields),
          ['success_action_status', '201'],
          filePart(NOT_MEDIA, fileName),
        ]),
        { status: 201 },
      )
      const answer = await at.v2(`/videos?${new URLSearchParams({ 'search[file]': fileName })}`)
      expectAnswer(answer, { status: 200, body: inOrder({ id: issued.videoId, file: fileName }) })
    }),
  ],
}
