import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { extractPosters } from '../../src/encode/extract-posters.ts'
import { footage } from '../footage.ts'
import { sampleOf } from '../sample.ts'
import { ffmpeg, newFolder, openVideo } from './videos.ts'

const SHAPES = [
  { size: '1280x720', posters: ['854×480', '426×240'] },
  { size: '320x180', posters: ['320×180', '320×180'] },
  { size: '360x640', posters: ['270×480', '136×240'] },
]

test.each(sampleOf('shapes of a poster', SHAPES, 1))(
  'the posters of a video of $size have its shape and are no larger',
  async ({ size, posters }) => {
    const folder = await newFolder()
    const file = path.join(folder, 'video.mp4')
    await ffmpeg('-f', 'lavfi', '-i', `testsrc2=s=${size}:r=5:d=3`, '-c:v', 'libx264', '-preset', 'ultrafast', file)
    const { sandbox, source, plan } = await openVideo(file)
    const made = await extractPosters(sandbox, source, plan)
    expect(made.map(({ widthPx, heightPx }) => `${widthPx}×${heightPx}`)).toEqual(posters)
    for (const { jpeg } of made) expect(jpeg.toString('hex', 0, 3)).toBe('ffd8ff')
  },
)

test('a video that begins in the dark has a poster that is not black', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mp4')
  const dark = "color=black:s=320x180:r=10:d=10,drawbox=c=white:t=fill:enable='gte(t,6)'"
  await ffmpeg('-f', 'lavfi', '-i', dark, '-c:v', 'libx264', '-g', '10', file)
  const { sandbox, source, plan } = await openVideo(file)
  const [poster] = await extractPosters(sandbox, source, plan)
  expect(await brightness(folder, poster?.jpeg)).toBeGreaterThan(200)
})

test('a dark video has a poster too, an audio file has none', async () => {
  const folder = await newFolder()
  const [dark, audioTrack] = [path.join(folder, 'dark.mp4'), path.join(folder, 'sound.mp3')]
  await ffmpeg('-f', 'lavfi', '-i', 'color=black:s=320x180:r=10:d=2', '-c:v', 'libx264', dark)
  await ffmpeg('-f', 'lavfi', '-i', 'sine=440:d=1', audioTrack)
  const darkVideo = await openVideo(dark)
  expect(await extractPosters(darkVideo.sandbox, darkVideo.source, darkVideo.plan)).toHaveLength(2)
  const audioOnlyVideo = await openVideo(audioTrack)
  expect(await extractPosters(audioOnlyVideo.sandbox, audioOnlyVideo.source, audioOnlyVideo.plan)).toEqual([])
})

test('the poster of cockatoo.mp4, whose later key frames do not decode alone, is one of its frames', async () => {
  const folder = await newFolder()
  const { sandbox, source, plan } = await openVideo(footage.cockatoo)
  const [, poster] = await extractPosters(sandbox, source, plan)
  if (!poster) throw new Error('there is no poster')
  const file = path.join(folder, 'poster.jpg')
  await writeFile(file, poster.jpeg)
  const graph = `[0:v]scale=${poster.widthPx}:${poster.heightPx},format=yuv420p[video];[1:v]format=yuv420p[poster];[video][poster]ssim=f=-`
  const text = (
    await ffmpeg(
      '-i',
      footage.cockatoo,
      '-loop',
      '1',
      '-i',
      file,
      '-frames:v',
      '280',
      '-filter_complex',
      graph,
      '-f',
      'null',
      '-',
    )
  ).toString()
  const likeness = [...text.matchAll(/All:(\d\.\d+)/g)].map(([, value]) => Number(value))
  expect(Math.max(...likeness)).toBeGreaterThan(0.95)
})

async function brightness(folder: string, jpeg: Buffer = Buffer.alloc(0)): Promise<number> {
  const file = path.join(folder, 'poster.jpg')
  await writeFile(file, jpeg)
  return (await ffmpeg('-i', file, '-vf', 'scale=1:1:flags=area,format=gray', '-f', 'rawvideo', '-'))[0] ?? 0
}
