import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { createOwner, type Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

// Options that OTPs have unless they set their own (docs/embedding.md, "Defaults").

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
let video: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  owner = reelgate.owner
  video = reelgate.videoId
})
afterAll(() => reelgate.remove())
beforeEach(async () => {
  await setDefaults({})
  await setDefaults({}, video)
  await allowRemoval(false)
})

const pathOf = (videoId?: string) => (videoId === undefined ? '/api/otp-defaults' : `/api/videos/${videoId}/otp-defaults`)

async function setDefaults(options: object, videoId?: string, eachOtpNeeds?: string[]): Promise<void> {
  const answer = await owner.call('PUT', pathOf(videoId), { body: options })
  expect([answer.status, await answer.json()]).toEqual([200, { ...options, ...(eachOtpNeeds && { eachOtpNeeds }) }])
}

async function allowRemoval(otpDefaultsRemovable: boolean): Promise<void> {
  await command('account set', { account: await firstAccount(), otpDefaultsRemovable })
}

async function firstAccount(): Promise<string> {
  const [account] = (await command('account list', {})) as { id: string }[]
  return account?.id ?? ''
}

const command = (name: Parameters<typeof sendCommand>[1], args: object) =>
  sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)

/** What an OTP has become: its texts, rules, seconds, kbit/s and streams. */
async function issued(options: Record<string, unknown> = {}) {
  const otp = await owner.issueOtp(video, options)
  type Row = { watermarks: string; rules: string | null; ttl: number; kbps: number | null; streams: number | null }
  const [row] = readRows<Row>(
    reelgate,
    'select watermarks, rules, expires_at_s - issued_at_s as ttl, forced_bitrate_kbps as kbps, stream_limit as streams from otp where hash = ?',
    createHash('sha256').update(otp).digest(),
  )
  if (!row) throw new Error('the OTP has no row')
  const texts = (JSON.parse(row.watermarks) as { text: string }[]).map(({ text }) => text)
  return { texts, rules: JSON.parse(row.rules ?? '{}'), ttl: row.ttl, kbps: row.kbps, streams: row.streams }
}

const text = (words: string) => [{ type: 'rtext', text: words }]

test('without defaults an OTP has what it sets, and nothing else', async () => {
  expect(await issued()).toEqual({ texts: [], rules: {}, ttl: 21_600, kbps: null, streams: null })
})

test('an OTP has the defaults of its account, those of its video go before them, and its own before all, each option by itself', async () => {
  const ofAccount = {
    annotate: JSON.stringify(text('{email} of the account')),
    whitelisthref: 'account.example',
    ipGeo: { block: ['KP'] },
    ttl: 600,
    forcedBitrate: '800',
  }
  await setDefaults(ofAccount, undefined, ['viewer.email'])
  expect(await issued({ viewer: { email: 'ann@example.org' } })).toEqual({
    texts: ['ann@example.org of the account'],
    rules: { whitelist: { host: 'account.example' }, ipGeo: { block: ['KP'] } },
    ttl: 600,
    kbps: 800,
    streams: null,
  })
  await setDefaults({ annotate: text('of the video'), ttl: 300, streamLimit: 2 }, video)
  expect(await issued({ userId: 'ann', whitelisthref: 'own.example' })).toEqual({
    texts: ['of the video'],
    rules: { whitelist: { host: 'own.example' }, ipGeo: { block: ['KP'] } },
    ttl: 300,
    kbps: 800,
    streams: 2,
  })
  expect(await issued({ annotate: text('own'), ttl: 5, forcedBitrate: 0 })).toMatchObject({
    texts: ['own'],
    ttl: 5,
    kbps: 0,
    streams: null,
  })
})

test('both interfaces apply them', async () => {
  await setDefaults({ ttl: 77 })
  const body = new URLSearchParams({ clientSecretKey: owner.apiKey })
  const answer = await fetch(`${reelgate.url}/v2/otp?video=${video}`, { method: 'POST', body })
  const { otp } = (await answer.json()) as { otp: string }
  const sql = 'select expires_at_s - issued_at_s as ttl from otp where hash = ?'
  expect(readRows(reelgate, sql, createHash('sha256').update(otp).digest())).toEqual([{ ttl: 77 }])
})

describe('O18: a watermark that would come out without its viewer', () => {
  const ask = async (options: object) => {
    const answer = await owner.call('POST', `/api/videos/${video}/otp`, { body: options })
    return { status: answer.status, message: ((await answer.json()) as { message?: string }).message }
  }
  const askV2 = async () => {
    const body = new URLSearchParams({ clientSecretKey: owner.apiKey })
    return (await fetch(`${reelgate.url}/v2/otp?video=${video}`, { method: 'POST', body })).status
  }

  test.each([
    ['{email}', {}, ['viewer.email']],
    ['{email}', { viewer: { name: 'Ann' } }, ['viewer.email']],
    ['{email}', { viewer: { email: ' \u200b\u3164' } }, ['viewer.email']],
    ['Lent to {name}, {id}', { viewer: { email: 'ann@example.org' } }, ['userId', 'viewer.name']],
    ['{id} at {ip}', {}, ['userId']],
  ])('by default, such as “%s” with %j, is refused with what is missing', async (words, options, missing) => {
    await setDefaults({ annotate: text('fixed') }, video) // goes before the account's
    await setDefaults({ annotate: text(words) }, undefined, expect.arrayContaining(missing))
    expect(await ask(options)).toMatchObject({ status: 200 })
    await setDefaults({}, video)
    const refused = { status: 400, message: expect.stringMatching(/^annotate /) }
    expect(await ask(options)).toEqual(refused)
    for (const name of missing) expect((await ask(options)).message).toContain(name)
    expect(await askV2()).toBe(400)
    expect(await ask({ ...options, annotate: text('its own') })).toMatchObject({ status: 200 })
    const full = { userId: 'ann', viewer: { name: 'Ann', email: 'ann@example.org' } }
    expect(await ask(full)).toMatchObject({ status: 200 })
  })

  test('of the OTP itself is refused, too', async () => {
    expect(await ask({ annotate: text('{name}') })).toMatchObject({
      status: 400,
      message: expect.stringContaining('viewer.name'),
    })
  })

  test('never depends on the address and the day, which the server knows', async () => {
    await setDefaults({ annotate: text('{ip} {date}') })
    expect(await ask({})).toMatchObject({ status: 200 })
  })

  test('is named when the default is saved, for an account and a video', async () => {
    const marks = [...text('{name} {ip}'), { type: 'text', text: '{id}' }, ...text('{name}')]
    await setDefaults({ annotate: marks }, undefined, ['userId', 'viewer.name'])
    await setDefaults({ annotate: JSON.stringify(text('{email}')) }, video, ['viewer.email'])
  })
})

describe('an empty option', () => {
  const EMPTY = { annotate: '[]', whitelisthref: '', ipGeo: '{}', ipGeoRules: [], ttl: '' }
  beforeEach(async () => {
    await setDefaults({ annotate: text('default'), whitelisthref: 'a.example', ipGeo: { block: ['KP'] }, ttl: 60 })
  })

  test('does not remove a default', async () => {
    const expected = { texts: ['default'], rules: { whitelist: { host: 'a.example' }, ipGeo: { block: ['KP'] } }, ttl: 60 }
    expect(await issued(EMPTY)).toMatchObject(expected)
    expect(await issued({ annotate: null, whitelisthref: null })).toMatchObject(expected)
  })

  test('removes watermark and whitelist where the account allows it, and nothing else', async () => {
    await allowRemoval(true)
    expect(await issued(EMPTY)).toMatchObject({ texts: [], rules: { ipGeo: { block: ['KP'] } }, ttl: 60 })
    expect((await issued(EMPTY)).rules).not.toHaveProperty('whitelist')
    expect(await issued({ annotate: null, whitelisthref: null })).toMatchObject({ texts: ['default'] })
    await setDefaults({ annotate: text('of the video') }, video)
    expect(await issued({ annotate: '' })).toMatchObject({ texts: [], rules: { whitelist: { host: 'a.example' } } })
  })
})

test('a video says its rules; another one is not affected', async () => {
  const rules = [{ action: true, ipSet: [], countrySet: ['DE'] }]
  await setDefaults({ ipGeoRules: rules, whitelisthref: 'v.example' }, video)
  expect(await owner.video(video)).toMatchObject({ ipGeoRules: JSON.stringify(rules), whitelisthref: 'v.example' })
  const { videoId } = await owner.credentials('another')
  expect(await owner.video(videoId)).toMatchObject({ ipGeoRules: '', whitelisthref: '' })
})

test('they are read as they were sent', async () => {
  const ofAccount = { annotate: "[{'type':'rtext','text':'{name}'}]", ttl: '60' }
  await setDefaults(ofAccount, undefined, ['viewer.name'])
  await setDefaults({ streamLimit: 3 }, video)
  expect(await (await owner.call('GET', pathOf())).json()).toEqual(ofAccount)
  expect(await (await owner.call('GET', pathOf(video))).json()).toEqual({ streamLimit: 3 })
})

test.each([
  ['an option that has no default', undefined, { userId: 'ann' }, /no default "userId" of an account/],
  ['a stream limit of an account, which is a setting', undefined, { streamLimit: 2 }, /no default "streamLimit" of an account/],
  ['a misspelled option', 'video', { anotate: [] }, /no default "anotate" of a video/],
  ['a watermark that cannot be read', undefined, { annotate: '{' }, /annotate is not JSON/],
  ['an expression that takes exponential time elsewhere', 'video', { whitelisthref: '(?=a)b' }, /linear time/],
  ['a rule without a country', undefined, { ipGeo: { allow: ['Germany'] } }, /neither a country/],
  ['no seconds', undefined, { ttl: 0 }, /ttl must be/],
  ['O19: 68 years', undefined, { ttl: 2 ** 31 - 1 }, /^ttl .* 31536000/],
  ['O19: a text that is longer than it may be with a long name', 'video', { annotate: text('{name}'.repeat(4)) }, /500/],
])('%s is refused, and the defaults stay', async (_, of, options, message) => {
  const videoId = of === 'video' ? video : undefined
  await setDefaults({ ttl: 60 }, videoId)
  const answer = await owner.call('PUT', pathOf(videoId), { body: options })
  expect([answer.status, await answer.json()]).toEqual([
    400,
    expect.objectContaining({ message: expect.stringMatching(message) }),
  ])
  expect(await (await owner.call('GET', pathOf(videoId))).json()).toEqual({ ttl: 60 })
})

test('O19: what a GET has returned can be changed and sent back, also of defaults that an older version saved', async () => {
  const stored = { annotate: text('{name}'.repeat(4)), ttl: 60 }
  changeRows(reelgate, 'update account set otp_defaults = ?', JSON.stringify(stored))
  const read = (await (await owner.call('GET', pathOf())).json()) as object
  expect(read).toEqual({ ...stored, eachOtpRefused: expect.stringContaining('500') })
  const shortened = { ...stored, annotate: text('{name}') }
  const saved = await owner.call('PUT', pathOf(), { body: { ...read, ...shortened } })
  expect([saved.status, await saved.json()]).toEqual([200, { ...shortened, eachOtpNeeds: ['viewer.name'] }])
  await setDefaults({ ...shortened, eachOtpNeeds: ['viewer.name'] })
  expect(await (await owner.call('GET', pathOf())).json()).toEqual(shortened)
})

test('rules that are too long together are refused with the OTP', async () => {
  await setDefaults({ ipGeo: { block: Array.from({ length: 1_000 }, (_, n) => `10.0.${n >> 8}.${n & 255}`) } })
  const ipGeoRules = [{ action: true, ipSet: Array.from({ length: 500 }, (_, n) => `10.1.${n >> 8}.${n & 255}`), countrySet: [] }]
  const answer = await owner.call('POST', `/api/videos/${video}/otp`, { body: { ipGeoRules } })
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('longer than')])
})

test('another account neither sees nor changes them', async () => {
  await setDefaults({ ttl: 60 }, video)
  const other = (await command('account create', { name: 'Other', mayUpload: true, mayImport: true })) as { apiKey: string }
  const stranger = createOwner(reelgate.url, other.apiKey)
  expect((await stranger.call('GET', pathOf(video))).status).toBe(404)
  expect((await stranger.call('PUT', pathOf(video), { body: { ttl: 1 } })).status).toBe(404)
  expect(await issued()).toMatchObject({ ttl: 60 })
})

test('a rule by default refuses a viewer at another place', async () => {
  await setDefaults({ ipGeo: { allow: ['192.0.2.7'] } })
  const refused = await reelgate.newViewer().redeem(await owner.issueOtp(video))
  expect(refused).toMatchObject({ status: 403, body: { code: 'place-not-allowed' } })
  await setDefaults({ ipGeo: { allow: ['127.0.0.1'] } }, video)
  expect((await reelgate.newViewer().redeem(await owner.issueOtp(video))).playing).toBe(true)
})

test('U33: one call sets the defaults of many videos, of all or of none, and says what each OTP needs from then on', async () => {
  const { videoId: second } = await owner.credentials('Another')
  const options = { annotate: [{ type: 'rtext', text: '{email}' }], streamLimit: 2 }
  const set = (videos: string[]) => owner.call('POST', '/api/videos/otp-defaults', { body: { videos, options } })
  expect((await set([video, 'f'.repeat(32)])).status).toBe(404)
  expect(await (await owner.call('GET', pathOf(video))).json()).toEqual({})
  const answer = await set([video, second, second])
  expect([answer.status, await answer.json()]).toEqual([200, { message: 'Changed', count: 2, eachOtpNeeds: ['viewer.email'] }])
  for (const id of [video, second]) expect(await (await owner.call('GET', pathOf(id))).json()).toEqual(options)
})
