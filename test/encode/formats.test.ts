import { describe, expect, test } from 'vitest'
import type { VideoTrackPlan } from '../../src/encode/plan.ts'
import { sampleOf } from '../sample.ts'
import { drawnHz, drawnRate, framesOf, makeOddVideo, numbersOf, ODD_VIDEOS, type OddVideo } from './format-matrix.ts'
import {
  beepsOf,
  count,
  type EncodedVideo,
  encodeAsServed,
  encodeVideo,
  ffmpeg,
  joinRendition,
  measureSquare,
  newFolder,
  openVideo,
  presentationTimes,
  readNumbers,
  readShape,
} from './videos.ts'

// Any shape of picture: right ladder, right shape, right time. A part of the videos, another each time, is measured; of these a part is
// also encoded, in the very chunks that the service makes of it, and looked at frame by frame.

/** One frame of AAC at 48 kHz. */
const SOUND_TOLERANCE_S = 1024 / 48_000
const SIMILAR = 0.97

const MEASURED = sampleOf('odd videos', ODD_VIDEOS, 5)
const ENCODED = new Set(sampleOf('odd videos that are encoded', MEASURED, 1))

describe.each(MEASURED)('a video $is', (video) => {
  const { becomes } = video

  test('M16, I-01: has the right ladder, rate and length', async () => {
    const { plan } = await openVideo(await makeOddVideo(video))
    const { videoTrack, audioTrack } = plan
    expect(sizesOf(videoTrack)).toBe(becomes.rungs)
    expect(plan.isSeekable).toBe(!video.inSequence)
    if (videoTrack) {
      expect(`${videoTrack.rateNum}/${videoTrack.rateDen}`).toBe(becomes.rate ?? drawnRate(video))
      expect(videoTrack.frameCount).toBe(becomes.frames ?? framesOf(video))
    }
    expect(audioTrack === undefined).toBe(video.audioS === 0)
    // Sound lasts as long as the picture, and where it lasts longer, the picture lasts as long as the sound.
    const videoS = videoTrack ? videoTrack.frameCount / rateHz(videoTrack) : 0
    const audioS = audioTrack ? (audioTrack.frameCount * 1024) / 48_000 : videoS
    expect(Math.abs(audioS - (becomes.audioS ?? videoS))).toBeLessThan(0.05)
    expect(plan.durationS).toBe(Math.max(videoS, audioS))
  })

  if (!ENCODED.has(video)) return
  test('M16, I-01: shows every frame at its time and in its shape, with its audio, in chunks as in one pass', async () => {
    const folder = await newFolder()
    const opened = await openVideo(await makeOddVideo(video))
    const { videoTrack, audioTrack } = opened.plan
    const chunked = await encodeAsServed(opened)
    const unbroken = await encodeVideo(opened, { chunkSegments: 9999, decodesFromStart: true })
    let numbers: number[] = []
    for (const { id, widthPx, heightPx } of videoTrack?.renditions ?? []) {
      const file = await joinRendition(folder, chunked, id)
      numbers = await readNumbers(file, video.turn)
      expect(numbers).toEqual(numbersOf(video, videoTrack?.frameCount ?? 0))
      expect(await readShape(file)).toBe(`${widthPx}x${heightPx}x1:1`)
      expect(Math.min(...(await likeness(file, await joinRendition(folder, unbroken, id))))).toBeGreaterThan(SIMILAR)
      const square = await measureSquare(file, video.turn)
      expect(square.heightPx).toBeGreaterThan(5)
      expect(Math.abs(square.widthPx - square.heightPx)).toBeLessThan(1 + 0.04 * square.heightPx)
    }
    for (const { id } of videoTrack?.renditions ?? []) expectEvenTimes(chunked, id, videoTrack)
    if (audioTrack) {
      const beeps = await beepsOf(folder, chunked, audioTrack.renditionId)
      const unbrokenBeeps = await beepsOf(folder, unbroken, audioTrack.renditionId)
      expect(beeps).toHaveLength(becomes.beeps ?? Math.floor(((video.audioS ?? 10) + 1) / 2))
      for (const [index, atS] of beeps.entries()) {
        expect(Math.abs(atS - (unbrokenBeeps[index] ?? 0))).toBeLessThan(SOUND_TOLERANCE_S)
        const drawnS = drawnAt(video, videoTrack, numbers, atS - (becomes.audioLateS ?? 0))
        const oddSecond = 2 * Math.round((drawnS - 1) / 2) + 1
        expect(Math.abs(drawnS - oddSecond)).toBeLessThan(SOUND_TOLERANCE_S)
      }
    }
  })
})

function expectEvenTimes(video: EncodedVideo, id: number, videoTrack: VideoTrackPlan | undefined) {
  if (!videoTrack) return
  const ticks = (videoTrack.timescale * videoTrack.rateDen) / videoTrack.rateNum
  expect(presentationTimes(video, id, ticks)).toEqual(count(videoTrack.frameCount).map((frame) => frame * ticks))
}

/** The moment of the drawing that is on screen at a time: while a picture is frozen, its moment continues. */
function drawnAt(video: OddVideo, videoTrack: VideoTrackPlan | undefined, numbers: readonly number[], atS: number): number {
  if (!videoTrack) return atS
  const number = numbers[Math.min(numbers.length - 1, Math.floor(atS * rateHz(videoTrack)))] ?? 0
  return number / drawnHz(video) + atS - numbers.indexOf(number) / rateHz(videoTrack)
}

/** SSIM of each frame of two videos. */
async function likeness(a: string, b: string): Promise<number[]> {
  const text = (await ffmpeg('-i', a, '-i', b, '-filter_complex', '[0:v][1:v]ssim=f=-', '-f', 'null', '-')).toString()
  return [...text.matchAll(/All:(\d\.\d+)/g)].map(([, value]) => Number(value))
}

function sizesOf(videoTrack: VideoTrackPlan | undefined): string {
  return (videoTrack?.renditions ?? []).map(({ widthPx, heightPx }) => `${widthPx}×${heightPx}`).join(' ')
}

function rateHz({ rateNum, rateDen }: VideoTrackPlan): number {
  return rateNum / rateDen
}
