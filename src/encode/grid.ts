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
  const videoTrack = probe.videoTrack && planVideoTrack(probe.videoTrack, probe.audioTrack?.durationS ?? 0)
  const videoS = videoTrack ? (videoTrack.frameCount * videoTrack.rateDen) / videoTrack.rateNum : 0
  // Where the sound ends first, silence goes on: a player of two tracks stands still where one of them ends.
  const audioTrack = probe.audioTrack && planAudioTrack(probe.audioTrack, videoS, (videoTrack?.renditions.length ?? 0) + 1)
  const audioS = audioTrack ? (audioTrack.frameCount * AAC_FRAME_SAMPLES) / AAC_RATE_HZ : 0
  return { videoTrack, audioTrack, durationS: Math.max(videoS, audioS), isSeekable: probe.isSeekable }
}

function planVideoTrack(source: NonNullable<Probe['videoTrack']>, audioS: number): VideoTrackPlan {
  // The base rate of an interlaced video may count fields; the pictures that are shown are whole frames.
  const rate = chooseFrameRate(source.interlaced ? undefined : source.baseRateHz, source.averageRateHz)
  const hz = rate.rateNum / rate.rateDen
  const sourceFrames = Math.max(1, Math.round(source.durationS * hz))
  const heldFrames = audioS > source.durationS + SOUND_AFTER_PICTURE_S ? Math.max(0, Math.ceil(audioS * hz) - sourceFrames) : 0
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

function planAudioTrack(source: NonNullable<Probe['audioTrack']>, videoS: number, renditionId: number): AudioTrackPlan {
  const framesOf = (durationS: number) => Math.max(1, Math.ceil((durationS * AAC_RATE_HZ) / AAC_FRAME_SAMPLES))
  const frameCount = framesOf(Math.max(source.durationS, videoS))
  const silentFrames = Math.max(0, frameCount - framesOf(source.announcedS ?? source.durationS))
  return { renditionId, bitrateBps: SOUND_BITRATE_BPS, frameCount, silentFrames, byCount: source.hasEmptyPackets }
}
