import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { releaseKey } from '../../src/playback/serve.ts'
import { recordEnd } from '../../src/playback/sessions/live-session.ts'
import { startSharedReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import { answerOf, type Viewer } from '../viewer.ts'
import { openBarePlayback, outcomeOf } from './playback-deps.ts'

// An owner sees who watches, and stops them: playback-protocol.md, section 4.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let otherVideo: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  otherVideo = await reelgate.owner.readyVideo(await makeVideo(), 'Another video')
})
afterAll(() => reelgate.remove())

const STOPPED = [403, 'session-ended', 'stopped']

async function newViewer(options: Record<string, unknown> = {}, videoId = reelgate.videoId): Promise<Viewer & { otp: string }> {
  const viewer = reelgate.newViewer()
  const otp = await reelgate.owner.issueOtp(videoId, options)
  expect((await viewer.redeem(otp)).playing).toBe(true)
  expect(await answerOf(viewer.key(0))).toEqual([200])
  return Object.assign(viewer, { otp })
}

async function stop(target: Record<string, string>, owner = reelgate.owner): Promise<unknown> {
  return (await owner.call('DELETE', `/api/sessions?${new URLSearchParams(target)}`)).json()
}

async function list(filter: Record<string, string> = {}): Promise<{ session: string }[]> {
  const answer = await reelgate.owner.call('GET', `/api/sessions?${new URLSearchParams(filter)}`)
  return ((await answer.json()) as { rows: { session: string }[] }).rows
}

describe('a stop is immediate: no key, playlist or file is sent any more', () => {
  test.each<[string, (viewer: Viewer & { otp: string }, userId: string) => Record<string, string>]>([
    ['of a session', ({ state }) => ({ session: state.session })],
    ['of a viewer', (_, userId) => ({ userId })],
    ['of an OTP', ({ otp }) => ({ otp })],
  ])('%s', async (name, targetOf) => {
    const userId = `ann-${name.length}`
    const [viewer, other] = [await newViewer({ userId }), await newViewer({ userId: 'ben' })]
    expect(await stop(targetOf(viewer, userId))).toEqual({ message: 'Stopped', count: 1 })
    for (const ask of [() => viewer.key(0), () => viewer.call('playlist', 'main'), () => viewer.call('file', 'poster')])
      expect(await answerOf(ask())).toEqual(STOPPED)
    const beat = JSON.stringify({ state: 'playing', positionS: 1, rate: 1, bufferS: 5 })
    expect(await answerOf(viewer.call('beat', undefined, beat))).toEqual(STOPPED)
    viewer.newPage()
    expect((await viewer.reopen()).body).toMatchObject({ code: 'session-ended', why: 'stopped' })
    expect(await answerOf(other.key(0))).toEqual([200])
  })

  test('of a video: of all its viewers, and of no other video', async () => {
    const viewers = [await newViewer({}, otherVideo), await newViewer({ userId: 'carl' }, otherVideo)]
    const other = await newViewer()
    expect(await stop({ video: otherVideo })).toEqual({ message: 'Stopped', count: 2 })
    for (const viewer of viewers) expect(await answerOf(viewer.key(0))).toEqual(STOPPED)
    expect(await answerOf(other.key(0))).toEqual([200])
  })

  test('in the middle of any request of the viewer: what is asked after the answer is refused', async () => {
    for (let round = 0; round < 10; round++) {
      const viewer = await newViewer({ userId: 'dora' })
      const asking = Promise.all(Array.from({ length: 10 }, () => viewer.call('playlist', 'main')))
      await stop({ userId: 'dora' })
      expect(await answerOf(viewer.key(0))).toEqual(STOPPED)
      await asking
    }
  })

  test('also for a key that was asked for before, and is not sent yet', async () => {
    const playback = await openBarePlayback()
    const viewer = await playback.newPlayingViewer({ userId: 'ann' })
    const session = await playback.ask(viewer, 'key')
    const asking = outcomeOf(releaseKey(playback.deps, session, 0))
    recordEnd(session, playback.nowS(), 'stopped')
    expect(await asking).toBe('session-ended: stopped')
  })

  test('while the OTP is being redeemed: the session is there and stopped, or was not there yet', async () => {
    for (let round = 0; round < 10; round++) {
      const viewer = reelgate.newViewer()
      const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'emil' })
      await viewer.openPage()
      const redeeming = viewer.redeem(otp)
      const { count } = (await stop({ userId: 'emil' })) as { count: number }
      await redeeming
      if (count === 1) expect(await answerOf(viewer.key(0))).toEqual(STOPPED)
      await stop({ userId: 'emil' })
    }
  })
})

test('an OTP that is stopped before it is spent opens nothing', async () => {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  expect(await stop({ otp })).toEqual({ message: 'Stopped', count: 0 })
  expect((await reelgate.newViewer().redeem(otp)).body).toMatchObject({ code: 'otp-expired' })
})

test('a stopped viewer’s stream slot is free', async () => {
  const options = { userId: 'fay', streamLimit: 1 }
  await newViewer(options)
  await stop({ userId: 'fay' })
  await newViewer(options)
})

test('the list has who watches now, by viewer and by video, with where and since when', async () => {
  const viewer = await newViewer({ userId: 'gil' }, otherVideo)
  const row = {
    session: viewer.state.session,
    userId: 'gil',
    viewer: null,
    video: otherVideo,
    title: 'Another video',
    startedAt: expect.stringMatching(/^20\d\d-.*Z$/),
    lastSeenAt: expect.stringMatching(/^20\d\d-.*Z$/),
    address: '127.0.0.1',
    country: null,
    userAgent: 'node',
    drawnS: expect.any(Number),
    playedS: 0,
  }
  expect(await list({ userId: 'gil' })).toEqual([row])
  expect((await list({ video: otherVideo }))[0]).toEqual(row)
  expect(await list()).toContainEqual(row)
  await stop({ userId: 'gil' })
  expect(await list({ userId: 'gil' })).toEqual([])
})

test('another account neither sees nor stops anything', async () => {
  const viewer = await newViewer({ userId: 'hal' })
  const other = await reelgate.newOwner('Another owner')
  expect(await (await other.call('GET', '/api/sessions')).json()).toEqual({ rows: [] })
  const targets: Record<string, string>[] = [
    { session: viewer.state.session },
    { userId: 'hal' },
    { otp: viewer.otp },
    { video: reelgate.videoId },
  ]
  for (const target of targets) expect(await stop(target, other)).toEqual({ message: 'Stopped', count: 0 })
  const unspent = await reelgate.owner.issueOtp(reelgate.videoId)
  await stop({ otp: unspent }, other)
  expect((await reelgate.newViewer().redeem(unspent)).playing).toBe(true)
  expect(await answerOf(viewer.key(0))).toEqual([200])
})

test.each<Record<string, string>>([{}, { userId: 'a', session: 'b' }])(
  'a stop that names %j is refused, and says what it wants',
  async (target) => {
    expect(await stop(target)).toMatchObject({
      message: 'Name what to stop by one of session, userId, video and otp: DELETE /api/sessions?userId=ID.',
    })
  },
)

test('the command line lists and stops, too', async () => {
  const viewer = await newViewer({ userId: 'ida' })
  const listed = await reelgate.cli('session', 'list', 'owner', '--user-id', 'ida', '--json')
  expect(JSON.parse(listed.stdout)).toMatchObject([{ id: viewer.state.session, userId: 'ida' }])
  const stopped = await reelgate.cli('session', 'stop', 'owner', '--user-id', 'ida')
  expect([stopped.code, stopped.stdout]).toEqual([0, 'stopped      1\n'])
  expect(await answerOf(viewer.key(0))).toEqual(STOPPED)
  expect((await reelgate.cli('session', 'stop', 'owner')).code).toBe(2)
})
