import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import { chooseFrameRate, chooseTimescale, planConstantRate } from './frame-rate.ts'
import { planLadder } from './ladder.ts'
import type { AudioTrackPlan, Plan, VideoTrackPlan } from './plan.ts'
import { type AudioTrack, audioTracksIn, type Probe } from './probe.ts'

const SEGMENT_S = 4
const AUDIO_BITRATE_BPS = 128_000
// Audio often ends a little after the video. Where it is longer by more (slides, a talk over a cover image), the last frame is held, as
// it is where the container says so.
const TOLERATED_EXCESS_S = 0.5

/** Decides a video's grid and ladder. Pure: the same probe always gives the same plan. */
export function planVideo(probe: Probe): Plan {
  const fit = probe.videoTrack && usableFit(probe.videoTrack)
  const startS = fit?.startS ?? 0
  const source = startFrom(startS, probe)
  const longestS = Math.max(0, ...source.audioTracks.map(({ durationS }) => durationS))
  const videoTrack = source.videoTrack && planVideoTrack(source.videoTrack, fit, longestS)
  const videoS = videoTrack ? (videoTrack.frameCount * videoTrack.rateDen) / videoTrack.rateNum : 0
  // Audio that ends first is padded with silence: a player of two tracks stops where one of them ends.
  const firstId = (videoTrack?.renditions.length ?? 0) + 1
  const [audioTrack, ...otherAudioTracks] = source.audioTracks.map((track, index) =>
    planAudioTrack(track, Math.max(longestS, videoS), firstId + index),
  )
  const audioS = audioTrack ? (audioTrack.frameCount * AAC_FRAME_SAMPLES) / AAC_RATE_HZ : 0
  const durationS = Math.max(videoS, audioS)
  const { isSeekable, isPiped, hasLateAudio, notices } = probe
  const unusual = {
    ...(startS === 0 ? {} : { startS }),
    ...(isPiped ? { isPiped } : {}),
    ...(hasLateAudio ? { hasLateAudio } : {}),
    ...(notices.length > 0 ? { notices } : {}),
    ...(otherAudioTracks.length > 0 ? { otherAudioTracks } : {}),
  }
  return { videoTrack, audioTrack, durationS, ...unusual, isSeekable }
}

type VideoSource = NonNullable<Probe['videoTrack']>

/** The packets of an interlaced video may be fields; whole frames are shown. */
function usableFit({ fit, interlaced, averageRateHz = 0 }: VideoSource): VideoSource['fit'] {
  const isOfFields = interlaced && fit !== undefined && fit.rate.rateNum / fit.rate.rateDen > averageRateHz * 1.5
  return isOfFields ? undefined : fit
}

function startFrom(startS: number, probe: Probe): Pick<Probe, 'videoTrack'> & { audioTracks: AudioTrack[] } {
  const { videoTrack } = probe
  return {
    videoTrack: videoTrack && {
      ...videoTrack,
      durationS: videoTrack.durationS - startS,
      shownS: videoTrack.shownS && videoTrack.shownS - startS,
    },
    audioTracks: audioTracksIn(probe).map((audioTrack) => ({
      ...audioTrack,
      durationS: audioTrack.durationS - startS,
      ...(audioTrack.announcedS === undefined ? {} : { announcedS: audioTrack.announcedS - startS }),
    })),
  }
}

function planVideoTrack(source: VideoSource, fit: VideoSource['fit'], audioS: number): VideoTrackPlan {
  const { interlaced, averageRateHz, peakRateHz } = source
  const baseRateHz = interlaced ? undefined : source.baseRateHz // it may count fields
  const { slotStartS, ...rate } = fit
    ? planConstantRate(fit)
    : { ...chooseFrameRate(baseRateHz, averageRateHz, peakRateHz), slotStartS: 0 }
  const hz = rate.rateNum / rate.rateDen
  // Even if the last frame is shown for less than half of a slot; but not where only every second frame has one. Slots are counted
  // from the source's own start, as its frames are.
  const areSomeDropped = fit !== undefined && hz < fit.rate.rateNum / fit.rate.rateDen
  const lastFrame = areSomeDropped ? 0 : Math.round(((source.lastFrameS ?? 0) - slotStartS) * hz)
  const sourceFrames = Math.max(1, Math.round(source.durationS * hz), lastFrame + 1)
  const longestS = Math.max(audioS, source.shownS ?? 0)
  const heldFrames = longestS > source.durationS + TOLERATED_EXCESS_S ? Math.max(0, Math.ceil(longestS * hz) - sourceFrames) : 0
  return {
    ...rate,
    ...(slotStartS === 0 ? {} : { slotStartS }),
    timescale: chooseTimescale(rate),
    frameCount: sourceFrames + heldFrames,
    heldFrames,
    gopFrames: Math.round(SEGMENT_S * hz),
    interlaced: source.interlaced,
    storedPx: source.storedPx,
    color: source.color,
    aspectRatio: source.widthPx / source.heightPx,
    renditions: planLadder(source, rate),
  }
}

function planAudioTrack(source: AudioTrack, lengthS: number, renditionId: number): AudioTrackPlan {
  const countFrames = (durationS: number) => Math.max(1, Math.ceil((durationS * AAC_RATE_HZ) / AAC_FRAME_SAMPLES))
  const frameCount = countFrames(lengthS)
  const silentFrames = Math.max(0, frameCount - countFrames(source.announcedS ?? source.durationS))
  const { sources, hasWrongTimes: byCount, language, name } = source
  const named = { ...(language === undefined ? {} : { language }), ...(name === undefined ? {} : { name }) }
  return { renditionId, bitrateBps: AUDIO_BITRATE_BPS, frameCount, silentFrames, byCount, sources, ...named }
}
