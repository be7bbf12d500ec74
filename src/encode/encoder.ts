import { AAC_RATE_HZ } from '../mp4/aac.ts'
import type { AudioTrackPlan, Plan, VideoRendition, VideoTrackPlan } from './plan.ts'
import type { Sandbox } from './sandbox.ts'

// Raise it with every change of an argument below: segments of two encoders must not be mixed in one rendition.
const ARGUMENTS_VERSION = 3

/** What encodes: equal fingerprints mean that a killed run's gaps may be filled by this run. */
export function encoderFingerprint(sandbox: Sandbox): string {
  return `ffmpeg ${sandbox.ffmpegVersion}, arguments ${ARGUMENTS_VERSION}`
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
      'open-gop=0',
    ],
    ...['-video_track_timescale', String(videoTrack.timescale), '-f', 'mp4', '-movflags', '+cmaf+frag_keyframe'],
    ...NO_METADATA,
  ]
}

/** Output options of the sound: a bare ADTS stream, whose frames are counted and boxed here. */
export function audioEncoderArgs(audioTrack: AudioTrackPlan): string[] {
  return ['-ac', '2', '-c:a', 'aac', '-b:a', String(audioTrack.bitrateBps), '-f', 'adts', ...NO_METADATA]
}

// What the source's tags say is not for viewers.
const NO_METADATA = ['-map_metadata', '-1', '-map_chapters', '-1']

/**
 * The filters that make pictures of the highest rung's size out of any source's: 8-bit 4:2:0 of ordinary brightness.
 * The other rungs are scaled from these, which costs half of scaling each from the source.
 */
export function videoFilters({ hdr, renditions: [largest] }: VideoTrackPlan): string[] {
  const size = largest ? [`scale=${largest.widthPx}:${largest.heightPx}`] : []
  const toneMapping = [
    'zscale=t=linear:npl=100',
    'format=gbrpf32le',
    'zscale=p=bt709',
    'tonemap=hable:desat=0',
    'zscale=t=bt709:m=bt709:r=tv',
  ]
  return [...size, ...(hdr ? toneMapping : []), 'format=yuv420p']
}

/** What must be done to the source's own pictures, before the others. */
export function sourceFilters({ interlaced, storedPx }: VideoTrackPlan): string[] {
  if (!interlaced) return []
  // yadif compares neighbours, so they must be of one size; those that are pass unchanged.
  const oneSize = storedPx ? [`scale=${storedPx.widthPx}:${storedPx.heightPx}:interl=-1`] : []
  return [...oneSize, 'yadif=mode=send_frame:deint=interlaced']
}

/** Input options of every picture run. */
export function videoInputArgs(plan: Plan): string[] {
  // A picture that changes its size in mid-video is scaled on; by default all filters would begin again, and count frames anew.
  return ['-reinit_filter', '0', ...clockArgs(plan)]
}

/** Input options of every sound run. */
export function audioInputArgs(plan: Plan): string[] {
  return clockArgs(plan)
}

/** Filters that give sound at our rate, in which time 0 is the video's; gaps in its timestamps are filled. */
export function audioClockFilter({ byCount }: AudioTrackPlan): string[] {
  // From 40 ms on lips are seen to be late; below, a jitter of the times would be heard as clicks.
  const clock = `aresample=${AAC_RATE_HZ}:async=1:min_hard_comp=0.04:first_pts=0`
  return byCount ? ['asetpts=N/SR/TB', clock] : [clock]
}

/**
 * Picture and sound are read by processes of their own. In the containers that may not be sought (MPEG-TS and its like) ffmpeg
 * then counts from the first packet of the stream it reads, unless the input is shifted: by a microsecond will do.
 */
function clockArgs({ isSeekable }: Plan): string[] {
  return isSeekable ? [] : ['-itsoffset', '0.000001']
}
