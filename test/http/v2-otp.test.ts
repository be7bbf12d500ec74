import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

// The OTP operation of the earlier interface: wire-contract.md, section 6.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
let key: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  videoId = reelgate.videoId
  key = reelgate.owner.apiKey
})
afterAll(() => reelgate.remove())

const FORM = 'Content-Type: application/x-www-form-urlencoded'
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString()
const post = (target: string, body: string, line = FORM) => sendRaw(reelgate.url, `POST ${target}`, [line], body)
const countOtps = () => readRows(reelgate, 'select 1 from otp').length

const EXACTLY = /^\{"otp":"[A-Za-z0-9]{64}"\}$/

describe('an OTP is exactly {"otp":"…"}, 64 characters from offset 8', () => {
  test.each([
    ['an urlencoded body', () => form({ clientSecretKey: key }), FORM],
    [
      'an urlencoded body with options',
      () => form({ clientSecretKey: key, ttl: '300', annotate: "[{'type':'rtext','text':'x'}]" }),
      FORM,
    ],
    ['a JSON body', () => JSON.stringify({ clientSecretKey: key }), 'Content-Type: application/json'],
    ['a form without a Content-Type', () => form({ clientSecretKey: key }), 'X-Nothing: 1'],
    [
      'a multipart body',
      () => `--b\r\nContent-Disposition: form-data; name="clientSecretKey"\r\n\r\n${key}\r\n--b--\r\n`,
      'Content-Type: multipart/form-data; boundary=b',
    ],
  ])('for %s', async (_, body, line) => {
    const { status, headers, text } = await post(`/v2/otp?video=${videoId}`, body(), line)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^application\/json/)
    expect(text).toMatch(EXACTLY)
    expect((await reelgate.newViewer().redeem(text.slice(8, 72))).playing).toBe(true)
  })

  test.each(['/v2/otp/', '/V2/OTP', '/v2/Otp/', '/V2/otp'])('at %s too', async (path) => {
    const { status, text } = await post(`${path}?video=${videoId}`, form({ clientSecretKey: key }))
    expect(status).toBe(200)
    expect(text).toMatch(EXACTLY)
  })

  test('type=xml gives it as XML', async () => {
    const { status, headers, text } = await post(`/v2/otp?video=${videoId}&type=xml`, form({ clientSecretKey: key }))
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^application\/xml/)
    expect(text).toMatch(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n?<result><otp>[A-Za-z0-9]{64}<\/otp><\/result>$/)
  })

  test('forcedBitrate and annotate are those of the current interface', async () => {
    const { text } = await post(
      `/v2/otp?video=${videoId}`,
      form({ clientSecretKey: key, forcedBitrate: '400', annotate: "[{'type':'text','text':'mine'}]" }),
    )
    const { body } = await reelgate.newViewer().redeem(text.slice(8, 72))
    expect(body.marks).toMatchObject([{ type: 'text', text: 'mine' }])
  })
})

describe('an unknown video is 200 with an error, as clients of this interface expect', () => {
  test.each(['nothing', '%00'])('%s', async (id) => {
    const { status, text } = await post(`/v2/otp?video=${id}`, form({ clientSecretKey: key }))
    expect({ status, text }).toEqual({ status: 200, text: '{"error":"No video found"}' })
  })

  test('in XML', async () => {
    const { status, headers, text } = await post('/v2/otp?video=nothing&type=xml', form({ clientSecretKey: key }))
    expect(status).toBe(200)
    expect(text).toMatch(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n?<result><error>No video found<\/error><\/result>$/)
    expect(headers.get('content-type')).toMatch(/^application\/xml/)
  })
})

test.each(['', '?video=', '?video=a&video=b', '?video[]=a', '?video[x]=a', '?id=a'])(
  'O11: "%s" names no video: 400, and no OTP is made',
  async (query) => {
    const before = countOtps()
    const { status, text } = await post(`/v2/otp${query}`, form({ clientSecretKey: key }))
    expect({ status, body: JSON.parse(text) }).toEqual({ status: 400, body: { error: expect.any(String) } })
    expect(countOtps()).toBe(before)
  },
)

describe('the key', () => {
  const refused = async (target: string, body: string, line = FORM) => {
    const before = countOtps()
    const { status, text } = await post(target, body, line)
    expect({ status, body: JSON.parse(text) }).toEqual({ status: 401, body: { error: expect.any(String) } })
    expect(countOtps()).toBe(before)
  }

  test('a wrong one is 401, in XML where XML was asked for', async () => {
    await refused(`/v2/otp?video=${videoId}`, form({ clientSecretKey: 'x'.repeat(64) }))
    const { status, text } = await post(`/v2/otp?video=${videoId}&type=xml`, form({ clientSecretKey: 'x'.repeat(64) }))
    expect(status).toBe(401)
    expect(text).toMatch(/^<\?xml [^>]*>\n?<result><error>[^<]+<\/error><\/result>$/)
  })

  test('a wrong one reveals nothing about videos', async () => {
    const answers = await Promise.all(
      [videoId, 'nothing', ''].map((id) => post(`/v2/otp?video=${id}`, form({ clientSecretKey: 'x'.repeat(64) }))),
    )
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  })

  test('K05: in the query string it is 401, and no log has it', async () => {
    await refused(`/v2/otp?video=${videoId}&clientSecretKey=${key}`, '')
    await refused(`/v2/otp?video=${videoId}&clientSecretKey=${key}`, form({ clientSecretKey: 'x'.repeat(64) }))
    expect(reelgate.output()).not.toContain(key)
  })

  test('the header of the current interface opens nothing here, nor the body there', async () => {
    const header = `Authorization: Apisecret ${key}`
    expect((await sendRaw(reelgate.url, `POST /v2/otp?video=${videoId}`, [header, FORM])).status).toBe(401)
    expect((await post(`/api/videos/${videoId}/otp`, form({ clientSecretKey: key }))).status).toBe(401)
  })

  const json = (value: unknown) => JSON.stringify({ clientSecretKey: value })
  test.each<[string, () => string, 'form' | 'json']>([
    ['twice', () => `clientSecretKey=${key}&clientSecretKey=${key}`, 'form'],
    ['twice, a wrong one first', () => `clientSecretKey=x&clientSecretKey=${key}`, 'form'],
    ['as a list of a form', () => `clientSecretKey[]=${key}`, 'form'],
    ['as a member of a form', () => `clientSecretKey[0]=${key}`, 'form'],
    ['in another letter case', () => `clientsecretkey=${key}`, 'form'],
    ['empty', () => 'clientSecretKey=', 'form'],
    ['not at all', () => '', 'form'],
    ['with a blank', () => `clientSecretKey=+${key}`, 'form'],
    ['with a NUL', () => `clientSecretKey=${key}%00`, 'form'],
    ['as an operator', () => json({ $ne: 1 }), 'json'],
    ['as a list', () => json([key]), 'json'],
    ['as a number', () => json(1), 'json'],
    ['as true', () => json(true), 'json'],
    ['as null', () => json(null), 'json'],
    ['as an object that says it is a text', () => json({ toString: key, length: 64 }), 'json'],
  ])('K06: %s is 401', async (_, body, kind) => {
    await refused(`/v2/otp?video=${videoId}`, body(), kind === 'json' ? 'Content-Type: application/json' : FORM)
  })

  test('K06: as a list of JSON, or as the name that would change every object, is refused', async () => {
    for (const body of [`[{"clientSecretKey":"${key}"}]`, `{"__proto__":{"clientSecretKey":"${key}"}}`]) {
      const { status } = await post(`/v2/otp?video=${videoId}`, body, 'Content-Type: application/json')
      expect([400, 401]).toContain(status)
    }
  })

  test('revoked is 401; without the permission it is 403', async () => {
    const account: { accountId: string; apiKey: string } = JSON.parse(
      (await reelgate.cli('account', 'create', 'short-lived', '--json')).stdout,
    )
    const made = await reelgate.cli('key', 'create', account.accountId, '--permission', 'viewer', '--json')
    const reader: { keyId: string; apiKey: string } = JSON.parse(made.stdout)
    const forbidden = await post(`/v2/otp?video=${videoId}`, form({ clientSecretKey: reader.apiKey }))
    expect({ status: forbidden.status, body: JSON.parse(forbidden.text) }).toEqual({
      status: 403,
      body: { error: expect.any(String) },
    })
    await reelgate.cli('key', 'revoke', reader.keyId)
    await refused(`/v2/otp?video=${videoId}`, form({ clientSecretKey: reader.apiKey }))
  })
})

test('GET issues nothing', async () => {
  const before = countOtps()
  expect((await sendRaw(reelgate.url, `GET /v2/otp?video=${videoId}`, [])).status).toBe(405)
  expect(countOtps()).toBe(before)
})
