import {
  findByIndex,
  hasTable,
  packetAt,
  type ReadAt,
  readTable,
  type Table,
  type TrackIndex,
  type TrackOf,
} from './track-index.ts'

/** Of neighboring frames, as they are stored: the first ones, and some from the last key frame before a time on. */
type Wanted = { count: number; later?: { timeS: number; count: number } | undefined }

/** Frames are shown in another order than they are stored in: which is shown first shows within so many. */
const MAX_REORDERED = 64
const MICROSECONDS = 1e6

/**
 * Finds when frames of a video track are shown: in seconds on the clock of the file, to the microsecond.
 * @returns one or two runs; undefined: only ffmpeg can find them, such as where the beginning of the track is cut off
 */
export function findShownTimes(
  read: ReadAt,
  { count, later, ...track }: Omit<TrackOf, 'kind'> & Wanted,
): Promise<number[][] | undefined> {
  return findByIndex(read, { ...track, kind: 'vide' }, async (index) => {
    const durations = await readTable(read, index, { type: 'stts', columns: 2 })
    const delays = hasTable(index, 'ctts') ? await readTable(read, index, { type: 'ctts', columns: 2 }) : undefined
    const sizes = await readTable(read, index, { type: 'stsz', columns: 1, fieldsBytes: 8 })
    const { timescale, edit = { fromTicks: 0, delayS: 0 } } = index
    const delayTicks = Math.round(edit.delayS * timescale)
    const ticksOf = (from: number, wanted: number) => listTicks({ durations, delays }, from, Math.min(from + wanted, sizes.count))
    const secondsOf = (ticks: number) =>
      Math.round(((ticks - edit.fromTicks + delayTicks) / timescale) * MICROSECONDS) / MICROSECONDS
    const first = ticksOf(0, count)
    if (index.edit && Math.min(...first.slice(0, MAX_REORDERED)) !== edit.fromTicks) return undefined
    if (!later) return [first.map(secondsOf)]
    const atTicks = later.timeS * timescale - delayTicks + edit.fromTicks
    const keyFrame = await findKeyFrame(read, index, packetAt(durations, atTicks))
    return [first, ticksOf(keyFrame, later.count)].map((ticks) => ticks.map(secondsOf))
  })
}

/** The last key frame that is stored before a frame, or that itself. */
async function findKeyFrame(read: ReadAt, index: TrackIndex, frame: number): Promise<number> {
  if (!hasTable(index, 'stss')) return frame
  const keyFrames = await readTable(read, index, { type: 'stss', columns: 1 })
  let last = 0
  for (let row = 0; row < keyFrames.count && keyFrames.at(row, 0) - 1 <= frame; row++) last = keyFrames.at(row, 0) - 1
  return last
}

/** When frames are shown, in the track's ticks; their delays may be below zero. */
function listTicks({ durations, delays }: { durations: Table; delays: Table | undefined }, from: number, end: number): number[] {
  const [decoded, delayed] = [openRuns(durations), delays && openRuns(delays)]
  return Array.from({ length: Math.max(0, end - from) }, (_, i) => decoded(from + i).sum + ((delayed?.(from + i).value ?? 0) | 0))
}

/** A table of how many have a value. @returns what finds the value of one, and the sum of all before it, each time of a later one */
function openRuns(table: Table) {
  let [row, before, sum] = [0, 0, 0]
  return (place: number): { value: number; sum: number } => {
    for (; place >= before + table.at(row, 0); row++) {
      sum += table.at(row, 0) * table.at(row, 1)
      before += table.at(row, 0)
    }
    const value = table.at(row, 1)
    return { value, sum: sum + (place - before) * value }
  }
}
