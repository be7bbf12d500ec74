import { openAsBlob } from 'node:fs'
import { expect, test } from 'vitest'
import type { UploadCredentials } from '../client.ts'
import { untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist, type Viewer } from '../viewer.ts'
import { play } from './replaced.ts'

// What viewers notice of a replacement, a trim, and an undo: nothing. Each of their requests is answered with 200.

const VIEWERS = 20

/** All that a player asks for of a rendition, again and again. @returns what it got each time */
async function watchOnce(viewer: Viewer): Promise<string> {
  const get = async (response: Promise<Response>) => {
    const { status, url, ...answer } = await response.then(async (r) => ({
      status: r.status,
      url: r.url,
      bytes: await r.bytes(),
    }))
    expect({ status, url, said: status === 200 ? '' : Buffer.from(answer.bytes).toString() }).toMatchObject({
      status: 200,
      said: '',
    })
    return Buffer.from(answer.bytes)
  }
  const [, name = ''] = /#EXT-X-STREAM-INF:.*\n(\S+)/.exec((await get(viewer.call('playlist', 'main'))).toString()) ?? []
  const playlist = readMediaPlaylist((await get(viewer.call('playlist', name))).toString())
  const base = `${viewer.url}/play/${viewer.state.session}/playlist/`
  const got = [await get(fetch(new URL(playlist.init, base)))]
  for (const { keyUri, uri } of playlist.segments) {
    got.push(await get(viewer.key(Number(keyUri.split('/').at(-1)))))
    got.push(await get(fetch(new URL(uri, base))))
  }
  return Buffer.concat(got).toString('base64')
}

test(`X36, X39: ${VIEWERS} viewers who watch see no error while the video is trimmed, replaced, and both are undone; budgets are those of the file`, async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 8, size: '96x64' }) })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const whole = await untilMade(reelgate)
  const crowd: { rounds: number; stop(): Promise<void> }[] = []
  const join = async () => {
    const viewer = await play(reelgate)
    const first = await watchOnce(viewer)
    let isWatching = true
    const member = {
      rounds: 0,
      async stop() {
        isWatching = false
        await watching
      },
    }
    const watch = async () => {
      while (isWatching) {
        expect(await watchOnce(viewer)).toBe(first)
        member.rounds++
      }
    }
    const watching = watch()
    watching.catch(() => undefined) // awaited when it is stopped
    crowd.push(member)
  }
  /** Each has asked for everything since. */
  const watchOn = async () => {
    const before = crowd.map(({ rounds }) => rounds)
    await expect.poll(() => crowd.every(({ rounds }, i) => rounds > (before[i] ?? rounds) + 1)).toBe(true)
  }

  for (let n = 0; n < VIEWERS; n++) await join()
  const ann = reelgate.newViewer()
  await ann.redeem(await owner.issueOtp(videoId, { userId: 'ann' }))
  const former = await watchOnce(ann)
  for (const { change, lengthS } of [
    { change: () => owner.call('PUT', `/api/videos/${videoId}/trim`, { body: { startS: 2, endS: 7 } }), lengthS: 5 },
    { change: () => owner.call('POST', `/api/videos/${videoId}/undo`), lengthS: 8 },
    { change: () => replace(reelgate), lengthS: 3 },
    { change: () => owner.call('POST', `/api/videos/${videoId}/undo`), lengthS: 8 },
  ]) {
    expect((await change()).ok).toBe(true)
    expect((await untilMade(reelgate)).length).toBeCloseTo(lengthS, 1)
    await watchOn()
    if (lengthS === 3) {
      const other = reelgate.newViewer()
      await other.redeem(await owner.issueOtp(videoId, { userId: 'ann' }))
      expect(await watchOnce(other)).not.toBe(former)
    }
    await join()
  }
  for (const member of crowd) await member.stop()

  // What ann got of the first file was paid for once, of the other from a budget of its own.
  const again = reelgate.newViewer()
  await again.redeem(await owner.issueOtp(videoId, { userId: 'ann' }))
  expect(await watchOnce(again)).toBe(former)
  const budgets = () =>
    readRows<{ source_number: number; released: Buffer; released_of: number }>(
      reelgate,
      "select source_number, released, released_of from key_budget where viewer like '%ann' and video_id = ? order by source_number",
      videoId,
    )
  await expect.poll(budgets).toMatchObject([{ source_number: 1, released_of: 1 }, { released_of: expect.any(Number) }])
  expect((await owner.video(videoId)).length).toBe(whole.length)
  expect(reelgate.output()).not.toMatch(/"level":[56]0/)
})

async function replace({ owner, videoId }: Reelgate): Promise<Response> {
  const issued = (await (await owner.call('PUT', `/api/videos/${videoId}`)).json()) as UploadCredentials
  return owner.send(issued, await openAsBlob(await makeVideo({ seconds: 3, size: '96x64' })))
}

async function untilMade({ owner, videoId }: Reelgate) {
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBe(undefined)
  return owner.video(videoId)
}
