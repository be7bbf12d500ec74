import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect } from 'vitest'
import { encodeAudioChunk } from '../../src/encode/audio-chunk.ts'
import { InexactSeek } from '../../src/encode/media-failure.ts'
import { AAC_FRAMES_PER_SEGMENT } from '../../src/encode/plan.ts'
import { AAC_FRAME_SAMPLES } from '../../src/mp4/aac.ts'
import { sampledTests } from '../sample.ts'
import { fileOf } from './sealed-source.ts'
import {
  count,
  type EncodedVideo,
  encodeVideo,
  ffmpeg,
  joinRendition,
  newFolder,
  newSink,
  openVideo,
  presentationTimes,
} from './videos.ts'

const { test, draw } = sampledTests('chunks of audio', 1)

// Noise is like itself at one place only, so it tells a shift; a sweep has no jumps, so it tells a click.
const NOISE = ['-f', 'lavfi', '-i', 'anoisesrc=color=pink:seed=7:amplitude=0.5:r=44100:d=14']
const SWEEP = ['-f', 'lavfi', '-i', 'aevalsrc=0.4*sin(2*PI*(200+40*t)*t)|0.4*sin(2*PI*(250+40*t)*t):s=44100:d=20']
const PICTURE = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=25:d=14']
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast']

test.each([
  { kind: 'AAC in MP4', name: 'video.mp4', args: [...NOISE, ...PICTURE, ...H264, '-c:a', 'aac'] },
  { kind: 'Opus in WebM', name: 'video.webm', args: [...NOISE, '-c:a', 'libopus', '-b:a', '128k'] },
  { kind: 'MP3 in AVI', name: 'video.avi', args: [...NOISE, ...PICTURE, '-c:v', 'mpeg4', '-c:a', 'libmp3lame', '-b:a', '192k'] },
  { kind: 'MP3 in MP4', name: 'video.mp4', args: [...NOISE, ...PICTURE, ...H264, '-c:a', 'libmp3lame', '-b:a', '64k'] },
  { kind: 'AAC in Matroska, mono', name: 'video.mkv', args: [...NOISE, ...PICTURE, ...H264, '-c:a', 'aac', '-ac', '1'] },
  { kind: '5.1 FLAC, sound only', name: 'video.flac', args: [...NOISE, '-ac', '6'] },
])('$kind in chunks is the source’s sound within 25 ms', async ({ name, args }) => {
  const folder = await newFolder()
  const file = path.join(folder, name)
  await ffmpeg(...args, file)
  const video = await openVideo(file)
  const encoded = await encodeVideo({ ...video, plan: audioOnly(video.plan) }, { chunkSegments: 1 })
  const audible = await decode(folder, encoded, video.plan.audioTrack?.renditionId ?? 0)
  const source = await pcm(file)
  for (const atS of [1, 4, 5, 9, 13]) expect(Math.abs(lagSamples(audible, source, atS * 48_000))).toBeLessThan(0.025 * 48_000)
})

test('the joins of chunks do not click', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mp4')
  await ffmpeg(...SWEEP, '-c:a', 'aac', file)
  const video = await openVideo(file)
  const chunked = await decode(folder, await encodeVideo(video, { chunkSegments: 1 }), 1)
  const unbroken = await decode(folder, await encodeVideo(video, { chunkSegments: 99, decodesFromStart: true }), 1)
  const border = AAC_FRAMES_PER_SEGMENT * AAC_FRAME_SAMPLES
  for (const join of count(4).map((n) => (n + 1) * border)) {
    expect(worstStep(chunked, join - 2048, join + 2048)).toBeLessThan(worstStep(unbroken, join - 2048, join + 2048) * 1.1)
  }
})

test('audio has exactly its planned frames, each once, and its times have no gap', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'sound.flac')
  await ffmpeg(...SWEEP, file)
  const video = await openVideo(file)
  expect(video.plan).toMatchObject({ videoTrack: undefined, durationS: expect.closeTo(20, 1) })
  const encoded = await encodeVideo(video, { chunkSegments: 2 })
  const frames = Math.ceil((20 * 48_000) / 1024)
  expect(video.plan.audioTrack?.frameCount).toBe(frames)
  expect(presentationTimes(encoded, 1, 1024)).toEqual(count(frames).map((frame) => frame * 1024))
  expect((await decode(folder, encoded, 1)).length).toBe(frames * 1024)
  const inits = encoded.inits.get(1) ?? []
  expect(inits.every((init) => inits[0]?.equals(init))).toBe(true)
})

test('audio that begins late is silent until then', async () => {
  const folder = await newFolder()
  const [videoTrack, audioTrack, file] = ['picture.mp4', 'sound.m4a', 'late.mp4'].map((name) => path.join(folder, name))
  if (!videoTrack || !audioTrack || !file) throw new Error('unreachable')
  await ffmpeg(...PICTURE, ...H264, '-t', '10', videoTrack)
  await ffmpeg('-f', 'lavfi', '-i', 'sine=800:d=8', audioTrack)
  await ffmpeg('-i', videoTrack, '-itsoffset', '1.5', '-i', audioTrack, '-c', 'copy', file)
  const video = await openVideo(file)
  const id = video.plan.audioTrack?.renditionId ?? 0
  const audible = await decode(folder, await encodeVideo({ ...video, plan: audioOnly(video.plan) }, { chunkSegments: 1 }), id)
  const beginsAt = audible.findIndex((sample) => Math.abs(sample) > 1000) / 48_000
  expect(Math.abs(beginsAt - 1.5)).toBeLessThan(0.025)
})

test('a silent video has no audio track, an audio file no video track', async () => {
  const folder = await newFolder()
  const [silent, audioTrack] = [path.join(folder, 'silent.mp4'), path.join(folder, 'sound.mp3')]
  await ffmpeg(...PICTURE, ...H264, '-t', '2', silent)
  await ffmpeg('-f', 'lavfi', '-i', 'sine=440:d=2', audioTrack)
  expect((await openVideo(silent)).plan).toMatchObject({ audioTrack: undefined, videoTrack: { frameCount: 50 }, durationS: 2 })
  expect((await openVideo(audioTrack)).plan).toMatchObject({
    videoTrack: undefined,
    audioTrack: { renditionId: 1 },
    isSeekable: false,
  })
})

test('the cover image of an audio file is not taken for a video', async () => {
  const folder = await newFolder()
  const [cover, audioTrack, both] = [
    path.join(folder, 'cover.png'),
    path.join(folder, 'sound.mp3'),
    path.join(folder, 'both.mp3'),
  ]
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=320x320', '-frames:v', '1', cover)
  await ffmpeg('-f', 'lavfi', '-i', 'sine=440:d=2', audioTrack)
  await ffmpeg('-i', audioTrack, '-i', cover, '-map', '0', '-map', '1', '-c', 'copy', '-disposition:v', 'attached_pic', both)
  expect((await openVideo(both)).plan.videoTrack).toBeUndefined()
})

test('an audio chunk with errors after its seek is rejected as not clean', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mp4')
  await ffmpeg(...SWEEP, '-c:a', 'aac', file)
  const video = await openVideo(file)
  // Garbage in the third quarter of the sealed file.
  const sealedFile = await fileOf(video.source)
  const sealed = await readFile(sealedFile)
  sealed.fill(0x55, Math.floor(sealed.length * 0.5), Math.floor(sealed.length * 0.75))
  await writeFile(sealedFile, sealed)
  const chunk = { firstSegment: 3, segmentCount: 1, decodesFromStart: false }
  await expect(encodeAudioChunk({ ...video, chunk }, newSink())).rejects.toBeInstanceOf(InexactSeek)
  const whole = newSink()
  await encodeAudioChunk({ ...video, chunk: { firstSegment: 0, segmentCount: 9, decodesFromStart: true } }, whole)
  expect(whole.segments.get(1)?.size).toBe(5)
})

function audioOnly<T extends { videoTrack?: unknown }>(plan: T): T & { videoTrack: undefined } {
  return { ...plan, videoTrack: undefined }
}

async function pcm(file: string): Promise<Int16Array> {
  const bytes = await ffmpeg('-i', file, '-map', '0:a', '-ar', '48000', '-ac', '1', '-f', 's16le', '-')
  return new Int16Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / 2))
}

async function decode(folder: string, video: EncodedVideo, renditionId: number): Promise<Int16Array> {
  return pcm(await joinRendition(folder, video, renditionId))
}

/** By how many samples `audible` comes after `source` around a place: where their product is largest. */
function lagSamples(audible: Int16Array, source: Int16Array, at: number): number {
  const [width, reach] = [2400, 1500]
  let best = { lag: Number.NaN, sum: Number.NEGATIVE_INFINITY }
  for (let lag = -reach; lag <= reach; lag++) {
    let sum = 0
    for (let i = 0; i < width; i++) sum += (audible[at + i + lag] ?? 0) * (source[at + i] ?? 0)
    if (sum > best.sum) best = { lag, sum }
  }
  return best.lag
}

/** The largest jump from one sample to the next. */
function worstStep(samples: Int16Array, from: number, to: number): number {
  let worst = 0
  for (let i = from + 1; i < to; i++) worst = Math.max(worst, Math.abs((samples[i] ?? 0) - (samples[i - 1] ?? 0)))
  return worst
}

draw()
