import { expect, test } from 'vitest'
import { makeLanguages, TONES } from '../browser/tones.ts'
import { slowTime } from '../faults/faked-clock.ts'
import { startReelgate } from '../reelgate.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist, readNames, type Viewer } from '../viewer.ts'
import { stretchVideo } from './stretched-video.ts'

// What is earned while they ask is next to nothing, however busy the machine is: time passes slowly for the servers.

test('a key that comes too early is answered with the time to wait and the speed to play at until then', async () => {
  const reelgate = await startReelgate({ video: await makeVideo(), env: slowTime() })
  stretchVideo(reelgate, 3600)
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'ann' }))
  const { window, refused } = await takeKeys(viewer, 0)
  expect(window).toBeGreaterThanOrEqual(50) // ten minutes
  const body: { waitMs: number } = JSON.parse(await refused.text())
  expect([refused.status, body]).toEqual([
    429,
    {
      code: 'key-pace',
      message: 'The next part of the video can be played in a moment.',
      waitMs: expect.any(Number),
      maxRate: expect.closeTo(5 / 3, 2),
      requestId: expect.any(String),
    },
  ])
  expect(body.waitMs).toBeGreaterThan(0)
  expect(body.waitMs).toBeLessThanOrEqual(7300)
  expect(Number(refused.headers.get('retry-after'))).toBe(Math.max(1, Math.ceil(body.waitMs / 1000)))
  expect((await viewer.key(0)).status).toBe(200) // what was released is free

  const other = reelgate.newViewer()
  await other.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'ann' }))
  expect((await takeKeys(other, window)).window).toBeLessThanOrEqual(window + 1) // what was earned since, not ten minutes more

  await reelgate.stop()
  await reelgate.restart()
  await viewer.openPage()
  expect((await takeKeys(viewer, window)).window).toBeLessThanOrEqual(window + 1)

  /** Asks for keys from a window on. @returns the first that came too early */
  async function takeKeys(viewer: Viewer, from: number): Promise<{ window: number; refused: Response }> {
    for (let window = from; ; window++) {
      const answer = await viewer.key(window)
      if (answer.status !== 200) return { window, refused: answer }
    }
  }
})

test('T-20: a viewer who changes the language with each segment pays once for a window, and all languages together give no more keys than one', async () => {
  const reelgate = await startReelgate({ video: await makeLanguages(TONES, 10), env: slowTime() })
  stretchVideo(reelgate, 3600)
  const takeAll = async (count: number) => {
    const viewer = reelgate.newViewer()
    await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: `with-${count}` }))
    const names = readNames(await viewer.playlist('main')).slice(0, count)
    const windowsOf = async (name: string) =>
      readMediaPlaylist(await viewer.playlist(name)).segments.map(({ keyUri }) => Number(/\d+$/.exec(keyUri)))
    const windows = await Promise.all(names.map(windowsOf))
    const keys = new Map<number, string>()
    for (let n = 0; ; n++)
      for (const ofTrack of windows) {
        const window = ofTrack[n] ?? expect.fail('no key was refused')
        const answer = await viewer.key(window)
        if (answer.status === 429) return keys
        expect(answer.status).toBe(200)
        const key = Buffer.from(await answer.arrayBuffer()).toString('hex')
        expect(keys.get(window) ?? key).toBe(key)
        keys.set(window, key)
      }
  }
  const [one, all] = [await takeAll(1), await takeAll(4)]
  // Ten minutes.
  for (const keys of [one, all]) {
    expect(keys.size).toSatisfy((size: number) => size >= 50 && size <= 51)
    expect(Math.max(...keys.keys())).toBe(keys.size - 1)
  }
  for (const [window, key] of all) expect(one.get(window) ?? key).toBe(key)
})
