import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { blobOf, findStoredSource, hasFolder, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { startReelgate as startProcess } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { decrypt, readMediaPlaylist, type Viewer } from '../viewer.ts'
import { PASS_ON, startWithPrograms } from './programs.ts'

// `reelgate video reencrypt`: what an operator does when the keys of a video have leaked.

test('P05: a video that is encrypted again plays meanwhile; then its sessions end, and no leaked key opens anything', async () => {
  const reelgate = await startProcess({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  const viewer = await play(reelgate)
  const rendition = await firstRendition(viewer)
  const before = await viewer.download(rendition)
  const leaked = Buffer.from(await (await viewer.key(0)).arrayBuffer())
  const oldPath = readMediaPlaylist(await viewer.playlist(rendition)).segments[0]?.uri ?? ''
  const base = `${reelgate.url}/play/${viewer.state.session}/playlist/`

  const started = await reelgate.cli('video', 'reencrypt', videoId, '--json')
  expect(started).toMatchObject({ code: 0, stdout: `${JSON.stringify({ videoId, started: true })}\n` })
  await reelgate.kill() // the new generation is a row by now: the next start encodes it
  await reelgate.restart()
  expect((await play(reelgate)).state.session).not.toBe('')
  await untilGeneration(reelgate, 2)

  // The old key and everything under it is gone, and its session ended.
  expect(readRows(reelgate, 'select number from generation where video_id = ?', videoId)).toEqual([{ number: 2 }])
  expect(readRows(reelgate, 'select number from segment where video_id = ? and generation = 1', videoId)).toEqual([])
  await expect.poll(() => hasFolder(reelgate, 'segments', `${videoId}/1`)).toBe(false)
  expect((await fetch(new URL(oldPath, base))).status).toBeGreaterThanOrEqual(400)
  await viewer.openPage()
  viewer.newPage()
  expect((await viewer.reopen()).body).toMatchObject({ code: 'session-ended', why: 'video-replaced' })

  // The same picture under another key.
  const later = await play(reelgate)
  expect((await later.download(rendition)).segments).toHaveLength(before.segments.length)
  const key = Buffer.from(await (await later.key(0)).arrayBuffer())
  expect(key).not.toEqual(leaked)
  const [segment] = readMediaPlaylist(await later.playlist(rendition)).segments
  const row = readRows<{ file: string }>(
    reelgate,
    'select file from segment where video_id = ? and rendition_id = ? and number = 0',
    videoId,
    Number(rendition),
  )[0]
  const stored = await blobOf(reelgate, 'segments', row?.file).read()
  const opened = (candidate: Buffer) => {
    try {
      return decrypt(stored, candidate, segment?.iv ?? Buffer.alloc(16))
        .subarray(4, 8)
        .toString('latin1')
    } catch {
      return 'nothing'
    }
  }
  expect(opened(key)).toMatch(/moof|styp|sidx/)
  expect(opened(leaked)).not.toMatch(/moof|styp|sidx/)
  expect((await owner.video(videoId)).status).toBe('ready')
})

test('a video is not encrypted again twice concurrently, nor one that is not there, nor without its uploaded file or a server', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { videoId } = reelgate
  const reencrypt = (id: string) => reelgate.cli('video', 'reencrypt', id)
  const refused = (words: RegExp) => ({ code: 1, stdout: '', stderr: expect.stringMatching(words) })
  expect(await reencrypt('f'.repeat(32))).toMatchObject(refused(/Video not found/))
  const { videoId: waiting } = await reelgate.owner.credentials('Not uploaded')
  expect(await reencrypt(waiting)).toMatchObject(refused(/This video is PRE-Upload: only one that is ready/))
  const source = blobOf(reelgate, 'sources', findStoredSource(reelgate, videoId)?.blob)
  await reelgate.stop()
  expect(await reencrypt(videoId)).toMatchObject(refused(/No server runs/))
  await reelgate.restart()
  const both = await Promise.all([reencrypt(videoId), reencrypt(videoId)])
  expect(both.map(({ code }) => code).sort()).toEqual([0, 1])
  expect(both.find(({ code }) => code === 1)).toMatchObject(refused(/is being encoded again already/))
  await untilGeneration(reelgate, 2)
  await source.write((await source.read()).subarray(0, 1000))
  expect(await reencrypt(videoId)).toMatchObject(refused(/was lost or changed on this server’s disk\. Upload it again/))
  expect((await play(reelgate)).state.session).not.toBe('')
})

test('F-24: a video that cannot be encoded again plays on with its old key, and the next attempt may succeed', async () => {
  const { reelgate, programs } = await startWithPrograms()
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  await untilFinished(reelgate, videoId)
  const installed = { ...reelgate, videoId }
  await programs.becomes('ffmpeg', 'echo no luck >&2; exit 1')
  expect(await reelgate.cli('video', 'reencrypt', videoId)).toMatchObject({ code: 0 })
  await expect.poll(() => reelgate.output()).toMatch(/next generation failed, the one before plays on/)
  expect((await reelgate.owner.video(videoId)).status).toBe('ready')
  expect(readRows(reelgate, 'select number from generation where video_id = ?', videoId)).toEqual([{ number: 1 }])
  expect((await (await play(installed)).key(0)).status).toBe(200)
  await expect.poll(() => hasFolder(reelgate, 'segments', `${videoId}/2`)).toBe(false)
  await programs.becomes('ffmpeg', PASS_ON)
  expect(await reelgate.cli('video', 'reencrypt', videoId)).toMatchObject({ code: 0 })
  await untilGeneration(installed, 3) // no number is given twice
  expect((await (await play(installed)).key(0)).status).toBe(200)
})

/** Each time as another person: who has seen the video before it was encrypted again has no new start of it. */
async function play(reelgate: Reelgate): Promise<Viewer> {
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: randomUUID() }))
  return viewer
}

async function firstRendition(viewer: Viewer): Promise<string> {
  const [, name = ''] = /#EXT-X-STREAM-INF:.*\n(\S+)/.exec(await viewer.playlist('main')) ?? []
  return name
}

async function untilGeneration(reelgate: Reelgate, number: number): Promise<void> {
  for (;;) {
    const [video] = readRows<{ generation: number }>(reelgate, 'select generation from video where id = ?', reelgate.videoId)
    if (video?.generation === number) return
    await pause(50)
  }
}
