import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { colorFilters, encodedColor, TONE_MAPPING } from './color.ts'
import type { AudioTrackPlan, Plan, VideoRendition, VideoTrackPlan } from './plan.ts'

// Increment with every change of an argument below: segments of two encoders must not be mixed in one rendition.
const ARGUMENTS_VERSION = 7

/** Encoders with equal fingerprints may encode parts of one rendition: on other machines, too, or later. */
export function encoderFingerprint({ ffmpegVersion }: Pick<Sandbox, 'ffmpegVersion'>): string {
  return `ffmpeg ${ffmpegVersion}, arguments ${ARGUMENTS_VERSION}`
}

/** Output options of one rung. veryfast is the knee of the curve, and CRF under a cap needs no state across chunks. */
export function videoEncoderArgs(videoTrack: VideoTrackPlan, rendition: VideoRendition): string[] {
  return [
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-profile:v', 'high', '-level:v', (rendition.level / 10).toFixed(1)],
    ...['-crf', '23', '-maxrate', String(rendition.maxBitrateBps), '-bufsize', String(2 * rendition.maxBitrateBps), '-bf', '3'],
    // Exactly one closed GOP a segment.
    ...[
      '-g',
      String(videoTrack.gopFrames),
      '-keyint_min',
      String(videoTrack.gopFrames),
      '-sc_threshold',
      '0',
      '-x264-params',
      // Else it chooses some algorithms by the processor, and a repair on another machine comes out with other bytes. And it would tag where a
      // source has its chroma, which no browser reads, and of which the plan, and so the init segment of a check, knows nothing.
      'open-gop=0:cpu-independent=1:chromaloc=0',
    ],
    ...segmentArgs(videoTrack),
  ]
}

/** Output options by which each GOP becomes a segment of fragmented MP4. */
export function segmentArgs({ timescale }: VideoTrackPlan): string[] {
  return ['-video_track_timescale', String(timescale), '-f', 'mp4', '-movflags', '+cmaf+frag_keyframe', ...NO_METADATA]
}

/** Output options of the audio: a bare ADTS stream, whose frames are counted and put into boxes by us. */
export function audioEncoderArgs(audioTrack: AudioTrackPlan): string[] {
  // Without noise in the place of sound that is like noise: it came out as clicks, also in one ear alone, and the sound 1 dB worse.
  const aac = ['-c:a', 'aac', '-aac_pns', '0', '-b:a', String(audioTrack.bitrateBps)]
  return ['-ac', '2', ...aac, '-f', 'adts', ...NO_METADATA]
}

// The source's tags are not for viewers.
const NO_METADATA = ['-map_metadata', '-1', '-map_chapters', '-1']

/**
 * The filters that convert the frames of any source to the highest rung's size, in 8-bit 4:2:0 SDR.
 * The other rungs are scaled from these, which costs half of scaling each from the source.
 */
export function videoFilters({ color, hdr, renditions: [largest] }: VideoTrackPlan): string[] {
  const scale = largest ? `scale=${largest.widthPx}:${largest.heightPx}` : 'scale=iw:ih'
  return color ? colorFilters(color, scale) : [scale, ...(hdr ? TONE_MAPPING : []), 'format=yuv420p']
}

/** The filters for frames that are of one rung's size and colors already: they are tagged as those of an encode. */
export function encodedVideoFilters(videoTrack: VideoTrackPlan): string[] {
  const { color } = videoTrack
  return videoFilters({ ...videoTrack, ...(color ? { color: encodedColor(color) } : { hdr: false }), renditions: [] })
}

/** Before a graph of filters: its scalers round as every processor can. */
export const SAME_ON_ALL_PROCESSORS = 'sws_flags=bicubic+accurate_rnd+bitexact;'

/** Before a graph whose frames are compared, not encoded: each pixel is the mean of those that it stands for, which costs least. */
export const BY_AREA = 'sws_flags=area;'

/** Filters for the source's frames, before all others. */
export function sourceFilters({ interlaced, storedPx }: VideoTrackPlan): string[] {
  if (!interlaced) return []
  // yadif compares neighbours, so they must be of one size; those that are pass unchanged.
  const oneSize = storedPx ? [`scale=${storedPx.widthPx}:${storedPx.heightPx}:interl=-1`] : []
  return [...oneSize, 'yadif=mode=send_frame:deint=interlaced']
}

/** The filter that gives each frame its slot in the grid. */
export function gridFilter({ rateNum, rateDen, slotStartS = 0, firstFrame = 0, ...counts }: VideoTrackPlan): string {
  const { frameCount, heldFrames = 0 } = counts
  // fps drops an only frame that has no duration, as a cover; so it gets a second one.
  if (firstFrame === 0 && frameCount - heldFrames === 1)
    return `loop=loop=1:size=1,setpts=N*${rateDen}/${rateNum}/TB,fps=${rateNum}/${rateDen}:start_time=0`
  // Half a slot later and rounded down, instead of rounded: a last frame without a duration ends when it begins, and where that is
  // shortly before its slot, fps would take it for over. Exact halves stay in the later slot.
  const shiftUs = Math.ceil(((0.5 * rateDen) / rateNum - slotStartS) * 1_000_000) + 1
  // The last frame is shown even if it lasts for less than half of a slot.
  return `settb=1/1000000,setpts=PTS+${shiftUs},fps=${rateNum}/${rateDen}:start_time=0:round=down:eof_action=pass`
}

/** Input options of every video run. */
export function videoInputArgs(plan: Plan): string[] {
  // A size that changes in mid-video is scaled; by default all filters would restart, and count frames from zero again.
  return ['-reinit_filter', '0', ...inputClockArgs(plan)]
}

/** Input options of every audio run. @param seekToS 0: the source is read from its start */
export function audioInputArgs(plan: Plan, seekToS: number): string[] {
  return [...inputClockArgs(plan), ...(seekToS > 0 ? ['-ss', String(seekToS)] : [])]
}

/**
 * Output options by which ffmpeg also reads the other track, of a source whose clock may jump: it then follows each jump by the same
 * difference for both.
 */
export function companionArgs({ isPiped, videoTrack, audioTrack }: Plan, other: 'videoTrack' | 'audioTrack'): string[] {
  const audioStreams = audioTrack?.sources?.map(({ stream }) => `0:${stream}`) ?? ['0:a:0']
  const companions = { videoTrack: videoTrack && ['0:V:0'], audioTrack: audioTrack && audioStreams }[other]
  if (!isPiped || !companions) return []
  // With a packet each their output has ended, and the run ends with the others; ffmpeg reads them as long as it runs.
  const asCopies = ['-c', 'copy', '-frames', '1', '-f', 'framecrc', '-y', '/dev/null']
  return [...companions.flatMap((companion) => ['-map', companion]), ...asCopies]
}

/** In samples; where the input was sought into, before the place that was sought. */
export const SILENCE_BEFORE_START = 8 * AAC_FRAME_SAMPLES

/** A track that begins after the video is silent until then. */
export function silenceBefore({ firstSample = 0 }: Pick<AudioTrackPlan, 'firstSample'>): number {
  return SILENCE_BEFORE_START + Math.max(0, -firstSample)
}

/**
 * Filters that convert audio to our rate and fill gaps in its timestamps. They begin with silence, after which is time 0: the video's
 * start.
 */
export function audioClockFilter({ startS = 0, isPiped }: Plan, track: Omit<AudioTrackPlan, 'sources'>): string[] {
  // From 40 ms on lip sync is visibly off; below, correcting jitter in the timestamps would click. Joined clips often overlap by less.
  const maxErrorS = isPiped ? 0.01 : 0.04
  const clock = `aresample=${AAC_RATE_HZ}:async=1:min_hard_comp=${maxErrorS}:first_pts=-${silenceBefore(track)}`
  const time = `${track.byCount ? 'N/SR/TB' : 'PTS'}${startS === 0 ? '' : `-(${startS.toFixed(6)})/TB`}`
  // Of another rate, ffmpeg counts the silence in that: 1.0 s instead of 0.17 at 8 kHz.
  return [`aresample=${AAC_RATE_HZ}`, ...(time === 'PTS' ? [] : [`asetpts=${time}`]), clock]
}

/**
 * Video and audio are read by separate processes. In containers that are not seekable (MPEG-TS and similar) ffmpeg then counts from
 * the first packet of the stream it reads, unless the input is shifted: a microsecond is enough.
 */
export function inputClockArgs({
  isSeekable,
  isPiped,
  hasLateAudio,
}: Pick<Plan, 'isSeekable' | 'isPiped' | 'hasLateAudio'>): string[] {
  // A track that is copied must be known before.
  return [...(isPiped && hasLateAudio ? READ_FURTHER : []), ...(isSeekable ? [] : ['-itsoffset', '0.000001'])]
}

/** In place of 5 MB: an audio stream of MPEG-TS without a packet in them is known by name only. */
export const READ_FURTHER = ['-probesize', '200M', '-analyzeduration', '600M']
