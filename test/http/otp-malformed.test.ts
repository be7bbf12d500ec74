import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'

// Odd requests for an OTP, to both interfaces alike.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  videoId = (await reelgate.owner.credentials('A video without a file')).videoId
})
afterAll(() => reelgate.remove())

const JSON_TYPE = 'Content-Type: application/json'
const FORM_TYPE = 'Content-Type: application/x-www-form-urlencoded'
const countOtps = () => readRows(reelgate, 'select 1 from otp').length

/** `POST /api/videos/<in the path>/otp` */
const askCurrent = (path: string, body = '{}', type = JSON_TYPE) =>
  sendRaw(reelgate.url, `POST /api/videos${path}`, [`Authorization: Apisecret ${reelgate.owner.apiKey}`, type], body)
/** `POST /v2/otp<query>`, the options with the key. */
const askV2 = (query: string, options = '', type = FORM_TYPE) =>
  sendRaw(
    reelgate.url,
    `POST /v2/otp${query}`,
    [type],
    type === FORM_TYPE
      ? `clientSecretKey=${reelgate.owner.apiKey}${options}`
      : `{"clientSecretKey":"${reelgate.owner.apiKey}"${options}}`,
  )

/** Refused in the words of each interface, and no OTP came of it. */
async function expectRefused(asked: ReturnType<typeof sendRaw>, statuses: number[]): Promise<string> {
  const otpsBefore = countOtps()
  const { status, headers, text } = await asked
  expect(statuses).toContain(status)
  expect(headers.get('content-type')).toMatch(/^application\/json/)
  const body: { message?: string; error?: string; otp?: string } = JSON.parse(text)
  expect(body.otp).toBeUndefined()
  expect(countOtps()).toBe(otpsBefore)
  const sentence = body.message ?? body.error ?? ''
  expect(sentence).toMatch(/^[A-Za-z].{8,}/)
  expect(sentence.length).toBeLessThan(300)
  return sentence
}

describe('O10: a forcedBitrate', () => {
  const ODD = ['-1', '"abc"', '1e309', 'NaN', '1.5', '[]', '[1000]', '["1000"]', '{}', 'true', '"-1"', '"0x10"', '"1e3"', '" 5"']

  test.each(ODD)('of %s is 400 at the current interface', async (value) => {
    await expectRefused(askCurrent(`/${videoId}/otp`, `{"forcedBitrate":${value}}`), [400])
  })

  test.each(ODD)('of %s is 400 at the earlier interface', async (value) => {
    await expectRefused(askV2(`?video=${videoId}`, `,"forcedBitrate":${value}`, JSON_TYPE), [400])
  })

  test.each(['-1', 'abc', '1e309', 'NaN', '1.5', '1000&forcedBitrate=2000', '%2B5'])('of %s in a form is 400', async (value) => {
    await expectRefused(askCurrent(`/${videoId}/otp`, `forcedBitrate=${value}`, FORM_TYPE), [400])
    await expectRefused(askV2(`?video=${videoId}`, `&forcedBitrate=${value}`), [400])
  })

  // The nearest rendition of a ladder is what each of these asks for: test/http/api-otp.test.ts.
  test.each(['0', '1', '9223372036854775808', '18446744073709551616', '1e300'])('of %s is a whole number', async (value) => {
    expect((await askCurrent(`/${videoId}/otp`, `{"forcedBitrate":${value}}`)).status).toBe(200)
    expect((await askV2(`?video=${videoId}`, `,"forcedBitrate":${value}`, JSON_TYPE)).status).toBe(200)
  })
})

describe('O11: the video of an OTP', () => {
  const TEN_KB = 'a'.repeat(10_000)

  test.each([
    ['missing', '//otp'],
    ['blank', '/%20/otp'],
    ['twice', '/ID,ID/otp'],
    ['an array', '/%5B%22ID%22%5D/otp'],
    ['of 10 kB', `/${TEN_KB}/otp`],
    ['with a NUL after it', '/ID%00/otp'],
    ['in capital letters', `/${'A'.repeat(32)}/otp`],
    ['unknown', `/${'0'.repeat(32)}/otp`],
  ])('%s in the path is 404', async (_, path) => {
    await expectRefused(askCurrent(path.replaceAll('ID', videoId)), [404])
  })

  test.each([
    ['missing', ''],
    ['empty', '?video='],
    ['twice', '?video=ID&video=ID'],
    ['an array', '?video[]=ID'],
    ['in the body instead', '?', '&video=ID'],
  ])('%s is 400 at the earlier interface, and says how to name it', async (_, query, options = '') => {
    const sentence = await expectRefused(askV2(query.replaceAll('ID', videoId), options.replaceAll('ID', videoId)), [400])
    expect(sentence).toContain('/v2/otp?video=ID')
  })

  test.each([
    ['of 10 kB', `?video=${TEN_KB}`],
    ['with a NUL after it', '?video=ID%00'],
    ['unknown', `?video=${'0'.repeat(32)}`],
  ])('%s is no video of the earlier interface', async (_, query) => {
    expect(await expectRefused(askV2(query.replaceAll('ID', videoId)), [200])).toBe('No video found')
  })

  test('not ready: the OTP is made, opens nothing yet and is not spent by trying', async () => {
    const { otp }: { otp: string } = JSON.parse((await askCurrent(`/${videoId}/otp`)).text)
    const { otp: second }: { otp: string } = JSON.parse((await askV2(`?video=${videoId}`)).text)
    for (const text of [otp, second]) {
      expect(await reelgate.newViewer().redeem(text)).toMatchObject({ status: 409, body: { code: 'video-not-ready' } })
    }
    expect(readRows(reelgate, 'select 1 from otp where spent_at_s is not null')).toEqual([])
    expect(readRows(reelgate, 'select 1 from playback_session')).toEqual([])
  })

  test('deleted: none is made any more', async () => {
    const { videoId: doomed } = await reelgate.owner.credentials('Doomed')
    await reelgate.owner.delete([doomed])
    await expectRefused(askCurrent(`/${doomed}/otp`), [404])
    await expectRefused(askV2(`?video=${doomed}`), [200])
  })
})

describe('X06: a viewer that cannot be read', () => {
  test.each(['{bad', '[object Object]', '5', '[]', '"Ann"', '{"name":5}'])(
    'of %s in a form is 400: a watermark would name no viewer',
    async (viewer) => {
      const sentence = await expectRefused(askV2(`?video=${videoId}`, `&viewer=${encodeURIComponent(viewer)}`), [400])
      expect(sentence).toMatch(/viewer must be an object/)
    },
  )
})

describe('O17: a protection that was asked for is never passed over', () => {
  test.each([
    ['anotate', 'annotate'],
    ['Annotate', 'annotate'],
    ['annotat', 'annotate'],
    ['annotaet', 'annotate'],
    ['whitelistHref', 'whitelisthref'],
    ['whitelist_href', 'whitelisthref'],
    ['ipgeo', 'ipGeo'],
    ['ipGeoRule', 'ipGeoRules'],
    ['ip_geo_rules', 'ipGeoRules'],
    ['TTL', 'ttl'],
    ['userid', 'userId'],
    ['streamLimits', 'streamLimit'],
    ['licenceRules', 'licenseRules'],
  ])('%s is 400 and names %s, in both interfaces', async (key, name) => {
    const sentence = `There is no "${key}". Write "${name}", or leave it out.`
    expect(await expectRefused(askCurrent(`/${videoId}/otp`, JSON.stringify({ [key]: 'x' })), [400])).toBe(sentence)
    expect(await expectRefused(askV2(`?video=${videoId}`, `&${key}=x`), [400])).toBe(sentence)
  })

  test.each(['tll', 'tags', 'title', 'video', 'watermark', 'anything', 'geo', 'a'])(
    '%s is another word, and ignored',
    async (key) => {
      expect((await askCurrent(`/${videoId}/otp`, JSON.stringify({ [key]: 'x' }))).status).toBe(200)
      expect((await askV2(`?video=${videoId}`, `&${key}=x`)).status).toBe(200)
    },
  )

  const options = { annotate: [{ type: 'text', text: 'a & b = c' }], whitelisthref: 'example.org', userId: 'reader' }
  const optionsKept = () =>
    readRows(reelgate, 'select user_id, watermarks, rules from otp order by issued_at_s desc, rowid desc limit 1')[0]

  test.each([
    ['a form', FORM_TYPE, JSON.stringify(options)],
    ['a form, indented', FORM_TYPE, ` \n${JSON.stringify(options, null, 2)}`],
    ['a form, encoded', FORM_TYPE, `${encodeURIComponent(JSON.stringify(options))}=`],
    ['text', 'Content-Type: text/plain;charset=UTF-8', JSON.stringify(options)],
    ['nothing', 'Accept: */*', JSON.stringify(options)],
  ])('JSON under the type of %s is read as JSON', async (_, type, body) => {
    expect((await askCurrent(`/${videoId}/otp`, body, type)).status).toBe(200)
    expect(optionsKept()).toMatchObject({
      user_id: 'reader',
      watermarks: expect.stringContaining('a & b = c'),
      rules: expect.stringContaining('example.org'),
    })
    const asV2 = JSON.stringify({ clientSecretKey: reelgate.owner.apiKey, ...options, userId: 'reader2' })
    const answer = await sendRaw(
      reelgate.url,
      `POST /v2/otp?video=${videoId}`,
      [type],
      type === FORM_TYPE && body.endsWith('=') ? `${encodeURIComponent(asV2)}=` : asV2,
    )
    expect(answer.status).toBe(200)
    expect(optionsKept()).toMatchObject({ user_id: 'reader2', rules: expect.stringContaining('example.org') })
  })

  test.each(['{"annotate":[{"type":"text"', '{annotate}', '[{"type":"text"}'])(
    '%s under a form’s type is broken JSON',
    async (body) => {
      await expectRefused(askCurrent(`/${videoId}/otp`, body, FORM_TYPE), [400])
    },
  )
})

test('licenseRules are at most 4 kB, and rentalDuration is not below 0', async () => {
  const rules = (licenseRules: object) => askCurrent(`/${videoId}/otp`, JSON.stringify({ licenseRules }))
  expect((await rules({ note: 'x'.repeat(4000), rentalDuration: 0 })).status).toBe(200)
  expect(await expectRefused(rules({ note: 'x'.repeat(4090) }), [400])).toContain('4096 bytes')
  for (const rentalDuration of [-1, '-1', -0.5]) await expectRefused(rules({ rentalDuration }), [400])
})

test.each(['with', 'without'])('X15: JSON nested 5 000 deep is 400, %s Idempotency-Key', async (how) => {
  const line = how === 'with' ? ['Idempotency-Key: deep'] : []
  for (const deep of [`${'['.repeat(5000)}${']'.repeat(5000)}`, `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`]) {
    const lines = [`Authorization: Apisecret ${reelgate.owner.apiKey}`, JSON_TYPE, ...line]
    const asked = sendRaw(reelgate.url, `POST /api/videos/${videoId}/otp`, lines, `{"viewer":${deep}}`)
    expect(await expectRefused(asked, [400])).toContain('nested more than 64 deep')
  }
  const brackets = JSON.stringify({ note: '[{"'.repeat(500), other: '\\"[[['.repeat(99) })
  expect((await askCurrent(`/${videoId}/otp`, brackets)).status).toBe(200)
})
