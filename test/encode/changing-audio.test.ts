import { appendFile, readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { sampleOf } from '../sample.ts'
import { beepsOf, encodeAsServed, ffmpeg, newFolder, openVideo } from './videos.ts'

// Beeps of 0.1 s each two seconds from the first on, in files whose sound is not one run of one format that begins with the video.

const TOLERANCE_S = 0.025
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '250']
const VP8 = ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-b:v', '100k']

type Part = { rateHz: number; channels: number }
const MONO = { rateHz: 44_100, channels: 1 }
const STEREO = { rateHz: 48_000, channels: 2 }
const SURROUND = { rateHz: 48_000, channels: 6 }

type Joined = {
  is: string
  file: string
  parts: Part[]
  encode: string[]
  video?: boolean
  copied?: string /** Of the second. */
  atS: number
}

const JOINED: readonly Joined[] = [
  { is: 'MPEG-TS', file: 'a.ts', parts: [MONO, STEREO], encode: ['-c:a', 'aac'], video: true, atS: 5.979 },
  { is: 'MPEG-TS of sound alone', file: 'a.ts', parts: [MONO, STEREO], encode: ['-c:a', 'aac'], atS: 6 },
  { is: 'MPEG-TS that gets slower', file: 'a.ts', parts: [STEREO, MONO], encode: ['-c:a', 'aac'], video: true, atS: 5.979 },
  { is: 'AAC in ADTS', file: 'a.aac', parts: [MONO, STEREO], encode: ['-c:a', 'aac'], atS: 6.035 },
  { is: 'AC-3 in MPEG-TS', file: 'a.ts', parts: [{ ...STEREO }, SURROUND], encode: ['-c:a', 'ac3'], video: true, atS: 6 },
  {
    is: 'AC-3 in Matroska',
    file: 'a.ts',
    parts: [SURROUND, STEREO],
    encode: ['-c:a', 'ac3'],
    video: true,
    copied: 'a.mkv',
    atS: 6,
  },
  { is: 'AC-3 in MP4', file: 'a.ts', parts: [STEREO, SURROUND], encode: ['-c:a', 'ac3'], video: true, copied: 'a.mp4', atS: 6 },
  {
    is: 'MP3',
    file: 'a.mp3',
    parts: [MONO, STEREO],
    encode: ['-c:a', 'libmp3lame', '-write_xing', '0', '-id3v2_version', '0'],
    atS: 6.035,
  },
  ...['libvorbis', 'flac', 'libopus'].map((codec) => ({
    is: `a chain of Ogg (${codec})`,
    file: 'a.ogg',
    parts: [STEREO, STEREO],
    encode: ['-c:a', codec],
    atS: 6,
  })),
]

test.each(sampleOf('joined sound', JOINED, 1))(
  'I-07, I-34: sound that is joined is whole, whatever its channels and rates, and lasts no longer, $is',
  async (joined) => {
    const { beeps, durationS } = await soundOf(await join(joined))
    expect(Math.abs(durationS - joined.atS - 6)).toBeLessThan(0.1)
    expectBeeps(beeps, [0, 2, 4, ...[0, 2, 4].map((atS) => joined.atS + atS)])
  },
)

/** Two parts of six seconds, one after the other. */
async function join({ file, parts, encode, video = false, copied }: Joined): Promise<string> {
  const folder = await newFolder()
  const whole = path.join(folder, file)
  for (const [index, { rateHz, channels }] of parts.entries()) {
    const part = path.join(folder, `${index}-${file}`)
    const picture = video ? ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=30:d=6', ...H264] : []
    const offset = file.endsWith('.ts') ? ['-output_ts_offset', String(index * 6)] : []
    await ffmpeg(...beepsOfSource(rateHz, 6), ...picture, ...encode, '-ac', String(channels), ...offset, part)
    await appendFile(whole, await readFile(part))
  }
  if (!copied) return whole
  await ffmpeg('-i', whole, '-c', 'copy', path.join(folder, copied))
  return path.join(folder, copied)
}

const NEGATIVE = [
  { is: 'Matroska with B-frames', file: 'a.mkv', encode: [...H264, '-c:a', 'aac'], startS: -1 },
  { is: 'Matroska with B-frames, a little', file: 'a.mkv', encode: [...H264, '-c:a', 'aac'], startS: -0.05 },
  { is: 'Matroska of sound alone', file: 'a.mkv', encode: ['-vn', '-c:a', 'flac'], startS: -1 },
  { is: 'MPEG-TS', file: 'a.ts', encode: [...H264, '-c:a', 'aac'], startS: -1 },
  { is: 'WebM with Opus', file: 'a.webm', encode: [...VP8, '-c:a', 'libopus'], startS: -1 },
  { is: 'WebM with Vorbis', file: 'a.webm', encode: [...VP8, '-c:a', 'libvorbis'], startS: -2 },
  { is: 'WebM of sound alone', file: 'a.webm', encode: ['-vn', '-c:a', 'libopus'], startS: -2 },
]

test.each(sampleOf('times below zero', NEGATIVE, 1))(
  'I-08, I-36: sound of a file whose times begin below zero is whole, $is',
  async ({ file, encode, startS }) => {
    const source = path.join(await newFolder(), file)
    const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=30:d=12']
    const times = ['-output_ts_offset', String(startS), '-avoid_negative_ts', 'disabled']
    await ffmpeg(...picture, ...beepsOfSource(48_000, 12), ...encode, ...times, source)
    expectBeeps((await soundOf(source)).beeps, [0, 2, 4, 6, 8, 10])
  },
)

const LATE = ['mp4', 'mov', 'mkv', 'ts', 'flv'].flatMap((container) =>
  [0.01, 0.03, 0.1, 1.7, 7, 20].flatMap((lateS) => [22_050, 44_100].map((rateHz) => ({ container, lateS, rateHz }))),
)

test.each(sampleOf('sound that begins late', LATE, 1))(
  'I-09: sound of $rateHz Hz that begins $lateS s after the video plays at its time, $container',
  async ({ container, lateS, rateHz }) => {
    const folder = await newFolder()
    const [picture, sound, source] = ['picture.mp4', 'sound.m4a', `late.${container}`].map((name) => path.join(folder, name))
    if (!picture || !sound || !source) throw new Error('unreachable')
    await ffmpeg('-f', 'lavfi', '-i', `testsrc2=s=160x90:r=30:d=${lateS + 6}`, ...H264, picture)
    await ffmpeg(...beepsOfSource(rateHz, 6), '-c:a', 'aac', sound)
    await ffmpeg('-i', picture, '-itsoffset', String(lateS), '-i', sound, '-map', '0:v', '-map', '1:a', '-c', 'copy', source)
    expectBeeps(
      (await soundOf(source)).beeps,
      [0, 2, 4].map((atS) => lateS + atS),
    )
  },
)

function beepsOfSource(rateHz: number, seconds: number): string[] {
  return ['-f', 'lavfi', '-i', `aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,2),0.1)':s=${rateHz}:d=${seconds}`]
}

/** As the service encodes it, of the sound alone. */
async function soundOf(file: string): Promise<{ beeps: number[]; durationS: number }> {
  const video = await openVideo(file)
  const encoded = await encodeAsServed(video, 'audio')
  const beeps = await beepsOf(await newFolder(), encoded, video.plan.audioTrack?.renditionId ?? 0)
  return { beeps, durationS: video.plan.durationS }
}

function expectBeeps(audible: readonly number[], expected: readonly number[]) {
  const rounded = (times: readonly number[]) => times.map((atS) => atS.toFixed(3)).join(' ')
  const isNear =
    audible.length === expected.length && audible.every((atS, index) => Math.abs(atS - (expected[index] ?? 0)) < TOLERANCE_S)
  expect(isNear ? rounded(expected) : rounded(audible)).toBe(rounded(expected))
}
