import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Plan } from '../../src/encode/plan.ts'
import { planCut } from '../../src/encode/trim.ts'
import { sampleOf } from '../sample.ts'
import { newChance } from '../seeded-random.ts'
import { drawVideo, makeGeneratedVideo, readBeeps, readFrames } from './generated-videos.ts'
import { count, encodeAsServed, joinRendition, newFolder, type OpenVideo, openVideo, presentationTimes } from './videos.ts'

const SOUND_TOLERANCE_S = 0.025
/** A part is at least so long. */
const SHORTEST_S = 0.5

const chance = newChance('recipes of trimmed videos', 1)
const VIDEOS = count(30).map((index) => ({
  index,
  ...drawVideo(chance, index),
  part: [0.1 + 0.4 * chance.next(), 0.65 + 0.3 * chance.next()] as const,
}))

test.each(sampleOf('trimmed videos', VIDEOS, 2))(
  'X38: a trimmed video has exactly the frames from its start to its end, and its sound within 25 ms of them: $is',
  async (video) => {
    const folder = await newFolder()
    const file = path.join(folder, `source.${video.ends}`)
    await makeGeneratedVideo(video, file)
    const whole = await openVideo(file)
    const startS = video.part[0] * whole.plan.durationS
    const endS = Math.max(video.part[1] * whole.plan.durationS, startS + SHORTEST_S)
    const trimmed = { ...whole, plan: planCut(whole.plan, { startS, endS }) }
    const { videoTrack, audioTrack } = trimmed.plan
    if (!videoTrack || !audioTrack) throw new Error('a track is missing')
    const [all, part] = [await lookAt(folder, whole), await lookAt(folder, trimmed)]
    const { firstFrame = 0, frameCount, rateNum, rateDen } = videoTrack
    const beginsAtS = (firstFrame * rateDen) / rateNum
    expect(Math.abs(beginsAtS - startS)).toBeLessThanOrEqual(rateDen / rateNum / 2 + 1e-6)
    expect(part.numbers).toEqual(all.numbers.slice(firstFrame, firstFrame + frameCount))
    expect(part.times).toEqual(count(frameCount).map((frame) => frame * part.ticks))

    const lengthS = (frameCount * rateDen) / rateNum
    const expected = all.beeps.map(({ atS }) => atS - beginsAtS).filter((atS) => atS > 0.15 && atS < lengthS - 0.3)
    for (const atS of expected) {
      const nearest = Math.min(...part.beeps.map((beep) => Math.abs(beep.atS - atS)))
      expect(nearest).toBeLessThan(SOUND_TOLERANCE_S)
    }
  },
)

async function lookAt(folder: string, video: OpenVideo) {
  const { videoTrack, audioTrack } = video.plan
  const encoded = await encodeAsServed(video)
  const id = videoTrack?.renditions[0]?.id ?? 0
  const ticks = videoTrack ? (videoTrack.timescale * videoTrack.rateDen) / videoTrack.rateNum : 0
  return {
    ticks,
    numbers: (await readFrames(await joinRendition(folder, encoded, id))).map(({ number }) => number),
    times: presentationTimes(encoded, id, ticks),
    beeps: await readBeeps(folder, encoded, audioTrack?.renditionId ?? 0),
  }
}

describe('the plan of a part', () => {
  const plan: Plan = {
    durationS: 60,
    isSeekable: true,
    videoTrack: {
      ...{ rateNum: 25, rateDen: 1, timescale: 90_000, frameCount: 1500, heldFrames: 250, gopFrames: 100 },
      ...{ interlaced: false, aspectRatio: 16 / 9, renditions: [] },
    },
    audioTrack: { renditionId: 1, bitrateBps: 128_000, frameCount: 2813, silentFrames: 100 },
  }

  test('begins and ends with whole frames, and says where', () => {
    const part = planCut(plan, { startS: 10.01, endS: 20.03 })
    expect(part.videoTrack).toMatchObject({ firstFrame: 250, frameCount: 251, heldFrames: 0 })
    expect(part.audioTrack).toMatchObject({ firstSample: 480_000, silentFrames: 0 })
    expect(part.cut).toEqual({ startS: 10, endS: 20.04, ofS: 60 })
    expect(part.durationS).toBeCloseTo(10.05, 1)
  })

  test('holds the last frame of the source as long as the whole does', () => {
    expect(planCut(plan, { startS: 40, endS: 55 }).videoTrack).toMatchObject({
      firstFrame: 1000,
      frameCount: 375,
      heldFrames: 125,
    })
  })

  test('of another part is the same as of the whole, and the whole is not cut', () => {
    const part = planCut(plan, { startS: 10, endS: 20 })
    expect(planCut(plan, { startS: 0, endS: 60 })).toEqual(plan)
    expect(part.cut?.ofS).toBe(60)
  })

  test.each([
    [-1, 5],
    [5, 5.2],
    [5, 70],
    [Number.NaN, 5],
  ])('from %s to %s is refused', (startS, endS) => {
    expect(() => planCut(plan, { startS, endS })).toThrow(/within the 60.0/)
  })
})
