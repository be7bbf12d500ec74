import { openAsBlob } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import { createViewer, readMediaPlaylist, type Viewer } from '../viewer.ts'

// Strangers behind one address with an owner's site, or with viewers: what they do never stops what carries a live key, or the true
// proof of a live session. The limits are those of a new installation, but for what players ask without a proof.

const PLAYBACK_LIMIT = 100
const FLOOD = 5

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  const limits = JSON.stringify({ playback: { ip: PLAYBACK_LIMIT } })
  reelgate = await startSharedReelgate({
    env: { REELGATE_LIMITS: limits, REELGATE_TRUSTED_PROXIES: '127.0.0.1' },
    video: await makeVideo(),
    title: 'A video',
  })
})
afterAll(() => reelgate.remove())

let addresses = 0
const newAddress = () => `198.51.100.${++addresses}`

function createClient(from: string) {
  const send = (method: string, path: string, body?: string | FormData | URLSearchParams, headers: Record<string, string> = {}) =>
    fetch(`${reelgate.url}${path}`, { method, body, headers: { 'X-Forwarded-For': from, ...headers } })
  return {
    send,
    /** With the owner's key; options as JSON. */
    ask: (method: string, path: string, options?: object) =>
      send(method, path, options && JSON.stringify(options), {
        Authorization: `Apisecret ${reelgate.owner.apiKey}`,
        ...(options && { 'Content-Type': 'application/json' }),
      }),
    newViewer() {
      const viewer = createViewer(reelgate.url)
      viewer.state.headers['X-Forwarded-For'] = from
      return viewer
    },
  }
}

/** Sends so many concurrently, again and again. @returns how many there were of each status */
async function flood(count: number, send: (index: number) => Promise<Response>): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {}
  for (let first = 0; first < count; first += 50) {
    const answers = await Promise.all(Array.from({ length: Math.min(50, count - first) }, (_, i) => send(first + i)))
    for (const answer of answers) {
      await answer.arrayBuffer()
      statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
    }
  }
  return statuses
}

/** The signed path of its first segment. */
async function firstSegmentOf(viewer: Viewer): Promise<string> {
  const [, rendition = ''] = /^(\d+)$/m.exec(await viewer.playlist('main')) ?? []
  const { segments } = readMediaPlaylist(await viewer.playlist(rendition))
  return new URL(segments[0]?.uri ?? '', `${reelgate.url}/play/${viewer.state.session}/playlist/`).pathname
}

async function bansOf(from: string): Promise<string[]> {
  const bans = await sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'ban list', {})
  return (bans as { subject: string; budget: string }[]).filter(({ subject }) => subject === from).map(({ budget }) => budget)
}

test('R18: a loop of 200 imports and one of 1 300 lists cause no ban, and the site continues to issue OTPs', async () => {
  const from = newAddress()
  const { ask } = createClient(from)
  expect(await flood(200, (i) => ask('PUT', '/api/videos/importUrl', { url: `https://videos.invalid/${i}.mp4` }))).toEqual({
    200: 200,
  })
  expect(await flood(1300, () => ask('GET', '/api/videos?limit=1'))).toEqual({ 200: 600, 429: 700 })
  expect(await flood(100, () => ask('POST', `/api/videos/${reelgate.videoId}/otp`, {}))).toEqual({ 200: 100 })
  expect((await ask('PUT', '/api/videos?title=x')).status).toBe(200)
  expect(await bansOf(from)).toEqual([])
})

describe('X14: a flood without a key', () => {
  test('in the current interface is refused, and the site behind the same address is not', async () => {
    const from = newAddress()
    const { send, ask } = createClient(from)
    const withWrongKey = () => send('GET', '/api/videos', undefined, { Authorization: `Apisecret ${'x'.repeat(64)}` })
    expect(await flood(FLOOD * 60, withWrongKey)).toEqual({ 401: 60, 429: 240 })
    expect(await bansOf(from)).toEqual(['unauthenticated'])
    expect((await ask('GET', '/api/videos')).status).toBe(200)
    expect((await ask('POST', `/api/videos/${reelgate.videoId}/otp`, {})).status).toBe(200)
    expect((await send('GET', '/api/nothing')).status).toBe(429)
  })

  test('in the earlier one, too, where the key is in the body: it is looked for in each, and the site’s calls pass', async () => {
    const from = newAddress()
    const { send } = createClient(from)
    const large = new URLSearchParams({ clientSecretKey: 'x', padding: 'x'.repeat(200_000) })
    const otp = (body: URLSearchParams | FormData) => send('POST', `/v2/otp?video=${reelgate.videoId}`, body)
    expect(await flood(FLOOD * 60, () => otp(large))).toEqual({ 401: 60, 429: 240 })
    expect(await bansOf(from)).toEqual(['unauthenticated'])
    const fields = { clientSecretKey: reelgate.owner.apiKey, annotate: JSON.stringify([{ type: 'text', text: 'x'.repeat(200) }]) }
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    const [flooded, answers] = await Promise.all([
      flood(300, () => otp(new URLSearchParams({ clientSecretKey: 'x' }))),
      Promise.all([otp(new URLSearchParams(fields)), otp(form)]),
    ])
    expect(flooded).toEqual({ 429: 300 })
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect((await otp(new URLSearchParams({ ...fields, padding: 'x'.repeat(100_000) }))).status).toBe(200)
    expect((await otp(new URLSearchParams({ padding: 'x'.repeat(16 * 1024), ...fields }))).status).toBe(429)
  })

  test('of large bodies: once its address is banned the connection ends with the answer, and the rest is not read', async () => {
    const from = newAddress()
    const { send } = createClient(from)
    expect(await flood(FLOOD * 60, () => send('POST', '/v2/videos', new URLSearchParams()))).toEqual({ 401: 60, 429: 240 })
    const socket = connect(Number(new URL(reelgate.url).port), '127.0.0.1')
    const answer = text(socket)
    socket.write(
      `POST /v2/videos HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${from}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 262144\r\n\r\n${'x'.repeat(16 * 1024)}`,
    )
    expect(await answer).toMatch(/^HTTP\/1\.1 429 /)
  })

  test('of forms with tens of thousands of fields: each costs as much as its bytes, and none is taken', async () => {
    const { send } = createClient(newAddress())
    const part = (i: number) => `--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n${i}\r\n`
    const multipart = `${Array.from({ length: 4000 }, (_, i) => part(i)).join('')}--b--\r\n`
    const asForm = (body: string, type: string) => send('POST', '/v2/videos', body, { 'Content-Type': type })
    const key = reelgate.owner.apiKey
    const keyPart = `--b\r\nContent-Disposition: form-data; name="clientSecretKey"\r\n\r\n${key}\r\n`
    expect((await asForm(`${keyPart}${multipart}`, 'multipart/form-data; boundary=b')).status).toBe(413)
    expect((await asForm(`clientSecretKey=${key}&${'a=1&'.repeat(500)}`, 'application/x-www-form-urlencoded')).status).toBe(413)
    const most = `${'a=1&'.repeat(499)}clientSecretKey=${key}`
    expect((await asForm(most, 'application/x-www-form-urlencoded')).status).toBe(200)
  })
})

test('R19: a viewer keeps playing while a neighbour at the same address sends requests without a proof until the address is banned', async () => {
  const from = newAddress()
  const { send, newViewer } = createClient(from)
  const viewer = newViewer()
  expect((await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId))).playing).toBe(true)
  const withoutProof = () => send('GET', `/play/${viewer.state.session}/key/0`)
  expect(await flood(FLOOD * PLAYBACK_LIMIT, withoutProof)).toEqual({ 403: PLAYBACK_LIMIT, 429: 4 * PLAYBACK_LIMIT })
  expect(await bansOf(from)).toEqual(['playback'])

  const [flooded, statuses] = await Promise.all([flood(500, withoutProof), playOn()])
  expect(flooded).toEqual({ 429: 500 })
  expect(statuses).toEqual([200, 200, 200, 200])

  async function playOn(): Promise<number[]> {
    const beat = JSON.stringify({ state: 'playing', positionS: 0, rate: 1, bufferS: 9 })
    return [
      (await viewer.call('beat', undefined, beat)).status,
      (await viewer.key(0)).status,
      (await send('GET', await firstSegmentOf(viewer))).status,
      (await viewer.reopen()).status,
    ]
  }
})

test('P23: a segment’s address that leaks is answered 429 after four lengths of the video, and no cache keeps that', async () => {
  const from = newAddress()
  const { send, newViewer } = createClient(newAddress())
  const viewer = newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId))
  const leaked = await firstSegmentOf(viewer)
  const fetchLeaked = () => send('GET', leaked, undefined, { 'X-Forwarded-For': from })
  let refused: Response | undefined
  for (let tries = 0; !refused && tries < 100; tries++) {
    const answers = await Promise.all(Array.from({ length: 50 }, fetchLeaked))
    for (const answer of answers) await answer.arrayBuffer()
    refused = answers.find(({ status }) => status !== 200)
  }
  expect([refused?.status, refused?.headers.get('cache-control')]).toEqual([429, 'no-store'])
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(60)
})

test('R20: fifty viewers behind one address wait for a premiere while a neighbour floods, and all play', async () => {
  const from = newAddress()
  const { send, newViewer } = createClient(from)
  const upload = await reelgate.owner.credentials('Premiere')
  const viewers = await Promise.all(
    Array.from({ length: 50 }, async () => ({ viewer: newViewer(), otp: await reelgate.owner.issueOtp(upload.videoId) })),
  )
  const redeemAll = async () =>
    (await Promise.all(viewers.map(({ viewer, otp }) => viewer.redeem(otp)))).map(({ status, body }) => body.code ?? status)
  const guess = () =>
    send('POST', '/play/redeem', JSON.stringify({ otp: 'A'.repeat(64) }), { 'Content-Type': 'application/json' })

  // Waiting alone: the budget is 300 a minute, and these ask 400 times.
  for (let round = 0; round < 8; round++) expect(new Set(await redeemAll())).toEqual(new Set(['video-not-ready']))
  await flood(FLOOD * 300, guess)
  expect(await bansOf(from)).toEqual(['redeem'])
  expect(new Set(await redeemAll())).toEqual(new Set(['video-not-ready']))
  await reelgate.owner.send(upload, await openAsBlob(await makeVideo()))
  await reelgate.owner.until(upload.videoId, 'ready')
  const [, outcomes] = await Promise.all([flood(300, guess), redeemAll()])
  expect(outcomes).toEqual(Array(50).fill(200))
  // A lost answer: the same browser gets its session again. Another one learns nothing.
  const [{ viewer, otp }] = viewers as [(typeof viewers)[0]]
  expect((await viewer.redeem(otp)).status).toBe(200)
  expect((await newViewer().redeem(otp)).body.code).toBe('slow-down')
})
