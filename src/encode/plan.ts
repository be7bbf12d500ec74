import type { SourceColor } from './color.ts'

/**
 * Decided once for a video from its probe, before any encode: the ladder and the grid.
 * Stored as JSON with the generation; every playlist, chunk and segment number is computed from it.
 */
export type Plan = {
  /** Undefined for a file with audio only. */
  videoTrack?: VideoTrackPlan
  /** The one that plays unless a viewer chooses another. Undefined for a silent video. */
  audioTrack?: AudioTrackPlan | undefined
  /** The other audio tracks of the file, each a rendition as long as the first; missing: none. */
  otherAudioTracks?: readonly AudioTrackPlan[] | undefined
  /** The longer of video and audio, in seconds. */
  durationS: number
  /** The moment of the source that is time 0, in seconds after its start: see `FrameFit`; missing: 0. */
  startS?: number
  /** False where a seek into the source is known not to be frame-exact (MPEG-TS, elementary streams). */
  isSeekable: boolean
  /** Whether the source is read from a pipe, and both of its tracks in each run: its clock may jump or begins below zero, or an AVI has no index. */
  isPiped?: boolean
  /** Whether the audio of a pipe is known only after more than 5 MB. */
  hasLateAudio?: boolean
  /** What is kept of the file, in seconds of the `ofS` of what is made from all of it; missing: all. */
  cut?: { startS: number; endS: number; ofS: number }
  /** Whether each audio track is brought to one loudness; missing in older plans, whose sound is as loud as in the file. */
  normalizesLoudness?: boolean
  /** What the owner must know of what is left out, as sentences. */
  notices?: readonly string[]
}

/** The video track: its constant output frame rate is `rateNum / rateDen` frames a second. */
export type VideoTrackPlan = {
  rateNum: number
  rateDen: number
  /** Subtracted from the times of the source's frames before they are rounded to the grid, in seconds; missing: 0. */
  slotStartS?: number
  /** Ticks a second of the renditions' tracks; `timescale * rateDen / rateNum` is whole. */
  timescale: number
  /** The frame of the source, counted in its grid, that is the video's first; missing: 0. */
  firstFrame?: number
  /** Frames in the whole video at the output rate. */
  frameCount: number
  /** How many of them, at the end, repeat the last frame because the audio is longer; most videos have none. */
  heldFrames?: number
  /** Frames in one segment (one GOP), about 4 s. */
  gopFrames: number
  interlaced: boolean
  /** Size of the source's frames, turned upright, before the sample aspect ratio is applied; missing in older plans. */
  storedPx?: { widthPx: number; heightPx: number }
  /** Missing in older plans, whose encodes have no color tags. */
  color?: SourceColor
  /** In older plans: HDR, which is tone-mapped to SDR. */
  hdr?: boolean
  /** Width ÷ height as shown: rotation and sample aspect ratio applied. */
  aspectRatio: number
  renditions: readonly VideoRendition[]
}

/** One rung as it is encoded. `id` is unique in the generation and enters each segment's IV. */
export type VideoRendition = {
  id: number
  widthPx: number
  heightPx: number
  maxBitrateBps: number
  /** H.264 level × 10, forced on the encoder so that the codec string is known before the first frame. */
  level: number
}

/** The audio track: AAC-LC 48 kHz stereo; a segment is 188 AAC frames of 1024 samples (the last may be shorter). */
export type AudioTrackPlan = {
  renditionId: number
  bitrateBps: number
  /** The sample of the source at 48 kHz with which the video begins; missing: 0. */
  firstSample?: number
  frameCount: number
  /** How many of them, at the end, are silence because the video is longer; most videos have none. */
  silentFrames?: number
  /** The times of the source's packets are wrong: time is counted in samples. */
  byCount?: boolean
  /** The source's streams that are heard, together; missing in older plans: its first audio stream. */
  sources?: readonly AudioSource[]
  /** Of one among several, where the file names it: BCP 47, in lower case. */
  language?: string
  /** Its title in the file. */
  name?: string
  /** Of a track that was added as a file of its own. */
  dub?: DubFile
}

/** The file of an audio track that is not in the video's file. */
export type DubFile = {
  sourceNumber: number
  /** Where on the video's file it begins, in seconds of what is made from all of that. */
  startS: number
  /** What would be made of it alone. */
  plan: Plan
}

export type AudioSource = {
  /** Its index in the file, among all streams. */
  stream: number
  channels: number
  /** ffmpeg's description of where the channels are heard, such as `5.1` or `1 channels (FL)`, where the file names it. */
  layout?: string
  /** One of several mono streams, each with its place. */
  isPlaced?: boolean
}

export const AAC_FRAMES_PER_SEGMENT = 188
/** More than this, and a player's menu and the encoder's work have no end. */
export const MAX_AUDIO_TRACKS = 8
/** The grid of a file without video: key windows need a frame rate and a GOP. */
const AUDIO_ONLY_GRID = { rateNum: 25, rateDen: 1, gopFrames: 100 } as const

/** The frame rate and GOP that key windows are counted by. */
export function gridFor(plan: Plan): { rateNum: number; rateDen: number; gopFrames: number } {
  return plan.videoTrack ?? AUDIO_ONLY_GRID
}

/** How many segments each video rendition has. */
export function videoSegmentCount(videoTrack: VideoTrackPlan): number {
  return Math.ceil(videoTrack.frameCount / videoTrack.gopFrames)
}

/** The audio tracks, the default one first. */
export function audioTracksOf({ audioTrack, otherAudioTracks = [] }: Pick<Plan, 'audioTrack' | 'otherAudioTracks'>) {
  return audioTrack ? [audioTrack, ...otherAudioTracks] : []
}

/** A plan with these audio tracks, the default one first. */
export function withAudioTracks(plan: Plan, [audioTrack, ...others]: readonly AudioTrackPlan[]): Plan {
  return { ...plan, audioTrack, otherAudioTracks: others.length > 0 ? others : undefined }
}

/** The audio track of a rendition; undefined for the id of another rendition, or of none. */
export function findAudioTrack(plan: Plan, renditionId: number | null): AudioTrackPlan | undefined {
  return audioTracksOf(plan).find((track) => track.renditionId === renditionId)
}

/** How many segments an audio rendition has. */
export function audioSegmentCount(audioTrack: AudioTrackPlan): number {
  return Math.ceil(audioTrack.frameCount / AAC_FRAMES_PER_SEGMENT)
}

/** How many segments a complete video has, over all renditions. */
export function plannedSegmentCount(plan: Plan): number {
  const { videoTrack } = plan
  const videoRenditions = videoTrack ? videoSegmentCount(videoTrack) * videoTrack.renditions.length : 0
  return audioTracksOf(plan).reduce((sum, track) => sum + audioSegmentCount(track), videoRenditions)
}
