import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Owner } from '../client.ts'
import { blobOf, findStoredSource, hasFolder, untilFinished } from '../data-folder.ts'
import { ffmpeg, newFolder } from '../encode/videos.ts'
import { startReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { PASS_ON, startWithPrograms } from './programs.ts'

const { test, draw } = sampledTests('encodes that are tried again', 2)

// A video that failed, tried again by its owner.

async function untilFailed(owner: Owner, videoId: string) {
  for (;;) {
    const video = await owner.video(videoId)
    if (/error|Not/.test(video.status)) return video
    await pause(50)
  }
}
const retry = (owner: Owner, videoId: string) => owner.call('POST', `/api/videos/${videoId}/retry`)

test('a video whose encoder failed is encoded again once the encoder works, and plays', async () => {
  const { reelgate, programs } = await startWithPrograms()
  await programs.becomes('ffmpeg', 'echo no luck >&2; exit 1')
  const videoId = await reelgate.owner.upload('A video', await makeVideo())
  expect(await untilFailed(reelgate.owner, videoId)).toMatchObject({ status: 'Encoding error' })
  await programs.becomes('ffmpeg', PASS_ON)
  expect((await retry(reelgate.owner, videoId)).status).toBe(200)
  await untilFinished(reelgate, videoId)
  const video = await reelgate.owner.video(videoId)
  expect(video.status).toBe('ready')
  expect(video.statusReason).toBeUndefined()
  expect(video.posters).toHaveLength(2)
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await reelgate.owner.issueOtp(videoId))).toMatchObject({ playing: true })
  expect((await viewer.key(0)).status).toBe(200)
})

test('what failed late is encoded under a new key, and nothing of the old encoding remains', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  changeRows(reelgate, "update video set status = 'Encoding error', status_reason = 'It broke.' where id = ?", videoId)
  expect((await retry(owner, videoId)).status).toBe(200)
  await untilFinished(reelgate, videoId)
  expect(readRows(reelgate, 'select number from generation where video_id = ?', videoId)).toEqual([{ number: 2 }])
  expect(readRows(reelgate, 'select 1 from segment where video_id = ? and generation = 1', videoId)).toEqual([])
  expect(await hasFolder(reelgate, 'segments', `${videoId}/1`)).toBe(false)
  expect((await owner.video(videoId)).status).toBe('ready')
})

test('I-02: what is left out of a video is said, also when it was encoded again after a failure', async () => {
  const reelgate = await startReelgate()
  const { owner } = reelgate
  const file = join(await newFolder(), 'tracks.mkv')
  const tones = Array.from({ length: 9 }, (_, n) => ['-f', 'lavfi', '-i', `sine=${220 * (n + 1)}:d=2`])
  const maps = tones.flatMap((_, n) => ['-map', `${n + 1}`])
  await ffmpeg('-i', await makeVideo({ seconds: 2 }), ...tones.flat(), '-map', '0:v', ...maps, '-c:v', 'copy', file)
  const videoId = await owner.upload('Nine tracks', file)
  await untilFinished(reelgate, videoId)
  const { statusReason } = await owner.video(videoId)
  expect(statusReason).toBe('Audio tracks 1, 2, 3, 4, 5, 6, 7, and 8 of 9 are played; track 9 is left out.')
  changeRows(reelgate, "update video set status = 'Encoding error', status_reason = 'It broke.' where id = ?", videoId)
  expect((await retry(owner, videoId)).status).toBe(200)
  await untilFinished(reelgate, videoId)
  expect(await owner.video(videoId)).toMatchObject({ status: 'ready', statusReason })
})

test('a file that is no video fails again, with its reason', async () => {
  const { owner } = await startReelgate()
  const upload = await owner.credentials('No video')
  await owner.send(upload, new Blob(['no video']))
  const before = await untilFailed(owner, upload.videoId)
  expect((await retry(owner, upload.videoId)).status).toBe(200)
  expect(await untilFailed(owner, upload.videoId)).toMatchObject({
    status: 'Not a media file',
    statusReason: before.statusReason,
  })
})

test('only a video that failed, of the own account, whose file exists, is tried again', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  expect((await retry(owner, videoId)).status).toBe(409)
  expect((await retry(owner, (await owner.credentials('It will come')).videoId)).status).toBe(409)
  changeRows(reelgate, "update video set status = 'Encoding error' where id = ?", videoId)
  expect((await retry(await reelgate.newOwner('Another'), videoId)).status).toBe(404)
  await blobOf(reelgate, 'sources', findStoredSource(reelgate, videoId)?.blob).remove()
  expect((await retry(owner, videoId)).status).toBe(409)
  expect((await owner.video(videoId)).status).toBe('Encoding error')
})

test('of ten requests for the same video one begins the work', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  changeRows(reelgate, "update video set status = 'Encoding error' where id = ?", videoId)
  const answers = await Promise.all(Array.from({ length: 10 }, () => retry(owner, videoId)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  await untilFinished(reelgate, videoId)
  expect(readRows(reelgate, 'select number from generation where video_id = ?', videoId)).toEqual([{ number: 2 }])
})

draw()
