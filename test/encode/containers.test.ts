import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { probeSource } from '../../src/encode/probe.ts'
import { sampleOf } from '../sample.ts'
import { encodeVideo, ffmpeg, joinRendition, newFolder, openDefaultSandbox, openVideo, readNumbers, seal } from './videos.ts'

// Which files are read, and what the owner reads of those that are not, or not wholly.

const SOUND = ['-f', 'lavfi', '-i', 'sine=440:r=48000:d=3']
const PICTURE = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=25:d=3']
const COVER = ['-f', 'lavfi', '-i', 'testsrc2=s=320x240:d=1', '-frames:v', '1']

async function make(name: string, ...args: string[]): Promise<string> {
  const file = path.join(await newFolder(), name)
  await ffmpeg(...args, file)
  return file
}

test.each(
  sampleOf(
    'containers of sound',
    [
      { name: 'sound.aiff', args: [] },
      { name: 'sound.caf', args: [] },
      { name: 'alac.caf', args: ['-c:a', 'alac'] },
      { name: 'sound.au', args: [] },
      { name: 'sound.ac3', args: [] },
      { name: 'sound.eac3', args: [] },
    ],
    3,
  ),
)('I-19: $name is read to its end', async ({ name, args }) => {
  const video = await openVideo(await make(name, ...SOUND, ...args))
  expect(video.plan.videoTrack).toBeUndefined()
  expect(Math.abs(video.plan.durationS - 3)).toBeLessThan(0.1)
  const folder = await newFolder()
  const file = await joinRendition(folder, await encodeVideo(video, { chunkSegments: 99, decodesFromStart: true }), 1)
  const samples = await ffmpeg('-i', file, '-ss', '2.8', '-ac', '1', '-t', '0.1', '-f', 's16le', '-')
  expect(Math.max(...new Int16Array(new Uint8Array(samples).buffer))).toBeGreaterThan(1000)
})

test.each([
  { kind: 'h264', name: 'raw.h264', args: ['-pix_fmt', 'yuv420p'] },
  { kind: 'gif', name: 'moving.gif', args: [] },
  { kind: 'nut', name: 'video.nut', args: ['-c:v', 'mpeg4'] },
  { kind: 'dv', name: 'tape.dv', args: ['-s', '720x576', '-r', '25', '-pix_fmt', 'yuv420p'] },
])('I-20: of a file of the kind $kind the owner reads which kinds are read', async ({ kind, name, args }) => {
  const source = await seal(await make(name, ...PICTURE, '-t', '0.4', ...args))
  await expect(probeSource(await openDefaultSandbox(), source)).rejects.toThrow(
    new RegExp(
      `^The file is of the kind "${kind}", which is not read here\\. Videos are read in MP4, MOV, Matroska, .* AC-3 and FLAC`,
    ),
  )
})

test('I-21: the cover of a WMA, a Matroska or an MP4 is a still for as long as its sound', async () => {
  const cover = await make('cover.jpg', ...COVER)
  const sound = await make('sound.wma', '-f', 'lavfi', '-i', 'sine=440:r=48000:d=13')
  for (const name of ['cover.wma', 'cover.mkv', 'cover.mp4']) {
    const args = [
      '-i',
      sound,
      '-i',
      cover,
      '-map',
      '0',
      '-map',
      '1',
      '-c:v',
      'copy',
      '-c:a',
      name === 'cover.wma' ? 'copy' : 'aac',
    ]
    const video = await openVideo(await make(name, ...args))
    expect(video.plan.videoTrack).toMatchObject({ rateNum: 5, rateDen: 1 })
    expect(Math.abs(video.plan.durationS - 13)).toBeLessThan(0.3)
    if (name !== 'cover.wma') continue
    const encoded = await encodeVideo(video, { chunkSegments: 99, decodesFromStart: true })
    const numbers = await readNumbers(await joinRendition(await newFolder(), encoded, 1))
    expect(numbers).toHaveLength(video.plan.videoTrack?.frameCount ?? 0)
    expect(new Set(numbers).size).toBe(1)
  }
})

test('I-37: of joined Ogg files with a picture, of which ffmpeg reads the first, the owner reads where it ends', async () => {
  const part = (offset: string) =>
    make('part.ogv', ...PICTURE, ...SOUND, '-c:v', 'libtheora', '-c:a', 'libvorbis', '-serial_offset', offset)
  const noticesOf = async (file: string) => (await probeSource(await openDefaultSandbox(), await seal(file))).notices
  const [first, next] = [await part('0'), await part('7')]
  for (const second of [first, next]) {
    const joined = path.join(await newFolder(), 'joined.ogv')
    await writeFile(joined, Buffer.concat([await readFile(first), await readFile(second)]))
    expect(await noticesOf(joined)).toEqual([
      'The file consists of joined Ogg files, of which the first is played, up to 0:03. To have all of it, convert it to MP4 or WebM and upload it again.',
    ])
  }
  expect(await noticesOf(first)).toEqual([])
})
