import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { type ReelgateServer, startServer } from '../../src/server.ts'
import { createOwner, type Owner } from '../client.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { goldenWith } from '../reelgate.ts'
import { makeVideo } from '../videos.ts'
import { answerOf, createViewer, readMediaPlaylist, sendFrom, type Viewer } from '../viewer.ts'

// What time does, over HTTP. The server runs in this process; each start gives it the wall clock that the test wants.

const HOUR_S = 3600
let location: Location
let server: ReelgateServer
let port = '0'
let owner: Owner
let videoId: string
/** What the wall clock said at the last start: tests go on from there. */
let wallS: number
let startedMs: number

async function startAt(nowS: number): Promise<void> {
  wallS = nowS
  startedMs = performance.now()
  const config = readConfig({
    ...location.env,
    PORT: port,
    REELGATE_LIMITS: 'off',
    REELGATE_DEMO: 'off',
    REELGATE_LOG_LEVEL: 'silent',
  })
  server = await startServer(config, pino({ level: 'silent' }), { wallNowS: () => nowS })
  port = new URL(server.url).port
}

/** Stops the server and starts it again so much later, or earlier. */
async function restartAfter(seconds: number): Promise<void> {
  // The service's own clock went on meanwhile, by seconds on a busy machine.
  const passedS = Math.ceil((performance.now() - startedMs) / 1000)
  await server.stop()
  await startAt(wallS + passedS + seconds)
}

beforeAll(async () => {
  const golden = await goldenWith(await makeVideo({ seconds: 15, rate: 10 }))
  videoId = golden.videoId
  location = await makeLocation({ copyOf: golden })
  await startAt(Math.floor(Date.now() / 1000))
  owner = createOwner(server.url, golden.owner.apiKey)
})
afterAll(async () => {
  await server.stop()
  await location.remove()
})

const newViewer = () => createViewer(server.url)
async function newPlayingViewer() {
  const viewer = newViewer()
  expect((await viewer.redeem(await owner.issueOtp(videoId))).playing).toBe(true)
  return viewer
}
/** A request as a player sends it: signed again when the nonce was too old. */
async function ask(viewer: Viewer) {
  const first = await answerOf(viewer.key(0))
  return first[1] === 'proof-stale' ? answerOf(viewer.key(0)) : first
}

describe('O06: an OTP', () => {
  test('is expired when its time is over, and no clock that goes back revives it', async () => {
    const otp = await owner.issueOtp(videoId, { ttl: 60 })
    const later = await owner.issueOtp(videoId, { ttl: 2 * HOUR_S })
    for (const seconds of [HOUR_S, -HOUR_S, -24 * HOUR_S]) {
      await restartAfter(seconds)
      expect(await newViewer().redeem(otp)).toMatchObject({ status: 403, body: { code: 'otp-expired' } })
    }
    await restartAfter(25 * HOUR_S) // where the three steps above began, an hour on
    expect((await newViewer().redeem(later)).playing).toBe(true)
  })

  test('issued while the wall clock lags behind lives as long as it says', async () => {
    await restartAfter(-HOUR_S)
    const otp = await owner.issueOtp(videoId, { ttl: 600 })
    expect((await newViewer().redeem(otp)).playing).toBe(true)
    await restartAfter(HOUR_S)
  })

  test('that was spent in time stays its session’s after it would have expired', async () => {
    const otp = await owner.issueOtp(videoId, { ttl: 60 })
    const viewer = newViewer()
    const { body } = await viewer.redeem(otp)
    await restartAfter(600)
    await viewer.openPage()
    expect((await viewer.redeem(otp)).body.session).toBe(body.session)
    expect((await newViewer().redeem(otp)).body.code).toBe('otp-used')
  })
})

test('P09: half an hour’s pause, a seek and another network are one session', async () => {
  const viewer = await newPlayingViewer()
  const { session } = viewer.state
  expect(await ask(viewer)).toEqual([200])
  const paused = '{"state":"paused","positionS":2,"rate":1,"bufferS":4}'
  expect((await viewer.call('beat', undefined, paused)).status).toBe(200)
  await restartAfter(HOUR_S / 2) // harder than a pause: the server was not even there
  expect(await ask(viewer)).toEqual([200])
  expect(await answerOf(viewer.key(1))).toEqual([200]) // the video's second half, never asked for before
  const proof = viewer.proof({ operation: 'key', session, argument: '1' })
  const elsewhere = await sendFrom('127.0.0.77', `${server.url}/play/${session}/key/1`, {
    'Reelgate-Proof': proof,
    'User-Agent': 'the same browser in a train',
  })
  expect([elsewhere.status, elsewhere.bytes.length]).toEqual([200, 16])
  expect((await viewer.call('beat', undefined, paused)).status).toBe(200)
})

describe('P01, P08: a session', () => {
  test('of an hour ago has expired for its holder, who gets the reason; a stranger does not', async () => {
    const viewer = await newPlayingViewer()
    await restartAfter(HOUR_S)
    const stranger = await newPlayingViewer()
    expect(await ask(viewer)).toEqual([403, 'session-ended', 'idle'])
    expect(await ask(viewer)).toEqual([403, 'session-ended', 'idle'])
    stranger.state.session = viewer.state.session
    expect(await ask(stranger)).toEqual([403, 'not-allowed'])
  })

  test('whose page was closed is over after ten minutes, also when the server restarted meanwhile', async () => {
    const viewer = await newPlayingViewer()
    expect((await viewer.call('leave', undefined, '{}')).status).toBe(200)
    await restartAfter(300)
    await viewer.openPage()
    await restartAfter(330)
    expect(await ask(viewer)).toEqual([403, 'session-ended', 'viewer-left'])
  })

  test('whose page came back in time continues', async () => {
    const viewer = await newPlayingViewer()
    await viewer.call('leave', undefined, '{}')
    await restartAfter(300)
    await viewer.openPage()
    viewer.newPage()
    expect((await viewer.reopen()).playing).toBe(true)
    await restartAfter(900)
    expect(await ask(viewer)).toEqual([200])
  })
})

test('P10: a viewer’s one stream stays theirs over a restart, however long it took; no other session takes it', async () => {
  const one = { userId: 'ann', streamLimit: 1 }
  const [playing, waiting] = [newViewer(), newViewer()]
  for (const viewer of [playing, waiting]) await viewer.redeem(await owner.issueOtp(videoId, one))
  expect(await ask(playing)).toEqual([200])
  await restartAfter(HOUR_S / 2)
  expect(await ask(waiting)).toEqual([409, 'stream-limit'])
  expect(await ask(playing)).toEqual([200])
})

test('P03, P23: a segment’s address is worth nothing two hours after its playlist was sent', async () => {
  const viewer = await newPlayingViewer()
  const base = `${server.url}/play/${viewer.state.session}/playlist/`
  const { init, segments } = readMediaPlaylist(await viewer.playlist('1'))
  const addresses = [init, segments[0]?.uri ?? ''].map((uri) => new URL(uri, base).href)
  for (const address of addresses) expect((await fetch(address)).status).toBe(200)
  await restartAfter(2 * HOUR_S)
  for (const address of addresses) {
    const response = await fetch(address)
    expect(response.status).toBe(403)
    expect(response.headers.get('cache-control')).toBe('no-store')
  }
})

test('C05: a clock that steps back between two uploads does not turn the order of the list', async () => {
  const { videoId: first } = await owner.credentials('before the step')
  await restartAfter(-2 * HOUR_S)
  const { videoId: second } = await owner.credentials('after the step')
  const { rows } = await owner.list('?limit=2')
  expect(rows.map((row) => row.id)).toEqual([second, first])
  expect(Number(rows[0]?.upload_time)).toBeLessThan(Number(rows[1]?.upload_time))
  await restartAfter(2 * HOUR_S)
})

test('an Idempotency-Key holds for 24 hours, over restarts, and is then as new', async () => {
  const ask = async () => {
    const answer = await owner.call('POST', `/api/videos/${videoId}/otp`, { body: {}, headers: { 'Idempotency-Key': 'a-day' } })
    return ((await answer.json()) as { otp: string }).otp
  }
  const first = await ask()
  await restartAfter(23 * HOUR_S)
  expect(await ask()).toBe(first)
  await restartAfter(HOUR_S)
  const second = await ask()
  expect(second).not.toBe(first)
  expect(await ask()).toBe(second)
})
