import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { MediaEnd, SealedSource } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { readLines } from './ffprobe-lines.ts'

/** A track of a source as ffmpeg reads it for an encode. Times in seconds from the video's start, after the jumps of its clock. */
type Timeline = {
  /** When the last frame or packet begins, and when it ends. */
  lastS: number
  endS: number
  hasWrongTimes: boolean
  /** Whether the file ends within the last packet. */
  isBrokenOff: boolean
  /** Times of neighboring packets, ascending: of the beginning, and of a part after the middle where there is one. */
  runs: number[][]
}

const BEGINNING_FRAMES = 2_000
const LATER_FRAMES = 500
/** Of a busy disk. A pipe brings ten times as much. */
const MIN_BYTES_PER_S = 20_000_000
const [CORRUPT, DISCARDED] = [2, 4]
const NO_TIME = String(-(2n ** 63n))

/**
 * Reads all packets of the tracks, as ffmpeg's own command line does when it copies them: where a container's clock may jump, it follows.
 * @param indexes of the tracks. What is read together has one clock
 * @returns timelines: by these indexes, of those that have packets
 */
export async function readTimelines(
  { sandbox, source, signal }: { sandbox: Sandbox; source: SealedSource; signal: AbortSignal | undefined },
  indexes: readonly string[],
  { isPiped, inputArgs }: { isPiped: boolean; inputArgs: readonly string[] },
): Promise<{ end: MediaEnd; timelines: Map<string, Timeline> }> {
  const readers = indexes.map(() => newReader())
  const ticksPerS: number[] = []
  const cpuS = 30 + source.sizeBytes / MIN_BYTES_PER_S
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    isPiped,
    inputArgs,
    outputArgs: [...indexes.flatMap((index) => ['-map', `0:${index}`]), '-c', 'copy', '-copyinkf', '-f', 'framecrc', 'pipe:3'],
    pipes: [(bytes) => readLines(bytes, readLine)],
    limits: { cpuS, wallS: 2 * cpuS },
    signal,
  })
  const timelines = indexes.map((index, output) => [index, readers[output]?.timeline()] as const)
  return { end, timelines: new Map(timelines.flatMap(([index, timeline]) => (timeline ? [[index, timeline]] : []))) }

  /** Reads `#tb 0: 1/90000`, or `0, dts, pts, duration, size, checksum, F=0x2`, where flags other than that of a key frame are named. */
  function readLine(line: string) {
    const [, output, num, den] = /^#tb (\d+): (\d+)\/(\d+)/.exec(line) ?? []
    if (output !== undefined) ticksPerS[Number(output)] = Number(den) / Number(num)
    if (line.startsWith('#')) return
    const [at = '', dts, pts, duration, size, , ...rest] = line.split(',').map((field) => field.trim())
    const flags = Number(rest.find((field) => field.startsWith('F='))?.slice(2) ?? 0)
    const hz = ticksPerS[Number(at)] ?? 1
    const secondsOf = (ticks: string | undefined) => (ticks === undefined || ticks === NO_TIME ? undefined : Number(ticks) / hz)
    const [decodedS, shownS, durationS = 0] = [dts, pts, duration].map(secondsOf)
    if (decodedS !== undefined) readers[Number(at)]?.add({ decodedS, shownS, durationS, isEmpty: size === '0', flags })
  }
}

type Packet = { decodedS: number; shownS: number | undefined; durationS: number; isEmpty: boolean; flags: number }

function newReader() {
  let count = 0
  /** How long after its decoding time the first frame is shown: for frames of MPEG-PS that have no time of their own. */
  let delayS: number | undefined
  /** Some packets have no time of their own. The last frame that is shown may be one of those, and not the last that is decoded. */
  let lacksTimes = false
  let isBrokenOff = false
  let known: Omit<Timeline, 'isBrokenOff' | 'runs'> | undefined
  const beginning: number[] = []
  let later: number[] = []
  /** Where the later part begins: again wherever twice as much has been read. */
  let laterFrom = 2 * BEGINNING_FRAMES
  return {
    add({ decodedS, shownS, durationS, isEmpty, flags }: Packet) {
      delayS ??= shownS === undefined ? undefined : shownS - decodedS
      lacksTimes ||= shownS === undefined
      const byDecodingS = decodedS + (delayS ?? 0)
      const beginS = shownS ?? byDecodingS
      const latestS = lacksTimes ? Math.max(beginS, byDecodingS) : beginS
      isBrokenOff = (flags & CORRUPT) !== 0
      if (flags & DISCARDED) return // outside the edit list: decoded, never shown
      known = {
        lastS: Math.max(latestS, known?.lastS ?? latestS),
        endS: Math.max(latestS + durationS, known?.endS ?? 0),
        hasWrongTimes: isEmpty || known?.hasWrongTimes === true,
      }
      if (count === 2 * laterFrom) [laterFrom, later] = [count, []]
      if (count < BEGINNING_FRAMES) beginning.push(beginS)
      else if (count >= laterFrom && later.length < LATER_FRAMES) later.push(beginS)
      count++
    },
    timeline(): Timeline | undefined {
      const runs = [beginning, later].filter((run) => run.length > 0).map((run) => run.sort((a, b) => a - b))
      return known && { ...known, isBrokenOff, runs }
    },
  }
}
