import { findShownTimes } from '../mp4/shown-times.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { withClearBytes } from '../sandbox/clear-bytes.ts'
import type { MediaLimits, SealedSource } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { entriesOf, number, readLines } from './ffprobe-lines.ts'

/** Frames at the beginning, and a quarter as many in the middle. */
const MAX_FRAMES = 2_000
const MIN_FRAMES = 200
/** ffprobe decrypts and reads whole packets for their times: some 150 MB a second. */
const MAX_READ_BYTES = 24 * 1024 * 1024

/** A video stream of a source. Times in seconds. */
type VideoStream = {
  index: string
  /** The first moment of the file, on its own clock. */
  startS: number
  durationS: number
  averageHz: number
  /** Whether a seek arrives at the time that it was given. */
  isSeekable: boolean
}

/**
 * Reads when the first frames of a video are shown, and some of its middle.
 * @returns runs: one or two of neighboring frames: seconds from the video's start, ascending; none where they cannot be read.
 *   firstHasTime: false where the first packet has no time
 */
export async function readFrameTimes(
  { sandbox, source, signal }: { sandbox: Sandbox; source: SealedSource; signal: AbortSignal | undefined },
  { index, startS, durationS, averageHz, isSeekable }: VideoStream,
  limits: MediaLimits,
): Promise<{ runs: number[][]; firstHasTime: boolean }> {
  const frameBytes = source.sizeBytes / (durationS * averageHz)
  const count = Math.round(Math.min(MAX_FRAMES, Math.max(MIN_FRAMES, MAX_READ_BYTES / frameBytes)))
  // Only where the beginning certainly ends before the middle: their packets are distinguished by how many there are.
  const hasMiddle = isSeekable && durationS * averageHz > 4 * count
  const later = hasMiddle ? { timeS: startS + durationS / 2, count: Math.ceil(count / 4) } : undefined
  const indexed = await findIndexedTimes(source, { stream: Number(index), count, later })
  if (indexed) return { runs: toRuns(indexed, startS), firstHasTime: true }
  const middle = later ? `,${later.timeS.toFixed(3)}%+#${later.count}` : ''
  const times: (number | undefined)[] = []
  const end = await runMedia(sandbox, {
    tool: 'ffprobe',
    source,
    inputArgs: ['-select_streams', index, '-read_intervals', `%+#${count}${middle}`],
    outputArgs: ['-of', 'compact', '-show_entries', 'packet=pts_time,dts_time,flags'],
    stdout: (bytes) => readLines(bytes, (line) => times.push(timeOf(line))),
    limits,
    signal,
  })
  if (end.exitCode !== 0 || end.outOfTime) return { runs: [], firstHasTime: true }
  const runs = [times.slice(0, count), times.slice(count)].map((run) => run.filter((timeS) => timeS !== undefined))
  return { runs: toRuns(runs, startS), firstHasTime: times.length === 0 || times[0] !== undefined }
}

/** An MP4 has them in its index, which ffprobe reads for all tracks, and with the packets. */
async function findIndexedTimes(source: SealedSource, wanted: Omit<Parameters<typeof findShownTimes>[1], 'sizeBytes'>) {
  if (source.openInPlace) return undefined
  return withClearBytes(source, (read) => findShownTimes(read, { ...wanted, sizeBytes: source.sizeBytes }))
}

function toRuns(times: readonly number[][], startS: number): number[][] {
  return times.map((run) => run.map((timeS) => timeS - startS).sort((a, b) => a - b)).filter((run) => run.length > 0)
}

/** Undefined: never shown, or without a time. */
function timeOf(line: string): number | undefined {
  const { pts_time, dts_time, flags = '' } = entriesOf(line)
  return flags.includes('D') ? undefined : (number(pts_time) ?? number(dts_time))
}
