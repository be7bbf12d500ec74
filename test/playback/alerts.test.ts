import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import type { Viewer } from '../viewer.ts'
import { type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'
import { makeCountries } from './mmdb.ts'
import { stretchVideo } from './stretched-video.ts'

// An owner is notified of suspicious playback, and lists it: docs/operations.md, "Suspicious sessions".

let folder: string
let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  receivers = await startReceivers()
  folder = await mkdtemp(join(tmpdir(), 'reelgate-alerts-'))
  const countries = join(folder, 'countries.mmdb')
  await writeFile(countries, makeCountries({ '80.0.0.0/8': 'DE', '90.0.0.0/8': 'FR', '91.0.0.0/8': 'CH' }))
  const env = {
    REELGATE_OUTBOUND_ALLOW: receivers.host,
    REELGATE_TRUSTED_PROXIES: '127.0.0.1',
    REELGATE_COUNTRIES: countries,
    REELGATE_LIMITS: 'off',
  }
  reelgate = await startSharedReelgate({ video: await makeVideo(), env })
  stretchVideo(reelgate, 3600)
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
  await rm(folder, { recursive: true })
})

type Alert = {
  id: number
  seen: boolean
  cause: string
  session: string | null
  userId: string | null
  video: string
  count: number
  numbers: object
}
type Page = { rows: Alert[] }

async function list(filter: Record<string, string> = {}, owner = reelgate.owner): Promise<Alert[]> {
  const response = await owner.call('GET', `/api/alerts?${new URLSearchParams(filter)}`)
  expect(response.status).toBe(200)
  return ((await response.json()) as Page).rows
}

async function newViewer(options: Record<string, unknown> = {}): Promise<Viewer & { otp: string }> {
  const viewer = reelgate.newViewer()
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, options)
  expect((await viewer.redeem(otp)).playing).toBe(true)
  return Object.assign(viewer, { otp })
}

function viewerAt(address: string): Viewer {
  const viewer = reelgate.newViewer()
  viewer.state.headers['X-Forwarded-For'] = address
  return viewer
}

test('P10: keys that are drawn and not played, and requests that come too early, are in the list and sent to the webhook', async () => {
  const receiver = receivers.newReceiver()
  await webhooksOf(reelgate.owner).create(receiver.url, 'session:suspicious')
  const [first, second] = [await newViewer({ userId: 'ann' }), await newViewer({ userId: 'ann' })]
  for (const [viewer, windows] of [
    [first, 50],
    [second, 26],
  ] as const)
    for (let window = 0; window < windows; window++) expect((await viewer.key(window)).status).toBe(200)
  const alert = { cause: 'keys-drawn', session: second.state.session, userId: 'ann', numbers: { drawnS: 912, playedS: 0 } }
  const title = expect.any(String)
  const video = { video: reelgate.videoId, title, videos: [{ id: reelgate.videoId, title }] }
  const listed = { id: expect.any(Number), ...alert, ...video, count: 1, at: expect.stringMatching(/^20\d\d-.*Z$/), seen: false }
  await expect.poll(() => list({ userId: 'ann' })).toEqual([listed])

  let window = 50
  for (let refusals = 0; refusals < 50; ) {
    if ((await first.key(window)).status === 429) refusals++
    else window++
  }
  const early = { cause: 'key-pace-ignored', session: first.state.session, userId: 'ann', numbers: { earlyRequests: 20 } }
  await expect.poll(() => list({ cause: 'key-pace-ignored' })).toMatchObject([early])

  const received = await receiver.until(2)
  expect(received.map(({ event }) => [event.event, event.payload])).toMatchObject([
    ['session:suspicious', { ...alert, id: reelgate.videoId, status: 'ready' }],
    ['session:suspicious', early],
  ])
  for (const { body } of received)
    for (const secret of [first.otp, second.otp, reelgate.owner.apiKey, first.state.nonce]) expect(body).not.toContain(secret)

  const sessions = await (await reelgate.owner.call('GET', '/api/sessions?userId=ann')).json()
  const { session } = second.state
  expect(sessions).toMatchObject({
    rows: expect.arrayContaining([expect.objectContaining({ session, drawnS: 312, playedS: 0 })]),
  })
})

test.each([
  ['three-countries', ['80.1.1.1', '90.1.1.1', '91.1.1.1'], { prefixes: 3, countries: 3 }],
  ['five-prefixes', ['80.1.1.1', '80.1.2.1', '80.1.3.1', '80.1.4.1', '80.1.5.1'], { prefixes: 5, countries: 1 }],
])('one userId from %s is in the list', async (userId, addresses, numbers) => {
  for (const address of addresses) {
    const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId })
    expect((await viewerAt(address).redeem(otp)).playing).toBe(true)
  }
  await expect.poll(() => list({ userId })).toMatchObject([{ cause: 'many-places', count: 1, numbers }])
})

test('L06: a reused OTP and a refusal by a rule are in the list with the response that refuses them', async () => {
  const receiver = receivers.newReceiver()
  await webhooksOf(reelgate.owner).create(receiver.url, 'session:suspicious')
  const viewer = await newViewer({ userId: 'ben' })
  expect((await viewerAt('80.1.1.1').redeem(viewer.otp)).body).toMatchObject({ code: 'otp-used' })
  const numbers = { firstAddress: '127.0.0.1', secondAddress: '80.1.1.1' }
  const { session } = viewer.state
  expect(await list({ userId: 'ben' })).toMatchObject([{ cause: 'otp-reused', session, count: 1, numbers }])

  for (let attempt = 1; attempt <= 3; attempt++) {
    const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'carl', ipGeo: { block: ['FR'] } })
    expect((await viewerAt('90.1.1.1').redeem(otp)).body).toMatchObject({ code: 'place-not-allowed' })
    const refused = { cause: 'rule-refused', session: null, count: attempt, numbers: { rule: 'ipGeo.block' } }
    expect(await list({ userId: 'carl' })).toMatchObject([refused])
  }
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'dora', whitelisthref: 'example.org' })
  const elsewhere = reelgate.newViewer()
  await elsewhere.openPage('', { referer: 'https://another.example/' })
  expect((await elsewhere.redeem(otp)).body).toMatchObject({ code: 'site-not-allowed' })
  expect(await list({ userId: 'dora' })).toMatchObject([{ cause: 'rule-refused', numbers: { rule: 'whitelisthref' } }])
  const received = await receiver.until(3)
  expect(received.map(({ event }) => [event.payload.cause, event.payload.userId])).toEqual([
    ['otp-reused', 'ben'],
    ['rule-refused', 'carl'],
    ['rule-refused', 'dora'],
  ])
  for (const { body } of received) expect(body).not.toContain(viewer.otp)
})

test('a viewer who plays what is drawn raises no alert', async () => {
  const viewer = await newViewer({ userId: 'emil' })
  const beat = (positionS: number) =>
    viewer.call('beat', undefined, JSON.stringify({ state: 'playing', positionS, rate: 1, bufferS: 5 }))
  for (let window = 0; window < 20; window++) {
    await viewer.key(window)
    await beat(12 * window)
  }
  await viewer.call('leave', undefined, '{}')
  expect(await list({ userId: 'emil' })).toEqual([])
})

test('the list is read in pages, each alert once, the newest first', async () => {
  const owner = reelgate.owner
  const all = await list()
  expect(all.length).toBeGreaterThan(4)
  const paged: Alert[] = []
  for (let path: string | undefined = '/api/alerts?limit=2'; path; ) {
    const response: Response = await owner.call('GET', path)
    paged.push(...((await response.json()) as Page).rows)
    path = /<[^>]*(\/api\/[^>]*)>; rel="next"/.exec(response.headers.get('Link') ?? '')?.[1]
  }
  expect(paged).toEqual(all)
  for (const query of ['cause=nothing', 'after=1', 'userid=ann']) {
    const response = await owner.call('GET', `/api/alerts?${query}`)
    expect([query, response.status]).toEqual([query, 400])
  }
})

test('another account reads no alert of this one', async () => {
  const other: Owner = await reelgate.newOwner('Another owner')
  expect(await list({}, other)).toEqual([])
  expect(await list({ userId: 'ben' }, other)).toEqual([])
})

test('the command line lists alerts, too', async () => {
  const listed = await reelgate.cli('alert', 'list', 'owner', '--user-id', 'ben', '--cause', 'otp-reused', '--json')
  expect(JSON.parse(listed.stdout)).toMatchObject([{ cause: 'otp-reused', userId: 'ben', occurrenceCount: 1 }])
  expect((await reelgate.cli('alert', 'list', 'owner', '--cause', 'nothing')).code).toBe(2)
})

test('an alert that was marked as seen is, with all older ones; newer ones and those of other accounts are not', async () => {
  for (const userId of ['ida', 'jon', 'kim']) {
    const viewer = await newViewer({ userId })
    expect((await viewerAt('80.1.1.1').redeem(viewer.otp)).body).toMatchObject({ code: 'otp-used' })
  }
  const idOf = async (userId: string) => (await list({ userId }))[0]?.id
  const other = await reelgate.newOwner('the other account')
  const mark = async (owner: Owner) => (await owner.call('PUT', '/api/alerts/seen', { body: { upTo: await idOf('jon') } })).status
  expect(await mark(other)).toBe(200)
  expect((await list({ userId: 'jon' }))[0]?.seen).toBe(false)
  expect(await mark(reelgate.owner)).toBe(200)
  const seen = await Promise.all(['ida', 'jon', 'kim'].map(async (userId) => (await list({ userId }))[0]?.seen))
  expect(seen).toEqual([true, true, false])
})
