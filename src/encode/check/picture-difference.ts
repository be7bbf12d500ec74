import type { VideoRendition, VideoTrackPlan } from '../plan.ts'

// A mean over the picture does not see a logo, and a bound for the worst place must be as wide as what an encoder does to confetti. So each place has
// a bound of its own, by how much the source moves there and how much detail it has: docs/decisions/103-checked-results.md has the figures.

/** What frames are compared as, in planar 4:2:0. */
export const SMALL = { widthPx: 96, heightPx: 54 } as const

const CELL_PX = 3
const RUN_FRAMES = 8
/**
 * By how many levels of 255 the mean of a cell may be off in one frame, on the mean of a run of frames, and on that of the segment: `always`, and
 * for each level by which its pixels change from frame to frame (`moving`) or differ in one (`detailed`).
 */
const BOUNDS = {
  frame: { always: 18, moving: 4.8, detailed: 0.075 },
  run: { always: 12, moving: 2.7, detailed: 0.045 },
  segment: { always: 10.5, moving: 0.375, detailed: 0.06 },
} as const
/** Where one pixel of the small picture stands for few of the rendition's, or tone mapping for others than its mean, so many times as much. */
const WIDER = 1.5
/** 426×240 has as many. */
const ENOUGH_PX_PER_PX = 19

/** By how much the bounds of a rendition are wider than others. */
export function toleranceOf({ color, hdr }: VideoTrackPlan, { widthPx, heightPx }: VideoRendition): number {
  const isToneMapped = hdr === true || (color !== undefined && color.transfer !== 'bt709')
  const isSmall = widthPx * heightPx < ENOUGH_PX_PER_PX * SMALL.widthPx * SMALL.heightPx
  return isToneMapped || isSmall ? WIDER : 1
}

type Plane = { offset: number; widthPx: number; columns: number; rows: number; firstCell: number }

const PLANES = planesOf(SMALL)
const CELL_COUNT = PLANES.reduce((sum, { columns, rows }) => sum + columns * rows, 0)

function planesOf({ widthPx, heightPx }: { widthPx: number; heightPx: number }): Plane[] {
  const planes: Plane[] = []
  let [offset, firstCell] = [0, 0]
  for (const half of [1, 2, 2]) {
    const [width, height] = [widthPx / half, heightPx / half]
    const [columns, rows] = [width / CELL_PX, height / CELL_PX]
    planes.push({ offset, widthPx: width, columns, rows, firstCell })
    offset += width * height
    firstCell += columns * rows
  }
  return planes
}

/**
 * Measures how far the frames of segments are from the source's.
 * @param tolerance of `toleranceOf`
 */
export function measurePicture(tolerance: number) {
  let state = newState()
  return {
    /** The next frame of a segment. */
    add(expected: Buffer, found: Buffer): void {
      addFrame(state, expected, found)
    },
    /** Ends a segment. @returns its difference, in parts of what an encode may be off: that of its worst place */
    end(): number {
      const worst = worstPlace(state)
      state = newState()
      return worst / tolerance
    },
  }
}

type State = ReturnType<typeof newState>

function newState() {
  const cells = () => new Float32Array(CELL_COUNT)
  return {
    frames: 0,
    before: undefined as Buffer | undefined,
    /** Sums over all frames: of the difference, of the source's change from frame to frame, and of its range within a cell. */
    sums: { off: cells(), moving: cells(), detailed: cells() },
    /** The difference in the last frames, and its sum. */
    last: Array.from({ length: RUN_FRAMES }, cells),
    run: cells(),
    worst: { frame: cells(), run: cells() },
  }
}

function addFrame(state: State, expected: Buffer, found: Buffer): void {
  const { sums, run, worst, before = expected } = state
  const slot = state.last[state.frames % RUN_FRAMES] ?? run
  state.frames++
  for (const plane of PLANES)
    for (let cell = 0; cell < plane.columns * plane.rows; cell++) {
      const index = plane.firstCell + cell
      const { off, moving, detailed } = describeCell(plane, cell, expected, found, before)
      add(sums.off, index, off)
      add(sums.moving, index, moving)
      add(sums.detailed, index, detailed)
      add(run, index, off - (slot[index] ?? 0))
      slot[index] = off
      raise(worst.frame, index, Math.abs(off))
      if (state.frames >= RUN_FRAMES) raise(worst.run, index, Math.abs(run[index] ?? 0) / RUN_FRAMES)
    }
  state.before = Buffer.from(expected)
}

/** One cell of a frame, in levels. */
function describeCell({ offset, widthPx, columns }: Plane, cell: number, expected: Buffer, found: Buffer, before: Buffer) {
  const start = offset + Math.floor(cell / columns) * CELL_PX * widthPx + (cell % columns) * CELL_PX
  let [off, moving, low, high] = [0, 0, 255, 0]
  for (let y = 0; y < CELL_PX; y++)
    for (let at = start + y * widthPx; at < start + y * widthPx + CELL_PX; at++) {
      const level = expected[at] ?? 0
      off += (found[at] ?? 0) - level
      moving += Math.abs(level - (before[at] ?? 0))
      low = Math.min(low, level)
      high = Math.max(high, level)
    }
  return { off: off / CELL_PX ** 2, moving: moving / CELL_PX ** 2, detailed: high - low }
}

function worstPlace({ frames, sums, run, worst }: State): number {
  let found = 0
  for (const plane of PLANES)
    for (let cell = 0; cell < plane.columns * plane.rows; cell++) {
      const index = plane.firstCell + cell
      const moving = around(plane, cell, sums.moving) / Math.max(1, frames - 1)
      const detailed = around(plane, cell, sums.detailed) / frames
      const part = (of: number | undefined, { always, ...by }: (typeof BOUNDS)[keyof typeof BOUNDS]) =>
        (of ?? 0) / (always + by.moving * moving + by.detailed * detailed)
      const inRun = frames < RUN_FRAMES ? Math.abs(run[index] ?? 0) / frames : worst.run[index]
      found = Math.max(
        found,
        part(worst.frame[index], BOUNDS.frame),
        part(inRun, BOUNDS.run),
        part(Math.abs(sums.off[index] ?? 0) / frames, BOUNDS.segment),
      )
    }
  return found
}

/** The highest value of a cell and those next to it. */
function around({ columns, rows, firstCell }: Plane, cell: number, values: Float32Array): number {
  const [row, column] = [Math.floor(cell / columns), cell % columns]
  let highest = 0
  for (let y = Math.max(0, row - 1); y <= Math.min(rows - 1, row + 1); y++)
    for (let x = Math.max(0, column - 1); x <= Math.min(columns - 1, column + 1); x++)
      highest = Math.max(highest, values[firstCell + y * columns + x] ?? 0)
  return highest
}

function add(to: Float32Array, index: number, value: number): void {
  to[index] = (to[index] ?? 0) + value
}

function raise(to: Float32Array, index: number, value: number): void {
  if (value > (to[index] ?? 0)) to[index] = value
}
