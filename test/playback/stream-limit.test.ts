import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { prunePlayback } from '../../src/playback/prune.ts'
import { recordLeave, releaseKey } from '../../src/playback/serve.ts'
import { endSession, endSessionsOfVideos } from '../../src/playback/sessions/session-store.ts'
import { acquireStreamSlot, restoreStreamSlots } from '../../src/playback/sessions/stream-slot.ts'
import { untilFinished } from '../data-folder.ts'
import { slowTime } from '../faults/faked-clock.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { answerOf, type Viewer } from '../viewer.ts'
import { openBarePlayback, outcomeOf } from './playback-deps.ts'

// At most N streams of one viewer at a time: playback-protocol.md, section 7.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo(), env: slowTime() }) // no lease ends by itself
  videoId = reelgate.videoId
})
afterAll(() => reelgate?.remove())

/** Each test has a viewer of its own. */
let userId = 'ann-0'
beforeEach(() => {
  userId = `ann-${Number(userId.split('-')[1]) + 1}`
})

async function newScreen(options: Record<string, unknown>): Promise<Viewer> {
  const viewer = reelgate.newViewer()
  expect((await viewer.redeem(await reelgate.owner.issueOtp(videoId, options))).playing).toBe(true)
  return viewer
}
const newScreens = (count: number, options: Record<string, unknown>) =>
  Promise.all(Array.from({ length: count }, () => newScreen(options)))
const slots = () =>
  readRows<{ n: number; session_id: string }>(
    reelgate,
    'select n, session_id from stream_slot where user_id = ? order by n',
    userId,
  )

const beat = (viewer: Viewer, state = 'playing') =>
  answerOf(viewer.call('beat', undefined, JSON.stringify({ state, positionS: 1, rate: 1, bufferS: 5 })))
const LIMIT = [409, 'stream-limit']

describe('P10: a viewer’s limit of streams', () => {
  test('holds under fifty screens that request a key concurrently: three of three play, and keep playing', async () => {
    const screens = await newScreens(50, { userId, streamLimit: 3 })
    const outcomes = await Promise.all(screens.map(async (screen) => ({ screen, said: await answerOf(screen.key(0)) })))
    const playing = outcomes.filter(({ said }) => said[0] === 200).map(({ screen }) => screen)
    expect(playing).toHaveLength(3)
    for (const { screen, said } of outcomes) if (!playing.includes(screen)) expect(said).toEqual(LIMIT)
    expect(slots().map(({ n }) => n)).toEqual([1, 2, 3])
    expect(new Set(slots().map(({ session_id }) => session_id))).toEqual(new Set(playing.map(({ state }) => state.session)))

    const again = await Promise.all(screens.map((screen, i) => (i % 2 ? beat(screen) : answerOf(screen.key(0)))))
    for (const [i, screen] of screens.entries()) expect(again[i]).toEqual(playing.includes(screen) ? [200] : LIMIT)
    expect(slots()).toHaveLength(3)
  })

  test('is one slot for one screen, however many requests it sends concurrently', async () => {
    const [screen, other] = await newScreens(2, { userId, streamLimit: 2 })
    const answers = await Promise.all(Array.from({ length: 20 }, () => (screen ? answerOf(screen.key(0)) : [])))
    expect(new Set(answers.map(String))).toEqual(new Set(['200']))
    expect(slots()).toHaveLength(1)
    expect(await (other && answerOf(other.key(0)))).toEqual([200])
  })

  test('needs no place before play is pressed: opened pages, playlists and pauses take none', async () => {
    const [screen, waiting] = await newScreens(2, { userId, streamLimit: 1 })
    if (!screen || !waiting) throw new Error('there are two')
    expect((await waiting.call('playlist', 'main')).status).toBe(200)
    expect(await beat(waiting, 'paused')).toEqual([200])
    expect(slots()).toEqual([])
    expect(await beat(screen)).toEqual([200])
    expect(await beat(waiting, 'paused')).toEqual([200])
    expect(await beat(waiting, 'stalled')).toEqual(LIMIT)
  })

  test('gives the slot of a page that was closed to the next one immediately, if no new key was given for it', async () => {
    const [first, second] = await newScreens(2, { userId, streamLimit: 1 })
    if (!first || !second) throw new Error('there are two')
    expect(await beat(first)).toEqual([200])
    expect(await answerOf(second.key(0))).toEqual(LIMIT)
    expect((await first.call('leave', undefined, '{}')).status).toBe(200)
    expect(await answerOf(second.key(0))).toEqual([200])
    expect(await beat(first)).toEqual(LIMIT)
  })

  test('P22: keeps the slot of a page that is closed right after a new key, whatever other session of the viewer asks', async () => {
    const [first, ...others] = await newScreens(3, { userId, streamLimit: 1 })
    if (!first) throw new Error('there are three')
    expect(await answerOf(first.key(0))).toEqual([200])
    expect((await first.call('leave', undefined, '{}')).status).toBe(200)
    for (const screen of others)
      for (const ask of [() => beat(screen), () => answerOf(screen.key(0))]) expect(await ask()).toEqual(LIMIT)
    expect(slots().map(({ session_id }) => session_id)).toEqual([first.state.session])
  })

  test('is this viewer’s alone: other viewers, and who has no limit, play', async () => {
    expect(await answerOf((await newScreen({ userId, streamLimit: 1 })).key(0))).toEqual([200])
    expect(await answerOf((await newScreen({ userId, streamLimit: 1 })).key(0))).toEqual(LIMIT)
    for (const options of [{ userId: `${userId}x`, streamLimit: 1 }, { userId }, {}])
      expect(await answerOf((await newScreen(options)).key(0))).toEqual([200])
    const ben = await reelgate.newOwner('Ben')
    const bensVideo = await ben.readyVideo(await makeVideo())
    await untilFinished(reelgate, bensVideo)
    const viewer = reelgate.newViewer()
    await viewer.redeem(await ben.issueOtp(bensVideo, { userId, streamLimit: 1 }))
    expect(await answerOf(viewer.key(0))).toEqual([200])
  })

  test('is over all videos of the account', async () => {
    const other = await reelgate.owner.readyVideo(await makeVideo(), 'Another video')
    await untilFinished(reelgate, other)
    expect(await answerOf((await newScreen({ userId, streamLimit: 1 })).key(0))).toEqual([200])
    const viewer = reelgate.newViewer()
    await viewer.redeem(await reelgate.owner.issueOtp(other, { userId, streamLimit: 1 }))
    expect(await answerOf(viewer.key(0))).toEqual(LIMIT)
  })

  test('survives kill -9: after the restart no other session takes it, and the one that played continues', async () => {
    const [playing, waiting] = await newScreens(2, { userId, streamLimit: 1 })
    if (!playing || !waiting) throw new Error('there are two')
    expect(await answerOf(playing.key(0))).toEqual([200])
    await reelgate.kill()
    await reelgate.restart()
    await Promise.all([playing.openPage(), waiting.openPage()])
    expect(await answerOf(waiting.key(0))).toEqual(LIMIT)
    expect(await answerOf(playing.key(0))).toEqual([200])
    expect(slots()).toHaveLength(1)
  })
})

describe('P10: an account’s limit of streams', () => {
  test('is for each viewer whose OTP does not say another, from the next link on; 0 takes it away', async () => {
    const owner = await reelgate.newOwner('Cleo')
    const video = await owner.readyVideo(await makeVideo())
    await untilFinished(reelgate, video)
    const ask = async (options: Record<string, unknown>) => {
      const viewer = reelgate.newViewer()
      await viewer.redeem(await owner.issueOtp(video, options))
      return answerOf(viewer.key(0))
    }
    expect((await reelgate.cli('account', 'set', 'Cleo', '--stream-limit', '1')).code).toBe(0)
    expect(await ask({ userId })).toEqual([200])
    expect(await ask({ userId })).toEqual(LIMIT)
    expect(await ask({ userId, streamLimit: 2 })).toEqual([200])
    expect(await ask({})).toEqual([200])
    await reelgate.cli('account', 'set', 'Cleo', '--stream-limit', '0')
    expect(await ask({ userId })).toEqual([200])
    for (const odd of ['101', '-1', 'two'])
      expect((await reelgate.cli('account', 'set', 'Cleo', '--stream-limit', odd)).code).toBe(2)
  })

  test('may stop the oldest screen instead of refusing the newest: its viewer sees why, and cannot come back', async () => {
    const owner = await reelgate.newOwner('Dora')
    const video = await owner.readyVideo(await makeVideo())
    await untilFinished(reelgate, video)
    expect((await reelgate.cli('account', 'set', 'Dora', '--when-full', 'stop-oldest')).code).toBe(0)
    const screens = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const viewer = reelgate.newViewer()
        await viewer.redeem(await owner.issueOtp(video, { userId, streamLimit: 2 }))
        return viewer
      }),
    )
    const [first, second, third, ...more] = screens
    if (!first || !second || !third) throw new Error('there are twelve')
    for (const screen of [first, second, third]) expect(await answerOf(screen.key(0))).toEqual([200])
    const TAKEN = [403, 'session-ended', 'taken']
    expect(await answerOf(first.key(0))).toEqual(TAKEN)
    expect(await beat(first)).toEqual(TAKEN)
    for (const screen of [second, third]) expect(await beat(screen)).toEqual([200])
    expect(slots()).toHaveLength(2)

    // Of many concurrent ones two are left, and no ended one has taken a place.
    await Promise.all(more.map((screen) => answerOf(screen.key(0))))
    const left = await Promise.all(screens.map(async (screen) => ({ screen, said: await beat(screen, 'paused') })))
    const open = left.filter(({ said }) => said[0] === 200).map(({ screen }) => screen.state.session)
    expect(open).toHaveLength(2)
    expect(new Set(slots().map(({ session_id }) => session_id))).toEqual(new Set(open))
    await reelgate.kill()
    await reelgate.restart()
    await first.openPage()
    expect(await answerOf(first.key(0))).toEqual(TAKEN)
  })
})

describe('the option streamLimit', () => {
  test.each([1, 100, '1', '37'])('of %j is taken', async (streamLimit) => {
    expect(await reelgate.owner.issueOtp(videoId, { userId, streamLimit })).toHaveLength(64)
  })

  test.each([0, 101, -1, 1.5, '0', '101', '1e1', 'two', true, [2], {}])('of %j is 400', async (streamLimit) => {
    const response = await reelgate.owner.call('POST', `/api/videos/${videoId}/otp`, { body: { userId, streamLimit } })
    expect({ status: response.status, body: await response.json() }).toMatchObject({
      status: 400,
      body: { code: 'invalid', message: 'streamLimit must be a whole number from 1 to 100.' },
    })
  })

  test('without a userId is 400 at both interfaces', async () => {
    const current = await reelgate.owner.call('POST', `/api/videos/${videoId}/otp`, { body: { streamLimit: 2 } })
    const v2 = await fetch(`${reelgate.url}/v2/otp?video=${videoId}`, {
      method: 'POST',
      body: new URLSearchParams({ clientSecretKey: reelgate.owner.apiKey, streamLimit: '2' }),
    })
    for (const response of [current, v2]) {
      expect(response.status).toBe(400)
      expect(await response.text()).toContain('send userId, too')
    }
  })
})

describe('a lease of 18 seconds', () => {
  const ANN = { userId: 'ann', streamLimit: 1 }

  async function openTwoScreens() {
    const playback = await openBarePlayback()
    const [first, second] = [await playback.newPlayingViewer(ANN), await playback.newPlayingViewer(ANN)]
    await playback.beat(first)
    return { playback, first, second }
  }

  test('ends by itself when nothing renews it: then, and not a second before, another screen may play', async () => {
    const { playback, first, second } = await openTwoScreens()
    playback.passS(17)
    expect(await outcomeOf(playback.beat(second))).toBe('stream-limit')
    playback.passS(1)
    expect(await outcomeOf(playback.beat(second))).toBe('allowed')
    expect(await outcomeOf(playback.beat(first))).toBe('stream-limit')
  })

  test('is kept by a beat every six seconds, also when two in a row are lost', async () => {
    const { playback, first, second } = await openTwoScreens()
    for (const passedS of [6, 6, 17, 6]) {
      playback.passS(passedS)
      expect(await outcomeOf(playback.beat(second))).toBe('stream-limit')
      expect(await outcomeOf(playback.beat(first))).toBe('allowed')
    }
  })

  test('is given up by a pause, and taken again by play when no other session has it', async () => {
    const { playback, first, second } = await openTwoScreens()
    playback.passS(6)
    await playback.beat(first, 'paused')
    playback.passS(12)
    await playback.beat(first, 'paused')
    expect(await outcomeOf(playback.beat(first))).toBe('allowed') // lapsed, and still named: it was not taken
    await playback.beat(first, 'paused')
    playback.passS(18)
    expect(await outcomeOf(playback.beat(second))).toBe('allowed')
    expect(await outcomeOf(playback.beat(first))).toBe('stream-limit')
  })

  test('that was live when the clock was last saved is whole again after a restart, however long that took', async () => {
    const { playback, first, second } = await openTwoScreens()
    const savedAtStartS = playback.nowS() + 5
    playback.passS(1800)
    const clock = { nowS: playback.nowS, savedAtStartS }
    await restoreStreamSlots({ write: playback.write, clock })
    playback.crash()
    playback.passS(17)
    expect(await outcomeOf(playback.beat(second))).toBe('stream-limit')
    playback.passS(1)
    expect(await outcomeOf(playback.beat(second))).toBe('allowed')
    expect(await outcomeOf(playback.beat(first))).toBe('stream-limit')
  })

  test('that had lapsed before is not revived by a restart', async () => {
    const { playback, second } = await openTwoScreens()
    playback.passS(18)
    await restoreStreamSlots({
      write: playback.write,
      clock: { nowS: playback.nowS, savedAtStartS: playback.nowS() },
    })
    expect(await outcomeOf(playback.beat(second))).toBe('allowed')
  })

  test('is free immediately when its session ends, and when its video is deleted', async () => {
    const { playback, first, second } = await openTwoScreens()
    await playback.beat(first, 'paused')
    await playback.write((tx) => endSession(tx, first.state.session, playback.nowS(), 'time'))
    expect(await outcomeOf(playback.beat(second))).toBe('allowed')
    await playback.write((tx) => endSessionsOfVideos(tx, [playback.videoId], playback.nowS(), 'video-deleted'))
    expect(await playback.db.selectFrom('streamSlot').selectAll().execute()).toEqual([])
  })

  test('P22: lasts for its whole time after a new key, though the page is closed', async () => {
    const { playback, first, second } = await openTwoScreens()
    expect(await playback.key(first, 0)).toBe(undefined)
    playback.passS(5)
    await playback.leave(first)
    playback.passS(12)
    expect(await outcomeOf(playback.beat(second))).toBe('stream-limit')
    playback.passS(1)
    expect(await outcomeOf(playback.beat(second))).toBe('allowed')
  })

  test('is over when a page is closed that asked only for keys its viewer had before', async () => {
    const { playback, first, second } = await openTwoScreens()
    expect(await playback.key(first, 0)).toBe(undefined)
    playback.passS(18)
    expect(await playback.key(first, 0)).toBe(undefined)
    await playback.leave(first)
    expect(await outcomeOf(playback.beat(second))).toBe('allowed')
  })

  test('lasts after a new key in whatever order the key and the closing of the page arrive', async () => {
    for (const isKeyFirst of [true, false]) {
      const { playback, first, second } = await openTwoScreens()
      const [session, leaving] = [await playback.ask(first, 'key'), await playback.ask(first, 'leave')]
      const requests = [() => releaseKey(playback.deps, session, 0), () => recordLeave(playback.deps, leaving)]
      await Promise.all((isKeyFirst ? requests : requests.reverse()).map((request) => request()))
      expect(await outcomeOf(playback.beat(second))).toBe('stream-limit')
    }
  })

  test('is not given to a session that ends while it asks', async () => {
    const playback = await openBarePlayback()
    const [first, second] = [await playback.newPlayingViewer(ANN), await playback.newPlayingViewer(ANN)]
    const session = await playback.ask(first)
    await playback.write((tx) => endSession(tx, session.row.id, playback.nowS(), 'stopped'))
    expect(await outcomeOf(acquireStreamSlot(playback.deps, session))).toBe('stream-limit')
    expect(await outcomeOf(playback.beat(second))).toBe('allowed')
  })

  test('is counted with the limit of the OTP that asks', async () => {
    const { playback } = await openTwoScreens()
    const wider = await playback.newPlayingViewer({ userId: 'ann', streamLimit: 2 })
    expect(await outcomeOf(playback.beat(wider))).toBe('allowed')
    expect(await outcomeOf(playback.beat(await playback.newPlayingViewer({ userId: 'ann', streamLimit: 2 })))).toBe(
      'stream-limit',
    )
  })

  test('is forgotten a day after its end', async () => {
    const { playback } = await openTwoScreens()
    const count = () => playback.db.selectFrom('streamSlot').selectAll().execute()
    playback.passS(18 + 24 * 3600)
    await prunePlayback(playback, 90)
    expect(await count()).toHaveLength(1)
    playback.passS(1)
    await prunePlayback(playback, 90)
    expect(await count()).toEqual([])
  })
})
