import path from 'node:path'
import { expect, test } from 'vitest'
import { sampleOf } from '../sample.ts'
import { newChance } from '../seeded-random.ts'
import { COLORS } from './color-matrix.ts'
import {
  type Beep,
  drawVideo,
  type GeneratedVideo,
  hzOf,
  isFlash,
  makeGeneratedVideo,
  readBeeps,
  readFrames,
  type SeenFrame,
} from './generated-videos.ts'
import { count, encodeAsServed, joinRendition, newFolder, openVideo, presentationTimes } from './videos.ts'

const SOUND_TOLERANCE_S = 0.025
const COLOR_TOLERANCE = 4
/** By so many frames the rates may differ at the end: in a short file of whole milliseconds 24 and 24000/1001 are the same. */
const RATE_TOLERANCE_FRAMES = 0.5
/** For as long a codec may put silence before the first frame or after the last one. */
const PADDING_S = 0.15

// The same 60 in each run, of which a failed one is repeated by its number; REELGATE_SEED draws others.
const chance = newChance('recipes of generated videos', 1)
const VIDEOS = count(60).map((index) => ({ index, ...drawVideo(chance, index) }))

test.each(sampleOf('generated videos', VIDEOS, 2))(
  'I-30: generated video $index has each frame once, its sound within 25 ms and its colors within 4: $is',
  async (video) => {
    const folder = await newFolder()
    const file = path.join(folder, `source.${video.ends}`)
    await makeGeneratedVideo(video, file)
    const opened = await openVideo(file)
    const { videoTrack, audioTrack } = opened.plan
    if (!videoTrack || !audioTrack) throw new Error('a track is missing')
    const encoded = await encodeAsServed(opened)
    const hz = videoTrack.rateNum / videoTrack.rateDen
    const faults = Math.abs(hz / hzOf(video.rate) - 1) * video.frames < RATE_TOLERANCE_FRAMES ? [] : [`${hz} frames a second`]
    let firstFrameS = 0
    for (const { id, heightPx } of videoTrack.renditions) {
      const ticks = (videoTrack.timescale * videoTrack.rateDen) / videoTrack.rateNum
      expect(presentationTimes(encoded, id, ticks)).toEqual(count(videoTrack.frameCount).map((frame) => frame * ticks))
      const seen = await readFrames(await joinRendition(folder, encoded, id))
      firstFrameS = seen.findLastIndex(({ number }) => number === 0) / hz
      faults.push(...faultsOfFrames(video, seen, hz).map((fault) => `${heightPx}p: ${fault}`))
    }
    const beeps = await readBeeps(folder, encoded, audioTrack.renditionId)
    faults.push(...faultsOfSound(video, beeps, firstFrameS - video.pictureS))
    expect(faults).toEqual([])
  },
)

function faultsOfFrames({ frames, pictureS, soundS, rate }: GeneratedVideo, seen: readonly SeenFrame[], hz: number): string[] {
  const last = frames - 1
  const numbers = seen.map(({ number }) => number)
  const waits = Math.max(0, numbers.lastIndexOf(0))
  const held = numbers.length - 1 - Math.max(0, numbers.indexOf(last))
  const lost = count(frames).filter((frame) => !numbers.includes(frame))
  const doubled = numbers.filter((number, index) => number > 0 && number < last && number <= (numbers[index - 1] ?? -1))
  const flashes = seen.filter((frame) => frame.isFlash !== isFlash(pictureS + frame.number / hzOf(rate)))
  const off = seen.map(({ colors }) =>
    Math.max(...colors.flatMap((color, patch) => color.map((value, at) => Math.abs(value - (COLORS[patch]?.[at] ?? 0))))),
  )
  const worst = Math.max(...off)
  return [
    ...(lost.length > 0 ? [`lost ${lost}`] : []),
    ...(doubled.length > 0 ? [`doubled ${doubled}`] : []),
    ...(waits / hz > Math.max(0, pictureS - soundS) + PADDING_S ? [`${waits} times the first frame`] : []),
    ...(held / hz > PADDING_S ? [`${held} times the last frame`] : []),
    ...(flashes.length > 0 ? [`wrong flashes ${flashes.map(({ number }) => number)}`] : []),
    ...(worst > COLOR_TOLERANCE ? [`colors ${JSON.stringify(seen[off.indexOf(worst)]?.colors)}`] : []),
  ]
}

/** @param shiftS from a time of the drawing to that of the encoded video */
function faultsOfSound({ beeps }: GeneratedVideo, audible: readonly Beep[], shiftS: number): string[] {
  const describe = (beep: Beep) => `${beep.ears} ${beep.hz} Hz`
  const [expected, found] = [beeps, audible].map((all) => all.map(describe).join(', '))
  if (expected !== found) return [`${found} at ${audible.map(({ atS }) => atS)} instead of ${expected}`]
  const late = audible.map(({ atS }, index) => atS - (beeps[index]?.atS ?? 0) - shiftS)
  return late.every((seconds) => Math.abs(seconds) < SOUND_TOLERANCE_S) ? [] : [`sound late by ${late} s`]
}
