import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { bytesOf, readMediaPlaylist, type Viewer } from '../viewer.ts'

// A video that is deleted while it is watched.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
let viewer: Viewer
let otp: string
beforeEach(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  videoId = reelgate.videoId
  otp = await reelgate.owner.issueOtp(videoId)
  viewer = reelgate.newViewer()
  await viewer.redeem(otp)
  expect((await viewer.key(0)).status).toBe(200)
})

afterEach(() => reelgate.remove())

const ENDED = {
  status: 403,
  body: { code: 'session-ended', why: 'video-deleted', message: expect.any(String), requestId: expect.any(String) },
}
const answerOf = async (response: Response) => ({ status: response.status, body: await response.json() })

describe('O07: after the deletion', () => {
  test('the session has ended for every operation, and its holder gets the reason', async () => {
    await reelgate.owner.delete([videoId])
    expect(await answerOf(await viewer.key(0))).toEqual(ENDED)
    expect(await answerOf(await viewer.call('playlist', 'main'))).toEqual(ENDED)
    expect(await answerOf(await viewer.call('playlist', '1'))).toEqual(ENDED)
    expect(
      await answerOf(await viewer.call('beat', undefined, '{"state":"playing","positionS":1,"rate":1,"bufferS":1}')),
    ).toEqual(ENDED)
    viewer.newPage()
    expect(await viewer.reopen()).toMatchObject(ENDED)
    expect(await viewer.redeem(otp)).toMatchObject(ENDED)
    expect((await reelgate.newViewer().redeem(otp)).body.code).toBe('otp-used')
  })

  test('the same is said after a restart', async () => {
    await reelgate.owner.delete([videoId])
    await reelgate.stop()
    await reelgate.restart()
    await viewer.openPage()
    expect(await answerOf(await viewer.key(0))).toEqual(ENDED)
  })

  test('nothing of the video is served, and no key that opens it is left', async () => {
    const base = `${reelgate.url}/play/${viewer.state.session}/playlist/`
    const { init, segments } = readMediaPlaylist(await viewer.playlist('1'))
    const video = await reelgate.owner.video(videoId)
    await reelgate.owner.delete([videoId])
    for (const uri of [init, segments[0]?.uri ?? '']) {
      const response = await fetch(new URL(uri, base))
      expect(await answerOf(response)).toMatchObject({ status: 403, body: { code: 'video-gone' } })
    }
    await expect.poll(() => readRows(reelgate, 'select id from video where id = ?', videoId)).toEqual([])
    for (const uri of [init, segments[0]?.uri ?? '', ...video.posters.map(({ posterUrl }) => posterUrl)]) {
      expect((await fetch(new URL(uri, base))).status).not.toBe(200)
    }
    expect(
      readRows(reelgate, 'select 1 from generation where video_id = ? and wrapped_content_key is not null', videoId),
    ).toEqual([])
  })

  test('of twenty requests for keys while it is deleted, each gets the whole key or a refusal', async () => {
    const asked = Array.from({ length: 20 }, () => viewer.key(0))
    const [answers] = await Promise.all([Promise.all(asked), reelgate.owner.delete([videoId])])
    for (const answer of answers) {
      if (answer.status === 200) expect((await answer.arrayBuffer()).byteLength).toBe(16)
      else expect(await answerOf(answer)).toEqual(ENDED)
    }
    expect(await answerOf(await viewer.key(0))).toEqual(ENDED)
  })
})

test('P16: a segment asked for while its video is deleted is sent whole or refused, never cut', async () => {
  const base = `${reelgate.url}/play/${viewer.state.session}/playlist/`
  const addresses = ['1', '2'].flatMap(async (name) => {
    const { init, segments } = readMediaPlaylist(await viewer.playlist(name))
    return [init, ...segments.map(({ uri }) => uri)].map((uri) => new URL(uri, base).href)
  })
  const wholes = new Map<string, Buffer>()
  for (const address of (await Promise.all(addresses)).flat()) wholes.set(address, await bytesOf(address))
  expect(wholes.size).toBeGreaterThan(3)

  let deleted = false
  const outcomes: number[] = []
  async function ask(address: string, whole: Buffer) {
    const wasDeleted = deleted
    const response = await fetch(address)
    const bytes = Buffer.from(await response.arrayBuffer()) // throws where fewer bytes come than were announced
    outcomes.push(response.status)
    if (response.status === 200) expect([wasDeleted, bytes.equals(whole)]).toEqual([false, true])
    else expect([response.status, JSON.parse(bytes.toString()).code]).toEqual([403, 'video-gone'])
  }
  const asking = Promise.all(
    Array.from({ length: 8 }, async () => {
      while (!deleted || outcomes.at(-1) === 200) for (const [address, whole] of wholes) await ask(address, whole)
    }),
  )
  await reelgate.owner.delete([videoId])
  deleted = true
  await asking
  expect(new Set(outcomes)).toEqual(new Set([200, 403]))
})

test('sessions of other videos continue', async () => {
  const doomed = await reelgate.owner.readyVideo(await makeVideo(), 'Doomed')
  await reelgate.owner.delete([doomed])
  expect((await viewer.key(0)).status).toBe(200)
})
