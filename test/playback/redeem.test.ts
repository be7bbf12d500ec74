import { createHash, generateKeyPairSync } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'
import { makeSound, makeVideo } from '../videos.ts'
import { answerOf, newPageId, type Outcome, sendFrom } from '../viewer.ts'

// Redeem, the one call that spends an OTP: playback-protocol.md, sections 1 and 2.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  owner = reelgate.owner
  videoId = reelgate.videoId
})
afterAll(() => reelgate.remove())

const hashOf = (otp: string) => createHash('sha256').update(otp).digest()
const isExhausted = (otp: string) =>
  readRows<{ at: number | null }>(reelgate, 'select spent_at_s as at from otp where hash = ?', hashOf(otp))[0]?.at !== null
const sessionsOf = (otp: string) =>
  readRows<{ id: string }>(reelgate, 'select id from playback_session where otp_hash = ?', hashOf(otp)).map((row) => row.id)
const attemptsOf = (otp: string) =>
  readRows<{ outcome: string }>(reelgate, 'select outcome from redeem_attempt where otp_hash = ? order by id', hashOf(otp)).map(
    (row) => row.outcome,
  )

function expectRefused(outcome: Outcome, status: number, code: string, more: Record<string, unknown> = {}) {
  expect({ status: outcome.status, body: outcome.body }).toEqual({
    status,
    body: { code, message: expect.any(String), requestId: expect.any(String), ...more },
  })
}

test('a redeem opens a session and says what the player needs, and nothing else', async () => {
  const viewer = reelgate.newViewer()
  const { status, body } = await viewer.redeem(await owner.issueOtp(videoId))
  expect(status).toBe(200)
  expect(body).toEqual({
    session: expect.stringMatching(/^[\w-]{22}$/),
    pageId: viewer.state.pageId,
    video: {
      id: videoId,
      title: 'A video',
      durationS: expect.closeTo(3, 1),
      aspectRatio: 1,
      poster: expect.stringMatching(/^poster\/[\w-]{22}\.jpg$/),
      storyboard: `play/${body.session}/file/storyboard`,
    },
    playlist: `/play/${body.session}/playlist/main`,
    marks: [],
    mayFloat: true,
    resumeAtS: 0,
    keepsPosition: false,
    beatEveryMs: 6000,
    leaseMs: 18_000,
    maxSpeed: 2,
    endsAtS: expect.any(Number),
    idleEndsS: 3600,
  })
})

describe('O02: an OTP plays once', () => {
  test('a second browser gets otp-used, and the first keeps playing', async () => {
    const otp = await owner.issueOtp(videoId)
    const first = reelgate.newViewer()
    expect((await first.redeem(otp)).playing).toBe(true)
    expectRefused(await reelgate.newViewer().redeem(otp), 403, 'otp-used')
    expect((await first.key(0)).status).toBe(200)
    expect(attemptsOf(otp)).toEqual(['opened', 'otp-used'])
  })

  test('the browser that redeemed it gets the same session again, as often as it asks', async () => {
    const otp = await owner.issueOtp(videoId)
    const viewer = reelgate.newViewer()
    const { body } = await viewer.redeem(otp)
    for (let i = 0; i < 3; i++) expect((await viewer.redeem(otp)).body).toEqual(body)
    viewer.newPage()
    expect((await viewer.redeem(otp)).body).toEqual({ ...body, pageId: viewer.state.pageId })
    expect(attemptsOf(otp)).toEqual(['opened', 'resumed', 'resumed', 'resumed', 'resumed'])
    expect(sessionsOf(otp)).toEqual([body.session])
  })

  test('of attempts at one OTP twenty are recorded, however many there are', async () => {
    const otp = await owner.issueOtp(videoId)
    await reelgate.newViewer().redeem(otp)
    for (let i = 0; i < 24; i++) expectRefused(await reelgate.newViewer().redeem(otp), 403, 'otp-used')
    expect(attemptsOf(otp)).toHaveLength(20)
  })
})

describe('O03: of many concurrent redeems', () => {
  test('by 200 browsers, on a socket each, exactly one plays', async () => {
    const otp = await owner.issueOtp(videoId)
    const viewers = Array.from({ length: 200 }, () => reelgate.newViewer())
    await viewers[0]?.openPage()
    const { nonce, ticket, serverKey, serverKeyId } = viewers[0]?.state ?? {}
    for (const { state } of viewers) Object.assign(state, { nonce, ticket, serverKey, serverKeyId })
    const outcomes = await Promise.all(viewers.map((viewer) => viewer.redeem(otp)))
    const playing = outcomes.filter((outcome) => outcome.playing)
    expect(playing).toHaveLength(1)
    for (const outcome of outcomes.filter((outcome) => !outcome.playing)) expectRefused(outcome, 403, 'otp-used')
    expect(sessionsOf(otp)).toEqual([playing[0]?.body.session])
  })

  test('by one browser fifty times, all get one and the same session', async () => {
    const otp = await owner.issueOtp(videoId)
    const viewer = reelgate.newViewer()
    await viewer.openPage()
    // Requests of a page may overtake each other by 32, so of fifty numbers the upper 33 always count; the rest would sign again.
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => viewer.redeem(otp)))
    for (const outcome of outcomes.filter((outcome) => !outcome.playing)) expectRefused(outcome, 401, 'proof-replayed')
    expect(outcomes.filter((outcome) => outcome.playing).length).toBeGreaterThanOrEqual(33)
    const sessions = new Set(outcomes.filter((outcome) => outcome.playing).map((outcome) => outcome.body.session))
    expect([...sessions]).toEqual(sessionsOf(otp))
    expect((await viewer.redeem(otp)).body.session).toBe(sessionsOf(otp)[0])
    expect((await viewer.key(0)).status).toBe(200)
  })

  test('a hundred OTPs by a hundred browsers give a hundred sessions', async () => {
    const otps = await Promise.all(Array.from({ length: 100 }, () => owner.issueOtp(videoId)))
    const outcomes = await Promise.all(otps.map((otp) => reelgate.newViewer().redeem(otp)))
    expect(new Set(outcomes.map((outcome) => outcome.body.session)).size).toBe(100)
  })
})

describe('O05: an OTP opens the video it was issued for', () => {
  test('named with another video it is unknown, and not spent', async () => {
    const other = await owner.credentials('Another video')
    const otp = await owner.issueOtp(videoId)
    const viewer = reelgate.newViewer()
    expectRefused(await viewer.redeem(otp, { videoId: other.videoId }), 403, 'otp-unknown')
    expectRefused(await viewer.redeem(otp, { videoId: '0'.repeat(32) }), 403, 'otp-unknown')
    expect(isExhausted(otp)).toBe(false)
    const { body } = await viewer.redeem(otp, { videoId })
    expect(body.video).toMatchObject({ id: videoId })
  })
})

describe('O07: an OTP is worthless', () => {
  test('once its video is deleted', async () => {
    const doomed = await owner.readyVideo(await makeVideo(), 'Doomed')
    const otp = await owner.issueOtp(doomed)
    await owner.delete([doomed])
    expectRefused(await reelgate.newViewer().redeem(otp), 403, 'video-gone')
    expect(isExhausted(otp)).toBe(false)
    expect(sessionsOf(otp)).toEqual([])
    expect((await owner.call('POST', `/api/videos/${doomed}/otp`, { body: {} })).status).toBe(404)
  })

  test('once the API key that issued it is revoked; sessions that play continue', async () => {
    const [account]: [{ id: string }] = JSON.parse((await reelgate.cli('account', 'list', '--json')).stdout)
    const made = await reelgate.cli('key', 'create', account.id, '--json')
    const { keyId, apiKey }: { keyId: string; apiKey: string } = JSON.parse(made.stdout)
    const [played, unspent] = await Promise.all(
      [1, 2].map(async () => {
        const response = await fetch(`${reelgate.url}/api/videos/${videoId}/otp`, {
          method: 'POST',
          headers: { Authorization: `Apisecret ${apiKey}` },
        })
        const { otp }: { otp: string } = JSON.parse(await response.text())
        return otp
      }),
    )
    const viewer = reelgate.newViewer()
    await viewer.redeem(played ?? '')
    await reelgate.cli('key', 'revoke', keyId)
    expectRefused(await reelgate.newViewer().redeem(unspent ?? ''), 403, 'otp-unknown')
    expect(sessionsOf(unspent ?? '')).toEqual([])
    expect((await viewer.key(0)).status).toBe(200)
    expect((await viewer.redeem(played ?? '')).playing).toBe(true)
  })
})

describe('P-04, P-24: a browser that names what it decodes', () => {
  const redeemWith = (otp: string, formats: Record<string, unknown>) =>
    reelgate.newViewer().redeem(otp, { body: { support: { mse: true, managed: false, ...formats } } })
  const refusedFor = (lacks: string[]) => ({ status: 409, body: { code: 'unsupported-browser', lacks } })

  test('is refused a video with a track that it cannot decode, and the OTP is not spent', async () => {
    const otp = await owner.issueOtp(videoId)
    expect(await redeemWith(otp, { h264: true, aac: false })).toMatchObject(refusedFor(['aac']))
    expect(await redeemWith(otp, { h264: false, aac: true })).toMatchObject(refusedFor(['h264']))
    expect(await redeemWith(otp, { h264: false, aac: false })).toMatchObject(refusedFor(['h264', 'aac']))
    expect(isExhausted(otp)).toBe(false)
    expect(await redeemWith(otp, { h264: true, aac: true })).toMatchObject({ playing: true })
    expect(attemptsOf(otp)).toEqual([...Array(3).fill('unsupported-browser'), 'opened'])
  })

  test('plays a video that has no such track', async () => {
    const silent = await owner.readyVideo(await makeVideo({ audioTrack: false }))
    const audioOnly = await owner.readyVideo(await makeSound(3))
    expect(await redeemWith(await owner.issueOtp(silent), { h264: true, aac: false })).toMatchObject({ playing: true })
    expect(await redeemWith(await owner.issueOtp(audioOnly), { h264: false, aac: true })).toMatchObject({ playing: true })
    expect(await redeemWith(await owner.issueOtp(silent), { h264: false, aac: true })).toMatchObject(refusedFor(['h264']))
    expect(await redeemWith(await owner.issueOtp(audioOnly), { h264: true, aac: false })).toMatchObject(refusedFor(['aac']))
  })

  test('plays every video where it says nothing about one of them', async () => {
    for (const formats of [{}, { h264: true }, { aac: true }, { vp9: false }])
      expect(await redeemWith(await owner.issueOtp(videoId), formats)).toMatchObject({ playing: true })
  })

  test('learns of a used link before what it lacks', async () => {
    const otp = await owner.issueOtp(videoId)
    await reelgate.newViewer().redeem(otp)
    expectRefused(await redeemWith(otp, { h264: false, aac: false }), 403, 'otp-used')
  })
})

test('P15: nothing that a viewer sends changes the watermark of its OTP', async () => {
  const otp = await owner.issueOtp(videoId, { userId: 'ann', annotate: [{ type: 'text', text: 'of {id}' }] })
  const kept = () => readRows(reelgate, 'select watermarks from otp where hash = ?', hashOf(otp))
  const before = kept()
  const viewer = reelgate.newViewer()
  const wanted = { marks: [], watermarks: '[]', annotate: '[]', userId: 'ben', viewer: { name: 'Ben' } }
  const opened = await viewer.redeem(otp, { body: wanted })
  expect(opened.body.marks).toMatchObject([{ text: 'of ann' }])
  const beat = { state: 'playing', positionS: 1, rate: 1, bufferS: 5, ...wanted }
  expect((await viewer.call('beat', undefined, JSON.stringify(beat))).status).toBe(200)
  expect((await viewer.call('page', undefined, JSON.stringify(wanted))).status).toBe(200)
  viewer.newPage()
  expect((await viewer.reopen()).body.marks).toEqual(opened.body.marks)
  expect(kept()).toEqual(before)
})

describe('before its video is ready an OTP is not spent', () => {
  test('the viewer waits, and plays once it is', async () => {
    const upload = await owner.credentials('Soon')
    const otp = await owner.issueOtp(upload.videoId)
    const viewer = reelgate.newViewer()
    expectRefused(await viewer.redeem(otp), 409, 'video-not-ready', { waitMs: 15_000 })
    expect(isExhausted(otp)).toBe(false)
    await owner.send(upload, await openAsBlob(await makeVideo()))
    await owner.until(upload.videoId, 'ready')
    expect((await viewer.redeem(otp)).playing).toBe(true)
  })

  test('the viewer sees that it failed, when it did', async () => {
    const upload = await owner.credentials('No video')
    await owner.send(upload, new Blob(['these are words']))
    await owner.until(upload.videoId, 'Not a media file')
    expectRefused(await reelgate.newViewer().redeem(await owner.issueOtp(upload.videoId)), 409, 'video-not-ready', {
      why: 'failed',
    })
  })
})

describe('O15: odd OTPs are refused like unknown ones, without effect', () => {
  test.each([
    ['unknown', 'x'.repeat(64), 403, 'otp-unknown'],
    ['empty', '', 403, 'otp-unknown'],
    ['too short', 'x'.repeat(63), 403, 'otp-unknown'],
    ['too long', 'x'.repeat(65), 403, 'otp-unknown'],
    ['%00', '%00', 403, 'otp-unknown'],
    ['a NUL', '\0'.repeat(64), 403, 'otp-unknown'],
    ['..', `${'../'.repeat(21)}x`, 403, 'otp-unknown'],
    ['letters that only look alike', 'а'.repeat(64), 403, 'otp-unknown'],
    ['a wildcard', '%'.repeat(64), 403, 'otp-unknown'],
    ['half a surrogate', '\ud800'.repeat(64), 403, 'otp-unknown'],
    ['201 characters', 'x'.repeat(201), 400, 'bad-request'],
    ['1 MB', 'x'.repeat(1_000_000), 400, 'bad-request'],
  ])('%s', async (_, otp, status, code) => {
    const viewer = reelgate.newViewer()
    await viewer.openPage()
    expectRefused(await viewer.redeem(otp), status, code)
  })

  test('an OTP with a NUL, a blank or a homoglyph added does not spend the one it resembles', async () => {
    const otp = await owner.issueOtp(videoId)
    for (const odd of [`${otp}\0`, ` ${otp}`, `${otp} `, `${otp}\n`, otp.toLowerCase(), otp.replace(/[aeo]/, 'а')].filter(
      (text) => text !== otp,
    )) {
      expectRefused(await reelgate.newViewer().redeem(odd), 403, 'otp-unknown')
    }
    expect(isExhausted(otp)).toBe(false)
  })

  test.each([[5], [null], [['x']], [{ $ne: 1 }], [undefined]])('%j instead of a text is 400', async (otp) => {
    const viewer = reelgate.newViewer()
    await viewer.openPage()
    expectRefused(await viewer.redeem('', { body: { otp } }), 400, 'bad-request')
  })
})

describe('O09: only the player’s own redeem spends an OTP', () => {
  test.each([
    ['the page itself', (otp: string) => sendRaw(reelgate.url, `GET /player/?otp=${otp}`)],
    [
      'a prefetch',
      (otp: string) => sendRaw(reelgate.url, `GET /player/?otp=${otp}`, ['Purpose: prefetch', 'Sec-Purpose: prefetch;prerender']),
    ],
    ['HEAD', (otp: string) => sendRaw(reelgate.url, `HEAD /player/?otp=${otp}`)],
    ['OPTIONS', (otp: string) => sendRaw(reelgate.url, `OPTIONS /player/?otp=${otp}`)],
    ['the page of the earlier embed', (otp: string) => sendRaw(reelgate.url, `GET /player/v2/?otp=${otp}&playbackInfo=x`)],
    ['GET on redeem', (otp: string) => sendRaw(reelgate.url, `GET /play/redeem?otp=${otp}`)],
    ['HEAD on redeem', () => sendRaw(reelgate.url, 'HEAD /play/redeem')],
    ['OPTIONS on redeem', () => sendRaw(reelgate.url, 'OPTIONS /play/redeem')],
    [
      'redeem without a proof',
      (otp: string) => sendRaw(reelgate.url, 'POST /play/redeem', ['Content-Type: application/json'], JSON.stringify({ otp })),
    ],
    [
      'redeem as a form',
      (otp: string) =>
        sendRaw(reelgate.url, 'POST /play/redeem', ['Content-Type: application/x-www-form-urlencoded'], `otp=${otp}`),
    ],
  ])('%s does not', async (_, ask) => {
    const otp = await owner.issueOtp(videoId)
    await ask(otp)
    expect(isExhausted(otp)).toBe(false)
    expect(attemptsOf(otp)).toEqual([])
    expect((await reelgate.newViewer().redeem(otp)).playing).toBe(true)
  })

  test('the page is the same bytes for an open, a spent, an unknown and no OTP, but for nonces and ticket', async () => {
    const open = await owner.issueOtp(videoId)
    const spent = await owner.issueOtp(videoId)
    await reelgate.newViewer().redeem(spent)
    const pages = await Promise.all(
      [`?otp=${open}`, `?otp=${spent}`, `?otp=${'x'.repeat(64)}`, '?otp=%00<script>', '?session=abc', ''].map(async (query) => {
        const response = await fetch(`${reelgate.url}/player/${query}`)
        const headers = Object.fromEntries(response.headers)
        delete headers.date
        return `${response.status} ${JSON.stringify(headers)} ${await response.text()}`
          .replace(/'nonce-[\w-]{22}'|nonce="[\w-]{22}"/g, 'nonce')
          .replace(/"proofNonce":"[\w-]{24}"/, '"proofNonce":""')
          .replace(/"ticket":"[^"]+"/, '"ticket":""')
      }),
    )
    expect(new Set(pages).size).toBe(1)
    expect(pages[0]).toMatch(/^200 /)
  })

  test('the page leaves nothing behind: no cache, no referrer, no cookie', async () => {
    const { headers } = await fetch(`${reelgate.url}/player/?otp=${'x'.repeat(64)}`)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('set-cookie')).toBeNull()
    expect(headers.get('content-security-policy')).toMatch(/script-src 'nonce-[\w-]{22}'/)
  })
})

describe('the browser’s key', () => {
  /** A redeem with a public key as text, signed by the key pair that goes with it or by a stranger’s. */
  async function redeemWith(publicKeyText: string, privateKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey) {
    const otp = await owner.issueOtp(videoId)
    const viewer = reelgate.newViewer()
    await viewer.openPage()
    const body = JSON.stringify({ ...viewer.redeemBody(otp), publicKey: publicKeyText })
    const response = await viewer.send('POST', '/play/redeem', viewer.proof({ operation: 'redeem', body }, privateKey), body)
    expect(isExhausted(otp)).toBe(response.status === 200)
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const point = pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-65)
  const offCurve = Buffer.from(point)
    .fill(point.at(-1) ?? 0, 64)
    .map((byte, i) => (i === 64 ? byte ^ 1 : byte))
  const otherCurve = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
    .publicKey.export({ format: 'der', type: 'spki' })
    .subarray(-65)
  const compressed = Buffer.concat([Buffer.from([2 + ((point[64] ?? 0) & 1)]), point.subarray(1, 33)])

  test('is a point of P-256 whose holder signed', async () => {
    expect((await redeemWith(point.toString('base64url'), pair.privateKey)).status).toBe(200)
  })

  test.each([
    ['of another holder', point],
    ['off the curve', Buffer.from(offCurve)],
    ['of another curve', otherCurve],
    ['all zeros', Buffer.alloc(65)],
    ['the point at infinity, padded', Buffer.concat([Buffer.from([4]), Buffer.alloc(64)])],
    ['65 bytes that begin like a compressed point', Buffer.concat([Buffer.from([2]), point.subarray(1)])],
    ['hybrid form', Buffer.concat([Buffer.from([6]), point.subarray(1)])],
  ])('%s is not allowed', async (_, bytes) => {
    expect(await redeemWith(bytes.toString('base64url'))).toEqual({
      status: 403,
      body: { code: 'not-allowed', message: expect.any(String) },
    })
  })

  test.each([
    ['of 64 bytes', point.subarray(1).toString('base64url')],
    ['of 66 bytes', Buffer.concat([point, Buffer.alloc(1)]).toString('base64url')],
    ['in compressed form', compressed.toString('base64url')],
    ['with padding', `${point.toString('base64url')}=`],
    ['in base64 with + and /', point.toString('base64').replace(/=/g, '').replace(/^./, '+')],
    ['as a JWK', JSON.stringify(pair.publicKey.export({ format: 'jwk' }))],
    ['empty', ''],
  ])('%s is 400', async (_, text) => {
    expect(await redeemWith(text, pair.privateKey)).toMatchObject({ status: 400, body: { code: 'bad-request' } })
  })
})

describe('the proof of a redeem', () => {
  test('covers every byte of the body: nothing can be added, changed or moved to another OTP', async () => {
    const [otp, other] = [await owner.issueOtp(videoId), await owner.issueOtp(videoId)]
    const viewer = reelgate.newViewer()
    await viewer.openPage()
    const body = JSON.stringify(viewer.redeemBody(otp))
    const header = () => viewer.proof({ operation: 'redeem', body })
    for (const changed of [body.replace(otp, other), `${body} `, ` ${body}`, body.replace('{', '{"videoId":null,')]) {
      expect(await answerOf(viewer.send('POST', '/play/redeem', header(), changed))).toEqual(
        changed.includes('null') ? [400, 'bad-request'] : [403, 'not-allowed'],
      )
    }
    expect([isExhausted(otp), isExhausted(other)]).toEqual([false, false])
    expect((await viewer.send('POST', '/play/redeem', header(), body)).status).toBe(200)
  })

  test('sent a second time moves nothing: the page that plays stays the page that plays', async () => {
    const otp = await owner.issueOtp(videoId)
    const viewer = reelgate.newViewer()
    await viewer.openPage()
    const body = JSON.stringify(viewer.redeemBody(otp))
    const header = viewer.proof({ operation: 'redeem', body })
    const first = await viewer.send('POST', '/play/redeem', header, body)
    const { session }: { session: string } = JSON.parse(await first.text())
    viewer.state.session = session
    expect(await answerOf(viewer.send('POST', '/play/redeem', header, body))).toEqual([401, 'proof-replayed'])
    viewer.newPage()
    expect((await viewer.reopen()).playing).toBe(true)
    expect(await answerOf(viewer.send('POST', '/play/redeem', header, body))).toEqual([409, 'page-replaced'])
    expect((await viewer.key(0)).status).toBe(200)
  })

  test('with a nonce that this server never gave is stale; with the one of the answer it opens', async () => {
    const otp = await owner.issueOtp(videoId)
    const viewer = reelgate.newViewer()
    await viewer.openPage()
    viewer.state.nonce = 'A'.repeat(24)
    expectRefused(await viewer.redeem(otp), 401, 'proof-stale')
    expect(isExhausted(otp)).toBe(false)
    expect(viewer.state.nonce).toMatch(/^[\w-]{24}$/)
    expect((await viewer.redeem(otp)).playing).toBe(true)
  })
})

test('a ticket that was not issued here counts as none: the redeem is recorded without a site', async () => {
  const hosts = async (ticket: (true_: string) => string) => {
    const otp = await owner.issueOtp(videoId)
    const viewer = reelgate.newViewer()
    viewer.state.headers = { Referer: 'https://school.example/lesson?user=1' }
    await viewer.openPage('', viewer.state.headers)
    viewer.state.ticket = ticket(viewer.state.ticket)
    expect((await viewer.redeem(otp)).playing).toBe(true)
    return readRows<{ host: string }>(
      reelgate,
      'select embedding_host as host from redeem_attempt where otp_hash = ?',
      hashOf(otp),
    ).map((row) => row.host)
  }
  expect(await hosts((ticket) => ticket)).toEqual(['school.example'])
  expect(await hosts((ticket) => ticket.replace('school', 'public'))).toEqual(['-'])
  expect(await hosts(() => newPageId())).toEqual(['-'])
})

test('O13: a session is not bound to the address or the user agent that redeemed it, which are recorded', async () => {
  const otp = await owner.issueOtp(videoId)
  const viewer = reelgate.newViewer()
  viewer.state.headers = { 'User-Agent': 'a browser at home' }
  expect((await viewer.redeem(otp)).playing).toBe(true)
  const { session } = viewer.state
  for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.2']) {
    const proof = viewer.proof({ operation: 'key', session, argument: '0' })
    const answer = await sendFrom(address, `${reelgate.url}/play/${session}/key/0`, {
      'Reelgate-Proof': proof,
      'User-Agent': `a browser at ${address}`,
    })
    expect([answer.status, answer.bytes.length]).toEqual([200, 16])
  }
  // Of two viewers behind one address each has a session, and neither the other's.
  const neighbour = reelgate.newViewer()
  expect((await neighbour.redeem(await owner.issueOtp(videoId))).body.session).not.toBe(session)
  expect(readRows(reelgate, 'select address, user_agent, outcome from redeem_attempt where otp_hash = ?', hashOf(otp))).toEqual([
    { address: '127.0.0.1', user_agent: 'a browser at home', outcome: 'opened' },
  ])
})
