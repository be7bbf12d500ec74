import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { sendFrom, type Viewer } from '../viewer.ts'
import { makeCountries } from './mmdb.ts'

// What an OTP's rules do to the page, the redeem and every request after it (playback-protocol.md, sections 1, 2, 4 and 9). A proxy
// in front names the viewer's address.

let reelgate: Reelgate & { remove(): Promise<void> }
let video: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_TRUSTED_PROXIES: '127.0.0.1' }, video: await makeVideo() })
  video = reelgate.videoId
})
afterAll(() => reelgate.remove())

const IN_GERMANY = '80.128.0.1'
const IN_JAPAN = '133.11.0.1'
const NOWHERE = '10.0.0.1'

function viewerAt(address: string): Viewer {
  const viewer = reelgate.newViewer()
  goTo(viewer, address)
  return viewer
}

function goTo(viewer: Viewer, address: string) {
  viewer.state.headers['X-Forwarded-For'] = address
}

const hashOf = (otp: string) => createHash('sha256').update(otp).digest()
const spentAt = (otp: string) =>
  readRows<{ at: number | null }>(reelgate, 'select spent_at_s as at from otp where hash = ?', hashOf(otp))[0]?.at
const attemptsOf = (otp: string) =>
  readRows(
    reelgate,
    'select outcome, rule, address, attempt_count from redeem_attempt where otp_hash = ? order by id',
    hashOf(otp),
  )

/** The player's page as a browser asks for it in a frame of `referer`. */
async function page(query: string, headers: Record<string, string> = {}) {
  const { status, headers: answered, bytes } = await sendFrom('127.0.0.1', `${reelgate.url}/player/${query}`, headers)
  return { status, policy: String(answered['content-security-policy']), html: bytes.toString() }
}
const ancestorsIn = (policy: string) => /frame-ancestors ([^;]*)/.exec(policy)?.[1]

test('a database of countries of the installation’s own is the one that rules are judged by', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-countries-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'countries.mmdb')
  await writeFile(file, makeCountries({ '80.128.0.0/11': 'JP', '133.11.0.0/16': 'DE' })) // the wrong way round
  const own = await startReelgate({
    env: { REELGATE_TRUSTED_PROXIES: '127.0.0.1', REELGATE_COUNTRIES: file },
    video: await makeVideo(),
  })
  const { videoId } = own
  const codeAt = async (address: string) => {
    const viewer = own.newViewer()
    goTo(viewer, address)
    const { playing, body } = await viewer.redeem(await own.owner.issueOtp(videoId, { ipGeo: { allow: ['DE'] } }))
    return playing ? 'plays' : body.code
  }
  expect(await Promise.all([IN_JAPAN, IN_GERMANY, '193.0.6.139'].map(codeAt))).toEqual([
    'plays',
    'place-not-allowed',
    'place-not-allowed', // in the packaged database, not in this one
  ])
})

describe('where the video may be watched', () => {
  const onlyGermany = { ipGeo: { allow: ['DE'] } }

  test('a redeem from elsewhere is refused by the rule that is recorded, and does not spend', async () => {
    const otp = await reelgate.owner.issueOtp(video, onlyGermany)
    const viewer = viewerAt(IN_JAPAN)
    const { status, body } = await viewer.redeem(otp)
    expect({ status, body }).toEqual({
      status: 403,
      body: { code: 'place-not-allowed', message: expect.any(String), requestId: expect.any(String) },
    })
    expect(spentAt(otp)).toBeNull()
    expect((await viewerAt(NOWHERE).redeem(otp)).body.code).toBe('place-not-allowed')
    goTo(viewer, IN_GERMANY)
    expect((await viewer.redeem(otp)).playing).toBe(true)
    expect(attemptsOf(otp)).toEqual([
      { outcome: 'place-not-allowed', rule: 'ipGeo.allow', address: IN_JAPAN, attempt_count: 1 },
      { outcome: 'place-not-allowed', rule: 'ipGeo.allow', address: NOWHERE, attempt_count: 1 },
      { outcome: 'opened', rule: null, address: IN_GERMANY, attempt_count: 1 },
    ])
  })

  test('O13: a viewer who leaves the place gets no key and no playlist there; the session lives on, and plays on back home', async () => {
    const otp = await reelgate.owner.issueOtp(video, onlyGermany)
    const viewer = viewerAt(IN_GERMANY)
    await viewer.redeem(otp)
    expect((await viewer.key(0)).status).toBe(200)
    goTo(viewer, IN_JAPAN)
    const beat = JSON.stringify({ state: 'playing', positionS: 1, rate: 1, bufferS: 1 })
    const asked = [await viewer.key(0), await viewer.call('playlist', 'main'), await viewer.call('beat', undefined, beat)]
    for (const answer of asked)
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([403, 'place-not-allowed'])
    viewer.newPage()
    expect((await viewer.reopen()).body.code).toBe('place-not-allowed')
    goTo(viewer, IN_GERMANY)
    expect((await viewer.reopen()).status).toBe(200)
    expect((await viewer.key(0)).status).toBe(200)
    // Once for the change of address, however often it asked there.
    expect(attemptsOf(otp).slice(1)).toEqual([
      { outcome: 'place-not-allowed', rule: 'ipGeo.allow', address: IN_JAPAN, attempt_count: 1 },
    ])
  })

  test('O13: a viewer who requests from home and from abroad at the same time gets nothing abroad', async () => {
    const viewer = viewerAt(IN_GERMANY)
    await viewer.redeem(await reelgate.owner.issueOtp(video, onlyGermany))
    for (let i = 0; i < 20; i++) {
      goTo(viewer, IN_JAPAN)
      const abroad = viewer.key(0)
      goTo(viewer, IN_GERMANY)
      const home = viewer.key(0)
      expect([(await abroad).status, (await home).status]).toEqual([403, 200])
    }
  })

  test('O13: without rules an address may change; with them, to another allowed one', async () => {
    for (const options of [{}, { ipGeoRules: [{ action: true, ipSet: ['192.0.2.0/24', '2001:db8::/32'] }] }]) {
      const viewer = viewerAt('192.0.2.1')
      await viewer.redeem(await reelgate.owner.issueOtp(video, options))
      goTo(viewer, '2001:db8::1')
      expect((await viewer.key(0)).status).toBe(200)
    }
  })

  test('a refusal by place is no loss of the session that was opened before: the same browser resumes it from an allowed place', async () => {
    const otp = await reelgate.owner.issueOtp(video, onlyGermany)
    const viewer = viewerAt(IN_GERMANY)
    await viewer.redeem(otp)
    const { session } = viewer.state
    goTo(viewer, IN_JAPAN)
    viewer.newPage()
    expect((await viewer.redeem(otp)).body.code).toBe('place-not-allowed')
    goTo(viewer, IN_GERMANY)
    expect(await viewer.redeem(otp)).toMatchObject({ status: 200, body: { session } })
    expect((await viewerAt(IN_JAPAN).redeem(otp)).body.code).toBe('otp-used') // a stranger's second use is reported as that
  })

  test('the rules outlive a restart, with the session', async () => {
    const own = await startReelgate({ env: { REELGATE_TRUSTED_PROXIES: '127.0.0.1' }, video: await makeVideo() })
    const viewer = own.newViewer()
    goTo(viewer, IN_GERMANY)
    const otp = await own.owner.issueOtp(own.videoId, onlyGermany)
    await viewer.redeem(otp)
    await own.stop()
    await own.restart()
    goTo(viewer, IN_JAPAN)
    await viewer.openPage()
    expect(((await (await viewer.key(0)).json()) as { code: string }).code).toBe('place-not-allowed')
    goTo(viewer, IN_GERMANY)
    expect((await viewer.key(0)).status).toBe(200)
  })

  test('refusals of one OTP are kept as twenty rows and a number, however many there are', async () => {
    const otp = await reelgate.owner.issueOtp(video, onlyGermany)
    const viewer = viewerAt(IN_GERMANY)
    await viewer.redeem(otp)
    for (let n = 0; n < 30; n++) {
      goTo(viewer, `133.11.0.${n}`)
      await viewer.key(0)
    }
    const kept = attemptsOf(otp)
    expect(kept).toHaveLength(20)
    expect(kept.at(-1)).toMatchObject({ attempt_count: 12 })
  })
})

test('who opened the session is on record, however many were refused by a rule before', async () => {
  const otp = await reelgate.owner.issueOtp(video, { ipGeo: { allow: ['DE'] } })
  for (let n = 0; n < 25; n++) await viewerAt(`133.11.1.${n}`).redeem(otp)
  await viewerAt(IN_GERMANY).redeem(otp)
  expect(attemptsOf(otp)).toHaveLength(21)
  expect(attemptsOf(otp).at(-1)).toMatchObject({ outcome: 'opened', address: IN_GERMANY })
})

describe('P13: where the video may be embedded', () => {
  test('the page names the sites that may frame it, whatever has become of the OTP; without a whitelist, none', async () => {
    const otp = await reelgate.owner.issueOtp(video, { whitelisthref: 'good.example' })
    const sources = 'https://good.example https://good.example:* https://*.good.example https://*.good.example:*'
    const referer = 'https://www.good.example/lesson'
    const open = await page(`?otp=${otp}`, { referer })
    expect([open.status, ancestorsIn(open.policy)]).toEqual([200, sources])
    expect(spentAt(otp)).toBeNull()

    const viewer = reelgate.newViewer()
    await viewer.openPage(`?otp=${otp}`, { referer })
    expect((await viewer.redeem(otp)).playing).toBe(true)
    const spent = await page(`?otp=${otp}`, { referer })
    const ofSession = await page(`?session=${viewer.state.session}`, { referer })
    for (const { status, policy } of [spent, ofSession]) expect([status, ancestorsIn(policy)]).toEqual([200, sources])

    const free = await page(`?otp=${await reelgate.owner.issueOtp(video)}`, { referer })
    const unknown = await page(`?otp=${'x'.repeat(64)}`, { referer })
    for (const { status, policy } of [free, unknown]) expect([status, ancestorsIn(policy)]).toEqual([200, undefined])
    const plain = ({ html }: { html: string }) => html.replace(/nonce="[^"]*"/g, '').replace(/"(proofNonce|ticket)":"[^"]*"/g, '')
    expect(new Set([open, spent, ofSession, free, unknown].map(plain)).size).toBe(1)
  })

  test.each([
    ['another site', 'good.example', { referer: 'https://evil.example/' }],
    ['a site whose name begins alike', 'good.example', { referer: 'https://good.example.evil.org/' }],
    ['a site whose name ends alike', 'good.example', { referer: 'https://evil-good.example/' }],
    ['none: it was opened by itself', 'good.example', { 'sec-fetch-dest': 'document' }],
    ['a site that the expression does not match', '^good\\.', { referer: 'https://evil.example/' }],
    ['a site that tells the expression nothing', '^good\\.', {}],
  ])('P14: in the frame of %s there is a page without player', async (_who, whitelisthref, headers) => {
    const otp = await reelgate.owner.issueOtp(video, { whitelisthref })
    const { status, html, policy } = await page(`?otp=${otp}`, { ...headers })
    expect(status).toBe(403)
    expect(html).toContain('This video may not be shown on this site.')
    expect(html).not.toMatch(/<script|reelgate-page/)
    expect(policy).toMatch(/^default-src 'none'; style-src 'self'/)
    const refusal = { outcome: 'site-not-allowed', rule: 'whitelisthref', address: '127.0.0.1', attempt_count: 1 }
    expect([spentAt(otp), attemptsOf(otp)]).toEqual([null, [refusal]])
  })

  test('an expression lets in the one site that it matched', async () => {
    const otp = await reelgate.owner.issueOtp(video, { whitelisthref: '^(www|m)\\.good\\.' })
    const { policy } = await page(`?otp=${otp}`, { referer: 'https://m.good.example:8443/lesson' })
    expect(ancestorsIn(policy)).toBe('https://m.good.example:8443')

    const viewer = reelgate.newViewer()
    await viewer.openPage(`?otp=${otp}`, { referer: 'https://m.good.example:8443/lesson' })
    await viewer.redeem(otp)
    const again = await page(`?session=${viewer.state.session}`) // loaded again in its frame, it names no site
    expect([again.status, ancestorsIn(again.policy)]).toEqual([200, 'https://m.good.example:8443'])
  })

  test('no way of writing the address opens the page of a whitelisted OTP as if it had none', async () => {
    const otp = await reelgate.owner.issueOtp(video, { whitelisthref: 'good.example' })
    const referer = 'https://evil.example/'
    const ways = [
      `?otp=${otp}&session=x`,
      `?x=?&otp=${otp}`,
      `?otp=${otp}&otp=x`,
      `?%6ftp=${otp}`,
      `v2/?otp=${otp}`,
      `v2?x&otp=${otp}`,
    ]
    for (const way of [...ways, `?session=${'a'.repeat(22)}&otp=${otp}`])
      expect((await page(way, { referer })).status, way).toBe(403)
  })

  test('a redeem is judged by the page’s ticket; a refusal is recorded with the rule and does not spend', async () => {
    for (const whitelisthref of ['good.example', '^good\\.']) {
      const otp = await reelgate.owner.issueOtp(video, { whitelisthref })
      const viewer = reelgate.newViewer()
      await viewer.openPage('', { referer: 'https://evil.example/' }) // a page of another OTP, without a whitelist
      const body = { ancestors: ['https://good.example'] }
      expect(await viewer.redeem(otp, { body })).toMatchObject({ status: 403, body: { code: 'site-not-allowed' } })
      expect([spentAt(otp), attemptsOf(otp)]).toEqual([
        null,
        [expect.objectContaining({ outcome: 'site-not-allowed', rule: 'whitelisthref' })],
      ])
      await viewer.openPage('', { referer: 'https://good.example:444/' })
      expect((await viewer.redeem(otp)).playing).toBe(true)
    }
  })

  test('where no site is known of the page, all pages around the player must be allowed', async () => {
    const outcome = async (whitelisthref: string, ancestors: string[]) => {
      const viewer = reelgate.newViewer()
      await viewer.openPage()
      const { body } = await viewer.redeem(await reelgate.owner.issueOtp(video, { whitelisthref }), { body: { ancestors } })
      return body.code ?? 'playing'
    }
    expect(await outcome('good.example', ['https://www.good.example', 'https://good.example'])).toBe('playing')
    expect(await outcome('good.example', ['https://good.example', 'https://evil.example'])).toBe('site-not-allowed')
    expect(await outcome('good.example', [])).toBe('playing')
    expect(await outcome('^good\\.', ['https://good.example'])).toBe('playing')
    expect(await outcome('^good\\.', ['null'])).toBe('site-not-allowed')
    expect(await outcome('^good\\.', [])).toBe('site-not-allowed')
  })
})

test('P14: no playback answer lets a page of another origin read it, whatever Origin it says it has', async () => {
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(video, { whitelisthref: 'good.example' }))
  for (const origin of ['null', 'https://good.example', 'https://good.example.evil.org', 'https://evil-good.example']) {
    Object.assign(viewer.state.headers, { Origin: origin })
    for (const answer of [await viewer.key(0), await viewer.call('playlist', 'main')]) {
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
      expect(answer.headers.get('cross-origin-resource-policy')).toBe('same-origin')
    }
  }
  Object.assign(viewer.state.headers, { 'Sec-Fetch-Site': 'cross-site' })
  expect((await viewer.key(0)).status).toBe(403)
})
