import { check, type Section } from '../check.ts'
import { expectAnswer } from '../expect.ts'
import { anyText, exactly, otp } from '../shape.ts'
import { refused, refusedV2 } from './errors.ts'

const WATERMARK = { type: 'rtext', text: 'A viewer', alpha: '0.6', color: '0xFF0000', size: '15', interval: '5000' }

/** Values that each option takes, as JSON has them; both interfaces take them, and as a form too. */
const ACCEPTED: Record<string, readonly unknown[]> = {
  ttl: [300, '300', 1, 315_360_000],
  annotate: [
    [WATERMARK],
    WATERMARK,
    JSON.stringify([WATERMARK]),
    JSON.stringify([WATERMARK]).replaceAll('"', "'"),
    JSON.stringify([WATERMARK]).replace(/"([^"]*)"/g, '“$1”'),
    JSON.stringify([WATERMARK]).replace(/"([^"]*)"/g, '‘$1’'),
    "[{'type':'rtext','text':'Sean O'Brien'}]",
    '[{‘type’:‘rtext’,‘text’:‘Sean O’Brien’}]',
    [{ type: 'text', text: 'fixed', alpha: 0.5, x: 10, y: '10', color: 255, size: 12, skip: 100 }],
    '',
  ],
  whitelisthref: ['example.org', 'sub.example.org', '^(www\\.)?example\\.(org|net)$', ''],
  ipGeo: [{ allow: ['DE', '192.0.2.1'] }, { block: [['DE', 'FR']], except: ['192.0.2.1'] }, '{"allow":["DE"]}'],
  ipGeoRules: [
    [
      { action: false, ipSet: [], countrySet: [] },
      { action: 'true', ipSet: ['192.0.2.0/24', '2001:db8::/32'], countrySet: ['DE'] },
    ],
    '[{"action":"true","ipSet":[],"countrySet":["DE"]}]',
    [{ actions: true, ipSet: [], countrySet: ['DE'] }],
  ],
  licenseRules: [{ canPersist: true, rentalDuration: 3600 }, '{"canPersist":false,"rentalDuration":60}'],
  userId: ['viewer_1-A', 'x'.repeat(36)],
  viewer: [{ name: 'A', email: 'a@example.org' }, { name: 'x'.repeat(128) }],
  forcedBitrate: [400, '400', 0],
  anything: ['else', { at: 'all' }],
  // Too short, or too far from any option, to be a misspelling of one.
  tlt: [300],
  annotations: ['x'],
}

const REJECTED: Record<string, readonly unknown[]> = {
  ttl: [0, -1, 1.5, 'soon', {}],
  annotate: ['[{', '[{"type":"rtext"', "not 'json", [{ type: 'rtext' }], [{ type: 'text' }], [{ type: 'image' }]],
  whitelisthref: ['(', 'a'.repeat(100_000)],
  ipGeo: ['no json', { allow: ['Germany'] }],
  ipGeoRules: [
    'no json',
    [{ action: 'perhaps', ipSet: [], countrySet: [] }],
    [{ action: true, ipSet: ['300.0.0.1'], countrySet: [] }],
  ],
  licenseRules: ['no json', [1]],
  userId: ['x'.repeat(37), 'a b', 'ä'],
  streamLimit: [0, 101, 'two'],
  viewer: [{ name: 'x'.repeat(129) }, { email: 5 }],
  forcedBitrate: ['fast', -1],
}

const NEAR_MISSES = [
  ['anotate', 'annotate'],
  ['Whitelisthref', 'whitelisthref'],
  ['ipGeoRule', 'ipGeoRules'],
  ['TTL', 'ttl'],
  ['uesrId', 'userId'],
  ['anntoate', 'annotate'],
  ['streamlimits', 'streamLimit'],
] as const

/** As a form sends it: what is no text becomes JSON. */
const asForm = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

export const otpOptions: Section = {
  section: 5,
  title: 'OTP options',
  checks: [
    ...Object.entries(ACCEPTED).flatMap(([name, values]) => [
      check(`${name} is taken in each of its forms, as JSON`, async (at) => {
        for (const value of values) {
          const answer = await at.api('POST', `/videos/${await at.sharedEmptyVideo()}/otp`, { json: { [name]: value } })
          expectAnswer(answer, { status: 200, body: exactly({ otp, playbackInfo: anyText }) })
        }
      }),
      check(`${name} is taken in each of its forms, in forms of both interfaces`, async (at) => {
        const id = await at.sharedEmptyVideo()
        for (const value of values) {
          const form = { [name]: asForm(value) }
          expectAnswer(await at.api('POST', `/videos/${id}/otp`, { form }), { status: 200 })
          expectAnswer(await at.v2(`/otp?video=${id}`, form), { status: 200, body: exactly({ otp }) })
        }
      }),
    ]),
    ...Object.entries(REJECTED).map(([name, values]) =>
      check(`${name} that is not of its form is 400, and the sentence names it`, async (at) => {
        const id = await at.sharedEmptyVideo()
        for (const value of values) {
          expectAnswer(
            await at.api('POST', `/videos/${id}/otp`, { json: { userId: 'v', [name]: value } }),
            refused(400, new RegExp(name)),
          )
          expectAnswer(await at.v2(`/otp?video=${id}`, { userId: 'v', [name]: asForm(value) }), refusedV2(400, new RegExp(name)))
        }
      }),
    ),
    ...NEAR_MISSES.map(([key, name]) =>
      check(`${key}, which nearly is ${name}, is 400 and the sentence names it`, async (at) => {
        const id = await at.sharedEmptyVideo()
        expectAnswer(await at.api('POST', `/videos/${id}/otp`, { json: { [key]: 'x' } }), refused(400, new RegExp(key)))
        expectAnswer(await at.v2(`/otp?video=${id}`, { [key]: 'x' }), refusedV2(400, new RegExp(key)))
      }),
    ),
    check('JSON under a form’s type or text/plain is read as JSON', async (at) => {
      for (const type of ['application/x-www-form-urlencoded', 'text/plain']) {
        const sending = { headers: [['Content-Type', type]] as [string, string][], body: '{"ttl":"soon"}' }
        expectAnswer(await at.api('POST', `/videos/${await at.sharedEmptyVideo()}/otp`, sending), refused(400, /ttl/))
      }
    }),
    check('fields are read without a Content-Type', async (at) => {
      const path = `/videos/${await at.sharedEmptyVideo()}/otp`
      expectAnswer(await at.api('POST', path, { body: '{"ttl":"soon"}' }), refused(400, /ttl/))
    }),
    check('a form whose field begins with [ is JSON, and no options', async (at) => {
      const headers: [string, string][] = [['Content-Type', 'application/x-www-form-urlencoded']]
      const path = `/videos/${await at.sharedEmptyVideo()}/otp`
      expectAnswer(await at.api('POST', path, { headers, body: '[{"annotate":"[]"}]' }), refused(400))
      expectAnswer(await at.api('POST', path, { headers, body: '[]' }), { status: 200 })
    }),
    check('streamLimit is taken with a userId, 1 to 100', async (at) => {
      for (const streamLimit of [1, '3', 100]) {
        const json = { userId: 'viewer', streamLimit }
        expectAnswer(await at.api('POST', `/videos/${await at.sharedEmptyVideo()}/otp`, { json }), { status: 200 })
      }
    }),
    check('all options together, in a multipart body', async (at) => {
      const parts = Object.entries({
        ttl: '60',
        annotate: JSON.stringify([WATERMARK]),
        userId: 'v',
        streamLimit: '2',
        forcedBitrate: '400',
      })
      expectAnswer(await at.api('POST', `/videos/${await at.sharedEmptyVideo()}/otp`, { parts }), { status: 200 })
    }),
  ],
}
