import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { colorOf, listFiles } from './sample-files.ts'

// A frame of a video as its poster.

let folder: string
let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reelgate-frame-'))
  const path = join(folder, 'red-then-blue.mp4')
  const colors = ['red', 'blue'].flatMap((color) => ['-f', 'lavfi', '-i', `color=${color}:size=320x180:rate=25:duration=3`])
  const args = [...colors, '-filter_complex', 'concat=n=2:v=1', '-c:v', 'libx264', '-pix_fmt', 'yuv420p', path]
  await promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...args])
  reelgate = await startSharedReelgate()
  videoId = await reelgate.owner.readyVideo(path, 'Red, then blue')
})
afterAll(async () => {
  await reelgate?.remove()
  await rm(folder, { recursive: true, force: true })
})

const choose = (time: unknown, id = videoId) =>
  reelgate.owner.call('POST', `/api/videos/${id}/files`, { body: { type: 'poster', time } })

async function shownColor(): Promise<'red' | 'blue'> {
  const { poster } = await reelgate.owner.video(videoId)
  const [red = 0, , blue = 0] = await colorOf(Buffer.from(await (await fetch(poster)).arrayBuffer()))
  return red > blue ? 'red' : 'blue'
}

test('the frame at the chosen second becomes the main poster, in both sizes, and older ones are disabled', async () => {
  for (const [time, color] of [
    [4.5, 'blue'],
    [1, 'red'],
    [5.9, 'blue'],
  ] as const) {
    const response = await choose(time)
    expect([time, response.status]).toEqual([time, 200])
    const sizes = (await response.json()) as { id: number; format: string; video_width: number; video_height: number }[]
    expect(sizes).toMatchObject([
      { format: 'jpeg', video_width: 320, video_height: 180 },
      { format: 'jpeg', video_width: 320, video_height: 180 },
    ])
    expect([time, await shownColor()]).toEqual([time, color])
  }
  const posters = (await listFiles(reelgate.owner, videoId)).filter(({ type, enabled }) => type === 'poster' && enabled === 1)
  expect(posters).toHaveLength(2)
})

test('a form may say it, too', async () => {
  const headers = { Authorization: `Apisecret ${reelgate.owner.apiKey}` }
  const body = new URLSearchParams({ type: 'poster', time: '0.5' })
  const response = await fetch(`${reelgate.url}/api/videos/${videoId}/files`, { method: 'POST', headers, body })
  expect(response.status).toBe(200)
  expect(await shownColor()).toBe('red')
})

test.each([-1, 6.5, 1e9, '1e3', 'now', null])(
  'the time %s, which is none of the video, is refused and changes no poster',
  async (time) => {
    const before = (await reelgate.owner.video(videoId)).poster
    expect((await choose(time)).status).toBe(400)
    expect((await reelgate.owner.video(videoId)).poster).toBe(before)
  },
)

test('a video without a file has no frame, and one of another account does not exist', async () => {
  expect((await choose(1, (await reelgate.owner.credentials('It will come')).videoId)).status).toBe(409)
  const other = await reelgate.newOwner('Another')
  const body = { type: 'poster', time: 1 }
  expect((await other.call('POST', `/api/videos/${videoId}/files`, { body })).status).toBe(404)
})
