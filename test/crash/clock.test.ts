import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { newMovableClock } from '../faults/faked-clock.ts'
import { startLoad } from '../faults/load.ts'
import { DATABASE } from '../postgres.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampledTests, sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { answerOf } from '../viewer.ts'

// The wall clock of a real server process is moved from outside, by libfaketime; its monotonic clock continues, as on a real machine.

const DAY_S = 24 * 3600

/** A server with a finished video, whose wall clock is what `set` says, in seconds ahead of the true one. */
async function startClocked(): Promise<{ reelgate: Reelgate; set(aheadS: number): Promise<void> }> {
  const { env, set, remove } = await newMovableClock('wall clock')
  onTestFinished(remove)
  return { reelgate: await startReelgate({ env, video: await makeVideo() }), set }
}

/** How far ahead the server believes to be. */
async function aheadS({ owner }: Reelgate): Promise<number> {
  const { videoId } = await owner.credentials('what time is it?')
  const aheadS = Number((await owner.video(videoId)).upload_time) - Date.now() / 1000
  await owner.delete([videoId])
  return aheadS
}

const KEPT = [
  'video',
  'source',
  'segment',
  'chunk',
  'generation',
  'rendition',
  'file',
  'account',
  'api_key',
  'upload_policy',
  'tag',
]
const countsOf = (reelgate: Reelgate, ...tables: string[]) =>
  Object.fromEntries(tables.map((table) => [table, readRows(reelgate, `select 1 from ${table}`).length]))

/** An OTP lives a year at most. */
const LONGEST_TTL_S = 365 * DAY_S

const STEPS: [string, number][] = [
  ['a day ahead', DAY_S + 60],
  ['a day behind', -DAY_S - 60],
  ['ten years ahead', 3653 * DAY_S],
  // More seconds than a 32-bit number holds (C04).
  ['in 2039', Math.floor(Date.UTC(2039, 0, 1) / 1000 - Date.now() / 1000)],
]

test.each(sampleOf('steps of the clock', STEPS, 1))(
  'C01, C04: a server whose clock is %s starts, keeps everything, and keeps its rules',
  async (_, offsetS) => {
    const { reelgate, set } = await startClocked()
    const { owner, videoId } = reelgate
    await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['kept'] } })
    const viewer = reelgate.newViewer()
    await viewer.redeem(await owner.issueOtp(videoId))
    const unspent = await owner.issueOtp(videoId, { ttl: 3600 })
    const longLived = await owner.issueOtp(videoId, { ttl: LONGEST_TTL_S })
    const credentials = await owner.credentials('not sent yet')
    const kept = countsOf(reelgate, ...KEPT)
    const [before] = (await owner.list('?limit=2')).rows.slice(1)

    await reelgate.stop()
    await set(offsetS)
    await reelgate.restart()
    // Whose upload never came, it goes three days after its credentials were issued. On PostgreSQL time is its clock's, which stays.
    const isLater = offsetS > 0 && DATABASE === 'sqlite'
    const abandoned = isLater && offsetS > 3 * DAY_S ? 1 : 0
    const left = { ...kept, video: (kept.video ?? 0) - abandoned, upload_policy: (kept.upload_policy ?? 0) - abandoned }
    await expect.poll(() => countsOf(reelgate, ...KEPT)).toEqual(left)
    expect(reelgate.output()).not.toMatch(/"level":[56]0/)
    expect(Math.abs((await aheadS(reelgate)) - offsetS)).toBeLessThan(60)
    expect(await owner.video(videoId)).toEqual(before)

    // Time only moves forward: what a later clock has ended, an earlier one does not begin again.
    expect((await reelgate.newViewer().redeem(longLived)).playing).toBe(!isLater || offsetS < LONGEST_TTL_S)
    expect((await reelgate.newViewer().redeem(unspent)).playing).toBe(!isLater)
    await viewer.openPage()
    const [status, code] = await answerOf(viewer.key(0))
    expect([status, code]).toEqual(isLater ? [403, expect.stringMatching(/session-ended|not-allowed/)] : [200, undefined])
    expect((await owner.send(credentials, new Blob(['no video']))).status).toBe(offsetS > 0 ? 403 : 201)
    const newcomer = await owner.readyVideo(await makeVideo({ seconds: 1 }), 'made at another time')
    const otp = await owner.issueOtp(newcomer)
    expect((await reelgate.newViewer().redeem(otp)).playing).toBe(true)
    expect((await reelgate.newViewer().redeem(otp)).body.code).toBe('otp-used')
    const { rows } = await owner.list()
    expect(rows[0]?.id).toBe(newcomer)
    expect(rows.every(({ length }) => length >= 0)).toBe(true)

    // And with the right time again.
    await untilFinished(reelgate, newcomer)
    await reelgate.stop()
    await set(0)
    await reelgate.restart()
    expect((await owner.list()).rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id))
    const refused = await reelgate.newViewer().redeem(unspent)
    expect(refused.body.code).toMatch(isLater ? /otp-expired|otp-unknown/ : /otp-used/)
    expect((await reelgate.newViewer().redeem(await owner.issueOtp(videoId))).playing).toBe(true)
    expect((await owner.send(await owner.credentials('again'), new Blob(['no video']))).status).toBe(201)
  },
  180_000,
)

const { test: jump, draw } = sampledTests('clocks that jump under live sessions', 1)

jump(
  'C02: a clock that steps back an hour under live OTPs, sessions and encodes revives no OTP, frees no stream’s slot and begins no chunk twice',
  async () => {
    const { reelgate, set, owner, videoId, viewer, rival } = await startWithRivals()
    const [short, live] = [await owner.issueOtp(videoId, { ttl: 1 }), await owner.issueOtp(videoId, { ttl: 600 })]
    const credentials = await owner.credentials('sent after the step')
    await pause(2000) // the OTP's life: the monotonic clock cannot be moved
    expect((await reelgate.newViewer().redeem(short)).body.code).toBe('otp-expired')
    const encoded = await uploadUntilEncoding(reelgate)

    expect((await viewer.key(0)).status).toBe(200)
    await set(-3600)
    expect(await answerOf(rival.key(0))).toContain('stream-limit')
    expect((await viewer.key(0)).status).toBe(200)
    expect(Math.abs((await aheadS(reelgate)) + 3600)).toBeLessThan(60)
    expect((await reelgate.newViewer().redeem(short)).body.code).toBe('otp-expired')
    expect((await reelgate.newViewer().redeem(live)).playing).toBe(true)
    const issued = await owner.issueOtp(videoId, { ttl: 600 })
    expect((await owner.send(credentials, new Blob(['no video']))).status).toBe(201)
    await untilFinished(reelgate, encoded)
    expect(readRows(reelgate, 'select 1 from chunk where attempt <> 1')).toEqual([])

    expect((await viewer.key(0)).status).toBe(200)
    await set(0)
    expect(await answerOf(rival.key(0))).toContain('stream-limit')
    expect((await viewer.key(0)).status).toBe(200)
    expect((await reelgate.newViewer().redeem(issued)).playing).toBe(true)
    expect((await reelgate.newViewer().redeem(short)).body.code).toBe('otp-expired')
    expect(reelgate.output()).not.toMatch(/"level":[56]0/)
  },
)

jump(
  'C03, F-28: a clock that jumps by an hour and by a day under load takes no stream’s slot, ends no session and begins no chunk twice',
  async () => {
    const { reelgate, set, owner, videoId, viewer, rival } = await startWithRivals()
    expect((await viewer.key(0)).status).toBe(200)
    const encoded = await uploadUntilEncoding(reelgate)

    const load = startLoad(owner, videoId, 4)
    for (const aheadS of [3600, 0, DAY_S, 0, -3600, 0, -DAY_S, 0]) {
      await set(aheadS)
      await load.goesOn(20)
      expect((await viewer.key(0)).status).toBe(200)
      expect(await answerOf(rival.key(0))).toContain('stream-limit')
    }
    await load.stop()
    expect(load.odd).toEqual([])
    expect((await reelgate.newViewer().redeem(load.otps[0] ?? '')).playing).toBe(true)
    await untilFinished(reelgate, encoded)
    expect(readRows(reelgate, 'select 1 from chunk where attempt <> 1')).toEqual([])
    expect(reelgate.output()).not.toMatch(/"level":[56]0/)
  },
)

draw()

/** A server with a settable clock, and two browsers of a viewer who may play in one of them. */
async function startWithRivals() {
  const { reelgate, set } = await startClocked()
  const { owner, videoId } = reelgate
  const [viewer, rival] = [reelgate.newViewer(), reelgate.newViewer()]
  for (const browser of [viewer, rival]) await browser.redeem(await owner.issueOtp(videoId, { userId: 'ann', streamLimit: 1 }))
  return { reelgate, set, owner, videoId, viewer, rival }
}

/** @returns the id of a video of which a chunk is being encoded */
async function uploadUntilEncoding(reelgate: Reelgate): Promise<string> {
  const encoded = await reelgate.owner.upload('being encoded', await makeVideo({ seconds: 24, size: '160x90' }))
  const running = () => readRows(reelgate, `select 1 from chunk where video_id = ? and state = 'running'`, encoded).length
  await expect.poll(running, { interval: 10 }).toBeGreaterThan(0)
  return encoded
}
