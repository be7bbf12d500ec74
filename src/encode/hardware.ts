import { encodedVideoFilters, segmentArgs } from './encoder.ts'
import type { HardwareName } from './hardware-names.ts'
import type { VideoRendition, VideoTrackPlan } from './plan.ts'

// H.264 encoders of graphics cards, by ffmpeg's documentation: none was there to be tried. Each machine tries its own before it is used.

/** The encoder of a graphics card did not encode: it is lost, or cannot encode such frames. */
export class HardwareFailure extends Error {}

/** How an encoder is called. */
export type Hardware = {
  /** As ffmpeg names it. */
  codec: string
  /** Options before the input. */
  deviceArgs: readonly string[]
  /** The last filters: the format that it reads, and the way to the card. */
  filters: readonly string[]
  rateArgs(maxBitrateBps: number): string[]
}

/** Of a rendition's highest bitrate, on average: these encoders have no quality with a cap over it. */
const AVERAGE_SHARE = 2 / 3

export const HARDWARE: Readonly<Record<HardwareName, Hardware>> = {
  h264_nvenc: {
    codec: 'h264_nvenc',
    deviceArgs: [],
    filters: ['format=yuv420p'],
    // A quality under a cap, as x264's. Key frames at scene cuts come with a look-ahead alone, which is off.
    rateArgs: (max) => ['-preset', 'p5', '-rc', 'vbr', '-cq', '26', '-b:v', '0', '-maxrate', String(max), '-spatial-aq', '1'],
  },
  h264_qsv: {
    codec: 'h264_qsv',
    deviceArgs: [],
    filters: ['format=nv12'],
    rateArgs: (max) => [...variableRate(max), '-preset', 'medium', '-adaptive_i', '0', '-look_ahead', '0', '-idr_interval', '0'],
  },
  h264_vaapi: {
    codec: 'h264_vaapi',
    deviceArgs: ['-init_hw_device', 'vaapi=card', '-filter_hw_device', 'card'],
    filters: ['format=nv12', 'hwupload'],
    rateArgs: (max) => ['-rc_mode', 'VBR', ...variableRate(max), '-idr_interval', '0'],
  },
}

function variableRate(maxBitrateBps: number): string[] {
  const average = Math.round(AVERAGE_SHARE * maxBitrateBps)
  return ['-b:v', String(average), '-maxrate', String(maxBitrateBps), '-bufsize', String(2 * maxBitrateBps)]
}

/** Filters for frames of a rendition's size, in the colors of an encode. */
export function hardwareFilters({ filters }: Hardware, videoTrack: VideoTrackPlan): string[] {
  return [...encodedVideoFilters(videoTrack), 'setsar=1', ...filters]
}

// Kinds of NAL units that a segment must not have, 14496-10 table 7-1: SEI, parameter sets, delimiters and filler. Which of them an encoder writes
// depends on its driver, so they are taken out of what it wrote.
const LEFT_OUT = [6, 7, 8, 9, 12]

/** Output options of one rung. */
export function hardwareEncoderArgs(
  { codec, rateArgs }: Hardware,
  videoTrack: VideoTrackPlan,
  rendition: VideoRendition,
): string[] {
  return [
    // A number: the names of levels are not the same for all.
    ...['-c:v', codec, '-profile:v', 'high', '-level:v', String(rendition.level), ...rateArgs(rendition.maxBitrateBps)],
    // One closed GOP a segment. Without B-frames nothing depends on how a driver orders them.
    ...['-g', String(videoTrack.gopFrames), '-bf', '0', '-bsf:v', `filter_units=remove_types=${LEFT_OUT.join('|')}`],
    ...segmentArgs(videoTrack),
  ]
}
