import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'

// Odd requests for an OTP, to both interfaces alike.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  videoId = (await reelgate.owner.credentials('A film that nobody has sent yet')).videoId
})
afterAll(() => reelgate.remove())

const JSON_TYPE = 'Content-Type: application/json'
const FORM_TYPE = 'Content-Type: application/x-www-form-urlencoded'
const countOtps = () => readRows(reelgate, 'select 1 from otp').length

/** `POST /api/videos/<in the path>/otp` */
const askCurrent = (path: string, body = '{}', type = JSON_TYPE) =>
  sendRaw(reelgate.url, `POST /api/videos${path}`, [`Authorization: Apisecret ${reelgate.owner.apiKey}`, type], body)
/** `POST /v2/otp<query>`, the options beside the key. */
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

  // The nearest rendition of a ladder is what each of these asks for: test/http/current-otp.test.ts.
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
    'of %s in a form is 400: a mark would name nobody',
    async (viewer) => {
      const sentence = await expectRefused(askV2(`?video=${videoId}`, `&viewer=${encodeURIComponent(viewer)}`), [400])
      expect(sentence).toMatch(/viewer is an object/)
    },
  )
})
