import { Failure } from '../errors.ts'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import type { AudioTrackPlan, Plan, VideoTrackPlan } from './plan.ts'

/** What is kept of a file, in seconds of what is made from all of it. */
export type Part = { startS: number; endS: number }

/** Shorter than this is no video, and has no frame to show before it ends. */
const MIN_LENGTH_S = 0.5
/** By so much clients round lengths. */
const ROUNDED_S = 0.05

/**
 * The plan of a part of a file, from the plan of all of it: it begins and ends with whole frames of the grid, and its sound begins at
 * the sample at which its first frame is shown. Pure.
 * @throws Failure as `assertPart`
 */
export function planCut(plan: Plan, part: Part): Plan {
  const ofS = plan.durationS
  assertPart(part, ofS)
  if (part.startS === 0 && part.endS >= ofS - ROUNDED_S) return plan
  const videoTrack = plan.videoTrack && cutVideo(plan.videoTrack, part)
  const hz = videoTrack ? videoTrack.rateNum / videoTrack.rateDen : 0
  const startS = videoTrack ? (videoTrack.firstFrame ?? 0) / hz : part.startS
  const lengthS = videoTrack ? videoTrack.frameCount / hz : Math.min(part.endS, ofS) - startS
  const audioTrack = plan.audioTrack && cutAudio(plan.audioTrack, startS, lengthS)
  const audioS = audioTrack ? (audioTrack.frameCount * AAC_FRAME_SAMPLES) / AAC_RATE_HZ : 0
  const durationS = Math.max(videoTrack ? lengthS : 0, audioS)
  const otherAudioTracks = plan.otherAudioTracks?.map((track) => cutAudio(track, startS, lengthS))
  const others = otherAudioTracks ? { otherAudioTracks } : {}
  return { ...plan, videoTrack, audioTrack, ...others, durationS, cut: { startS, endS: startS + lengthS, ofS } }
}

/** @throws Failure `invalid` for a part that is not within so many seconds, or too short */
export function assertPart({ startS, endS }: Part, ofS: number): void {
  if (startS >= 0 && endS <= ofS + ROUNDED_S && endS - startS >= MIN_LENGTH_S) return
  throw new Failure(
    'invalid',
    `"startS" and "endS" are seconds within the ${ofS.toFixed(1)} of the file, endS at least ${MIN_LENGTH_S} after startS.`,
  )
}

/** Whether this part is what a plan makes, to the frame, or of sound alone to the sample. Pure. */
export function isCutTo({ cut, durationS, videoTrack }: Plan, { startS, endS }: Part): boolean {
  const hz = videoTrack ? videoTrack.rateNum / videoTrack.rateDen : AAC_RATE_HZ
  const isSame = (one: number, other: number) => Math.round(one * hz) === Math.round(other * hz)
  if (!cut) return isSame(startS, 0) && endS >= durationS - ROUNDED_S
  return isSame(startS, cut.startS) && isSame(Math.min(endS, cut.ofS), cut.endS)
}

function cutVideo(videoTrack: VideoTrackPlan, { startS, endS }: Part): VideoTrackPlan {
  const hz = videoTrack.rateNum / videoTrack.rateDen
  const { frameCount, heldFrames = 0 } = videoTrack
  // A frame of the source, so that there is a picture to hold where the sound is longer.
  const firstFrame = Math.min(Math.round(startS * hz), frameCount - heldFrames - 1)
  const end = Math.max(firstFrame + 1, Math.min(Math.round(endS * hz), frameCount))
  return {
    ...videoTrack,
    firstFrame,
    frameCount: end - firstFrame,
    heldFrames: Math.max(0, end - (frameCount - heldFrames)),
  }
}

function cutAudio(audioTrack: AudioTrackPlan, startS: number, lengthS: number): AudioTrackPlan {
  const firstSample = Math.round(startS * AAC_RATE_HZ)
  const frameCount = Math.max(1, Math.ceil((lengthS * AAC_RATE_HZ) / AAC_FRAME_SAMPLES))
  const announcedSamples = (audioTrack.frameCount - (audioTrack.silentFrames ?? 0)) * AAC_FRAME_SAMPLES - firstSample
  const silentFrames = Math.max(0, frameCount - Math.ceil(Math.max(0, announcedSamples) / AAC_FRAME_SAMPLES))
  return { ...audioTrack, firstSample, frameCount, silentFrames }
}
