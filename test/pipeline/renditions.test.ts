import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { count, ffmpeg, makeNumberedVideo, readNumbers } from '../encode/videos.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { isLong } from '../seeded-random.ts'
import { differenceRms, findLag, isSilent, samplesOf } from './audio-samples.ts'
import { findChanged, lookAtSegments, type Sightings } from './segment-snapshots.ts'
import { type Download, decode, downloadVideo, newFolder, readSegment, readTimescale, writeRendition } from './videos.ts'

// From the upload to what a viewer decrypts, whole videos, real ones with their real faults, and a made one.

const SOUND_SEGMENT_SAMPLES = 188 * 1024

type Video = { path: string /** Frames a second, as a fraction. */; rate: [number, number]; rungs: number; gopFrames: number }
const VIDEOS: Record<string, Video> = {
  wannaworktogether: { path: footage.wannaworktogether, rate: [30_000, 1001], rungs: 2, gopFrames: 120 },
  movieHello: { path: footage.movieHello, rate: [30, 1], rungs: 3, gopFrames: 120 },
  cockatoo: { path: footage.cockatoo, rate: [20, 1], rungs: 3, gopFrames: 80 },
  numbered: { path: '', rate: [25, 1], rungs: 1, gopFrames: 100 },
}
const NUMBERED_FRAMES = 625
// The three minutes of wannaworktogether are encoded and decoded in long runs alone.
const { wannaworktogether: _, ...SHORT_VIDEOS } = VIDEOS
const DRAWN = isLong ? Object.keys(VIDEOS) : sampleOf('whole videos', Object.keys(SHORT_VIDEOS), 1)

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
const videoIds: Record<string, string> = {}
const seen: Record<string, Sightings> = {}
const downloads: Record<string, Download[]> = {}

beforeAll(async () => {
  reelgate = await startSharedReelgate()
  // The sound is compared with the source's.
  await reelgate.owner.call('PUT', '/api/account', { body: { normalizesLoudness: 0 } })
  VIDEOS.numbered = { ...videoOf('numbered'), path: await makeNumbered(reelgate.dataDir) }
  for (const name of DRAWN) videoIds[name] = await reelgate.owner.upload(name, videoOf(name).path)
  // While they are being made, each segment is looked at as soon as it is published.
  const finished = Promise.all(Object.values(videoIds).map((id) => untilFinished(reelgate, id))).then(() => true)
  for (let isDone = false; !isDone; ) {
    isDone = await Promise.race([finished, pause(100).then(() => false)])
    for (const [name, id] of Object.entries(videoIds)) {
      seen[name] ??= new Map()
      await lookAtSegments(reelgate, id, seen[name])
    }
  }
  for (const [name, id] of Object.entries(videoIds)) downloads[name] = await downloadVideo(reelgate, id)
})
afterAll(() => reelgate.remove())

describe.each(DRAWN)('%s', (name) => {
  const video = () => videoOf(name)
  const videoRenditions = () => (downloads[name] ?? []).filter(({ kind }) => kind === 'video')
  const audioTrack = () => (downloads[name] ?? []).find(({ kind }) => kind === 'audio')

  test('F-03: no segment ever was another text than when it was first seen', async () => {
    expect(await findChanged(reelgate, videoIds[name] ?? '', seen[name] ?? new Map())).toEqual([])
    expect(seen[name]?.size).toBe((downloads[name] ?? []).reduce((sum, { segments }) => sum + segments.length, 0))
  })

  test('every rendition of the ladder has every frame once, in order, frame i at exactly i times a frame’s duration', async () => {
    const frameCount = (await thumbnails(video())).length
    expect(videoRenditions()).toHaveLength(video().rungs)
    for (const { init, segments } of videoRenditions()) {
      const timescale = readTimescale(init)
      const [num, den] = video().rate
      const ticks = BigInt((timescale * den) / num)
      const shown = segments.map(readSegment).map(({ presentationTimes }) => presentationTimes.toSorted((a, b) => Number(a - b)))
      expect(shown.flat()).toEqual(count(frameCount).map((frame) => BigInt(frame) * ticks))
      for (const [number, times] of shown.entries()) expect(times[0]).toBe(BigInt(number * video().gopFrames) * ticks)
    }
  })

  test('segments are whole and numbered, and each begins where the one before it ends', () => {
    for (const { segments } of downloads[name] ?? []) {
      let end = 0n
      for (const [number, bytes] of segments.entries()) {
        const segment = readSegment(bytes)
        expect([segment.sequence, segment.decodeTime]).toEqual([number + 1, end])
        expect(segment.sizesBytes.reduce((a, b) => a + b, 0)).toBe(segment.dataBytes)
        end = segment.decodeTime + BigInt(segment.durations.reduce((a, b) => a + b, 0))
      }
    }
  })

  test('ffmpeg decodes every rendition from end to end without a warning, into the frames of the source', async () => {
    const folder = await newFolder()
    const expected = await thumbnails(video())
    for (const download of videoRenditions()) {
      const { bytes, warnings } = await decode(await writeRendition(folder, download), ...smallGray('null'), '-')
      expect(warnings).toBe('')
      const shown = framesOf(bytes)
      expect(shown).toHaveLength(expected.length)
      // No frame looks more like a neighbour of the source's frame than like that frame itself.
      const misplaced = shown.flatMap((frame, i) => {
        const here = difference(frame, expected[i])
        const neighbours = [difference(frame, expected[i - 1]), difference(frame, expected[i + 1])]
        return here > 1 + Math.min(...neighbours) ? [i] : []
      })
      expect(misplaced).toEqual([])
      // Nor is any damaged: mean difference of 255 levels.
      const worst = Math.max(...shown.map((frame, i) => difference(frame, expected[i])))
      expect(worst).toBeLessThan(8)
    }
  })

  test('the audio is the source’s, every AAC frame once, within 25 ms anywhere', async () => {
    const download = audioTrack()
    if (!download) throw new Error('no sound')
    const folder = await newFolder()
    const starts = download.segments.map((bytes) => readSegment(bytes).decodeTime)
    expect(starts).toEqual(starts.map((_, number) => BigInt(number * SOUND_SEGMENT_SAMPLES)))
    const { bytes, warnings } = await decode(await writeRendition(folder, download), ...mono(8000))
    expect(warnings).toBe('')
    const [audible, expected] = [samplesOf(bytes), samplesOf(await ffmpeg('-i', video().path, ...mono(8000)))]
    // Silence lasts to the end of the picture.
    const [num, den] = video().rate
    const frames = (videoRenditions()[0]?.segments ?? []).reduce((sum, segment) => sum + readSegment(segment).durations.length, 0)
    const longest = Math.max(expected.length, (frames * den * 8000) / num)
    expect(Math.abs(audible.length - longest)).toBeLessThan(0.05 * 8000)
    const locations = count(12).map((i) => Math.floor(((expected.length - 8000) * i) / 11))
    const lagsMs = locations
      .map((at) => findLag(audible, expected, at, 8000, 800))
      .flatMap((lag) => (lag === undefined ? [] : [lag / 8]))
    if (isSilent(expected))
      expect(isSilent(audible)).toBe(true) // cockatoo says nothing
    else expect(lagsMs.length).toBeGreaterThan(3)
    for (const lagMs of lagsMs) expect(Math.abs(lagMs)).toBeLessThan(25)
  })

  test('nothing clicks where one audio chunk ends and the next begins', async () => {
    const download = audioTrack()
    if (!download) throw new Error('no sound')
    const { bytes } = await decode(await writeRendition(await newFolder(), download), ...mono(48_000))
    const [audible, expected] = [samplesOf(bytes), samplesOf(await ffmpeg('-i', video().path, ...mono(48_000)))]
    const chunks = readRows<{ first_segment: number }>(
      reelgate,
      `select first_segment from chunk where kind = 'audio' and first_segment > 0 and video_id = ?`,
      videoIds[name] ?? '',
    )
    const borders = chunks.map(({ first_segment }) => first_segment * SOUND_SEGMENT_SAMPLES)
    const errorAt = (at: number) => differenceRms(audible, expected, at - 256, at + 256)
    const elsewhere = count(Math.floor(expected.length / 512) - 2)
      .map((i) => 512 * (i + 1))
      .filter((at) => borders.every((border) => Math.abs(at - border) > 2048))
      .map(errorAt)
    // No more than what one place in a hundred differs by, where nothing is joined.
    const usual = elsewhere.toSorted((a, b) => a - b)[Math.floor(elsewhere.length * 0.99)] ?? 0
    for (const border of borders) expect(errorAt(border)).toBeLessThanOrEqual(usual)
  })

  if (name !== 'numbered') return
  test('the video shows exactly its numbers, 0 to the last, in every rendition', async () => {
    const folder = await newFolder()
    for (const download of (downloads.numbered ?? []).filter(({ kind }) => kind === 'video')) {
      expect(await readNumbers(await writeRendition(folder, download))).toEqual(count(NUMBERED_FRAMES))
    }
  })
})

const WIDTH = 48
const HEIGHT = 27
const smallGray = (rate: string) => [
  '-map',
  '0:v',
  '-vf',
  `${rate},scale=${WIDTH}:${HEIGHT}:flags=area,format=gray`,
  '-fps_mode',
  'passthrough',
  '-f',
  'rawvideo',
]
const mono = (rateHz: number) => [
  '-map',
  '0:a',
  '-af',
  'aresample=48000:async=1:first_pts=0',
  '-ac',
  '1',
  '-ar',
  String(rateHz),
  '-f',
  's16le',
  '-',
]

const decodedVideos = new Map<string, Promise<Buffer[]>>()

/** The frames that a video should show, small: the source at its own rate, the first where its timeline begins. */
function thumbnails({ path, rate: [num, den] }: Video): Promise<Buffer[]> {
  const decoded =
    decodedVideos.get(path) ?? ffmpeg('-i', path, ...smallGray(`fps=${num}/${den}:start_time=0`), '-').then(framesOf)
  decodedVideos.set(path, decoded)
  return decoded
}

function framesOf(bytes: Buffer): Buffer[] {
  return count(bytes.length / (WIDTH * HEIGHT)).map((i) => bytes.subarray(i * WIDTH * HEIGHT, (i + 1) * WIDTH * HEIGHT))
}

/** Mean difference of two pictures in levels of brightness; past the video's ends nothing is like anything. */
function difference(a: Buffer, b: Buffer | undefined): number {
  if (!b) return Number.POSITIVE_INFINITY
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += Math.abs((a[at] ?? 0) - (b[at] ?? 0))
  return sum / a.length
}

function videoOf(name: string): Video {
  const video = VIDEOS[name]
  if (!video) throw new Error(`no video ${name}`)
  return video
}

/** Every frame shows its number; the sound is noise, so that every place of it is unlike every other. */
async function makeNumbered(folder: string): Promise<string> {
  const seconds = NUMBERED_FRAMES / 25
  return makeNumberedVideo(join(folder, '..', 'numbered.mp4'), {
    frames: NUMBERED_FRAMES,
    rate: '25',
    widthPx: 480,
    heightPx: 270,
    inputs: ['-f', 'lavfi', '-i', `anoisesrc=seed=7:amplitude=0.2:color=pink:sample_rate=44100:duration=${seconds}`],
    encode: [
      '-c:v',
      'libx264',
      '-preset',
      'ultrafast',
      '-bf',
      '3',
      '-g',
      '250',
      '-pix_fmt',
      'yuv420p',
      '-c:a',
      'aac',
      '-b:a',
      '192k',
    ],
  })
}
