import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { cutAudio } from '../../src/encode/cut-audio.ts'
import { measureGain } from '../../src/encode/loudness.ts'
import { findAudioSpans } from '../../src/mp4/audio-spans.ts'
import { findShownTimes } from '../../src/mp4/shown-times.ts'
import type { ReadAt } from '../../src/mp4/track-index.ts'
import { withClearBytes } from '../../src/sandbox/clear-bytes.ts'
import { footage } from '../footage.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { ffmpeg, newFolder, openVideo, seal } from './videos.ts'

const COPY = ['-c', 'copy']
const AUDIO_FIRST = ['-map', '0:a', '-map', '0:v']

/** Each is read as ffmpeg reads it, or left to it. */
const FILES: readonly { is: string; args: string[]; name?: string; from?: () => string; isLeft?: boolean; video?: number }[] = [
  { is: 'with its index at the end', args: COPY },
  { is: 'with its index in front', args: [...COPY, '-movflags', '+faststart'] },
  { is: 'in MOV', args: COPY, name: 'a.mov' },
  { is: 'with its audio first', args: [...AUDIO_FIRST, ...COPY], video: 1 },
  { is: 'of a camera with B-frames', args: COPY, from: () => footage.movieHello },
  { is: 'without edits', args: [...COPY, '-use_editlist', '0'], from: () => footage.movieHello },
  { is: 'whose rate changes', args: ['-vf', "setpts='if(lt(N,40),N,2*N-40)/25/TB'", '-t', '20', '-fps_mode', 'vfr', '-an'] },
  {
    is: 'in which the video is late',
    args: ['-itsoffset', '0.7', '-i', footage.movieHello, '-map', '0:a', '-map', '1:v', ...COPY],
    video: 1,
  },
  { is: 'in fragments', args: [...COPY, '-movflags', '+frag_keyframe+empty_moov'], isLeft: true },
  { is: 'in Matroska', args: COPY, name: 'a.mkv', isLeft: true },
]

test.each(FILES)(
  'F-328: the times of frames in a file $is are those that ffprobe reads',
  async ({ args, name = 'a.mp4', from = () => footage.wannaworktogether, isLeft = false, video = 0 }) => {
    const file = path.join(await newFolder(), name)
    await ffmpeg('-i', from(), '-t', '60', ...args, file)
    const source = await seal(file)
    const later = isLeft ? undefined : { timeS: 3.3, count: 40 }
    const found = await withClearBytes(source, (read) =>
      findShownTimes(read, { sizeBytes: source.sizeBytes, stream: video, count: 150, later }),
    )
    if (isLeft) return expect(found).toBeUndefined()
    const expected = [await probeTimes(file, video, '%+#150'), await probeTimes(file, video, '3.300%+#40')]
    expect(found).toEqual(expected)
  },
)

test('F-328: a track whose beginning is cut off, and what is no video, are left to ffmpeg', async () => {
  const file = path.join(await newFolder(), 'a.mp4')
  await ffmpeg('-ss', '1.3', '-i', footage.movieHello, '-t', '3', ...COPY, file)
  const source = await seal(file)
  const find = (stream: number) =>
    withClearBytes(source, (read) => findShownTimes(read, { sizeBytes: source.sizeBytes, stream, count: 10 }))
  expect(await find(0)).toBeUndefined()
  expect(await find(1)).toBeUndefined()
  expect(await find(7)).toBeUndefined()
})

test.each([
  { is: 'AAC', encode: COPY },
  { is: 'AAC of a file with its audio first', encode: [...AUDIO_FIRST, ...COPY] },
  { is: 'MP3', encode: ['-vn', '-c:a', 'libmp3lame'] },
  { is: 'Apple Lossless', encode: ['-vn', '-c:a', 'alac'] },
  { is: 'AC-3 in MOV', encode: ['-vn', '-c:a', 'ac3'], name: 'a.mov' },
])(
  'F-328: samples of $is that are cut out give the gain that ffmpeg gives in the whole file',
  async ({ encode, name = 'a.mp4' }) => {
    const folder = await newFolder()
    const [file, other] = [path.join(folder, name), path.join(folder, 'a.mkv')]
    await ffmpeg('-i', footage.wannaworktogether, '-t', '100', ...encode, file)
    await ffmpeg('-i', file, '-map', '0', ...COPY, other)
    const [video, same] = [await openVideo(file), await openVideo(other)]
    expect(await cutOf(video)).toBeDefined()
    expect(await cutOf(same)).toBeUndefined()
    expect(await gainOf(video)).toBeCloseTo(await gainOf(same), 0)
  },
)

test('F-329: an index that contradicts itself, or claims any numbers, costs little and is left to ffmpeg', async () => {
  const { between, next } = newChance('index')
  const file = path.join(await newFolder(), 'a.mp4')
  await ffmpeg('-i', footage.movieHello, ...COPY, '-movflags', '+faststart', file)
  const bytes = await readFile(file)
  const indexEnd = bytes.indexOf('mdat')
  for (let round = 0; round < rounds(300, 20_000); round++) {
    const changed = Buffer.from(bytes)
    for (let place = 0; place < between(1, 6); place++) {
      const at = Math.floor(between(0, indexEnd - 4))
      if (next() < 0.5) changed.writeUInt32BE(Math.floor(between(0, next() < 0.5 ? 2 ** 32 : 10)), at)
      else changed.writeUInt8(Math.floor(between(0, 256)), at)
    }
    let readBytes = 0
    const read: ReadAt = async (at, sizeBytes) => {
      readBytes += sizeBytes
      return changed.subarray(at, at + sizeBytes)
    }
    const sizeBytes = changed.length
    const spans = [{ fromS: 1, lengthS: 6 }]
    const found = await findAudioSpans(read, { sizeBytes, stream: 1, spans })
    const sizes = found?.spans.flat().flatMap((run) => run.sizes) ?? []
    expect(sizes.length).toBeLessThanOrEqual(10_000)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(8 * 2 ** 20)
    const times = await findShownTimes(read, { sizeBytes, stream: 0, count: 200, later: { timeS: 4, count: 50 } })
    expect(times?.flat().every(Number.isFinite) ?? true).toBe(true)
    expect(readBytes).toBeLessThan(4 * sizeBytes)
  }
})

type Opened = Awaited<ReturnType<typeof openVideo>>

function cutOf({ source, plan: { audioTrack } }: Opened) {
  return cutAudio(source, { stream: audioTrack?.sources?.[0]?.stream ?? 0, spans: [{ fromS: 20, lengthS: 6 }] })
}

function gainOf({ sandbox, source, plan }: Opened): Promise<number> {
  if (!plan.audioTrack) throw new Error('the video is silent')
  return measureGain(sandbox, source, { plan, audioTrack: plan.audioTrack })
}

async function probeTimes(file: string, stream: number, interval: string): Promise<number[]> {
  const entries = ['-show_entries', 'packet=pts_time', '-of', 'csv=p=0']
  const { stdout } = await promisify(execFile)('ffprobe', [
    ...['-v', 'error', '-select_streams', String(stream), '-read_intervals', interval],
    ...[...entries, file],
  ])
  return stdout.trim().split('\n').map(Number.parseFloat)
}
