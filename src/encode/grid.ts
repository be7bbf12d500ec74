import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import { chooseFrameRate, timescaleOf } from './frame-rate.ts'
import { planLadder } from './ladder.ts'
import type { AudioTrackPlan, Plan, VideoTrackPlan } from './plan.ts'
import type { Probe } from './probe.ts'

const SEGMENT_S = 4
const SOUND_BITRATE_BPS = 128_000
// A video's sound often ends a little after its picture. Where it goes on for longer (slides, a cover with a talk), the last picture stays.
const SOUND_AFTER_PICTURE_S = 0.5

/** Decides a video's grid and ladder. Pure: the same probe always gives the same plan. */
export function planVideo(probe: Probe): Plan {
  const picture = probe.picture && planPicture(probe.picture, probe.sound?.durationS ?? 0)
  const pictureS = picture ? (picture.frameCount * picture.rateDen) / picture.rateNum : 0
  // Where the sound ends first, silence goes on: a player of two tracks stands still where one of them ends.
  const sound = probe.sound && planSound(probe.sound, pictureS, (picture?.renditions.length ?? 0) + 1)
  const soundS = sound ? (sound.frameCount * AAC_FRAME_SAMPLES) / AAC_RATE_HZ : 0
  return { picture, sound, durationS: Math.max(pictureS, soundS), mayBeSought: probe.mayBeSought }
}

function planPicture(source: NonNullable<Probe['picture']>, soundS: number): VideoTrackPlan {
  // The base rate of an interlaced video may count fields; the pictures that are shown are whole frames.
  const rate = chooseFrameRate(source.interlaced ? undefined : source.baseRateHz, source.averageRateHz)
  const hz = rate.rateNum / rate.rateDen
  const sourceFrames = Math.max(1, Math.round(source.durationS * hz))
  const heldFrames = soundS > source.durationS + SOUND_AFTER_PICTURE_S ? Math.max(0, Math.ceil(soundS * hz) - sourceFrames) : 0
  return {
    ...rate,
    timescale: timescaleOf(rate),
    frameCount: sourceFrames + heldFrames,
    heldFrames,
    gopFrames: Math.round(SEGMENT_S * hz),
    interlaced: source.interlaced,
    storedPx: source.storedPx,
    hdr: source.hdr,
    aspectRatio: source.widthPx / source.heightPx,
    renditions: planLadder(source, rate),
  }
}

function planSound(source: NonNullable<Probe['sound']>, pictureS: number, renditionId: number): AudioTrackPlan {
  const framesOf = (durationS: number) => Math.max(1, Math.ceil((durationS * AAC_RATE_HZ) / AAC_FRAME_SAMPLES))
  const frameCount = framesOf(Math.max(source.durationS, pictureS))
  const silentFrames = Math.max(0, frameCount - framesOf(source.announcedS ?? source.durationS))
  return { renditionId, bitrateBps: SOUND_BITRATE_BPS, frameCount, silentFrames, byCount: source.hasEmptyPackets }
}
