import { type FrameRate, MIN_RATE_HZ, reduceFraction } from './frame-rate.ts'

// A grid of frames must be fitted to those of the source: where the times of a container are rounded and its frames lie about half a
// frame off a grid that begins at zero, rounding to it drops frames and repeats their neighbors.

/** A constant frame rate, and where its frames lie: frame i is shown at about `startS + i / rate`. */
export type FrameFit = {
  rate: FrameRate
  /** In seconds from the video's start: at most `MAX_CUT_S`, and less than a frame before it. */
  startS: number
}

/** Frames further from their place than this part of a frame could be rounded to a neighboring one. */
const MAX_DISTANCE = 0.45
/** A grid from zero is kept as long as every frame is nearer to its place than this, in frames, and in seconds, for its sound. */
const NEAR_ZERO = 0.35
const MAX_SHIFT_S = 0.02
/** Part of the frames of a constant rate that may be missing from a source. */
const MAX_MISSING = 0.1
/** Part of the frames that may be further from their place, such as the first one after a cut. */
const MAX_STRAY = 0.005
/** By how much the places of a simple rate may fit worse than those of another one. */
const PREFERENCE = 0.02
const MIN_FRAMES = 3
/** Sound that begins so much before the first frame is cut off, instead of showing that frame twice: it is what the encoder put there. */
const MAX_CUT_S = 0.06
/** One frame in a day. */
const MAX_ERROR_HZ = 1 / (24 * 3600)
const MAX_DENOMINATOR = 10_000

/**
 * Fits a constant rate to frame times.
 * @param runs times of neighboring frames in seconds from the video's start, ascending: of its beginning, and of a later part where known
 * @param announced rates that the container states, exact where it is right
 * @returns undefined where the rate is not constant
 */
export function fitFrameTimes(runs: readonly (readonly number[])[], announced: readonly FrameRate[]): FrameFit | undefined {
  const [first = []] = runs
  // Frames that share their times have no rate.
  if (first.length < MIN_FRAMES || !(typicalStep(first) > 0)) return undefined
  const measuredHz = measureRate(runs)
  // Of few frames with much jitter, all of which are there, the mean is more exact.
  const meanHz = (first.length - 1) / ((first.at(-1) ?? 0) - (first[0] ?? 0))
  const simple = [measuredHz, meanHz].flatMap(simpleRates).map((rate) => ({ ...place(runs, rate), handicap: 0 }))
  const others = [...announced.map(hzOf), measuredHz].map((hz) => ({ ...place(runs, toFraction(hz)), handicap: PREFERENCE }))
  const [best] = [...simple, ...others]
    .filter(({ isConstant }) => isConstant)
    .sort((a, b) => a.distance + a.handicap - (b.distance + b.handicap))
  return best && { rate: best.rate, startS: best.startS }
}

/** Rates as cameras and programs have them, and those of television. */
function simpleRates(hz: number): FrameRate[] {
  return [
    reduceFraction(Math.round(hz), 1),
    reduceFraction(Math.round(hz * 10), 10),
    reduceFraction(Math.round(hz * 1.001) * 1000, 1001),
  ].filter(({ rateNum }) => rateNum > 0) // of a clock that hardly moves
}

/** The fit of a rate that is exact, by the time of the first frame: a simple rate where it differs by less than a quarter of a frame in the end. */
export function placeRate(hz: number, { firstS, durationS }: { firstS: number; durationS: number }): FrameFit {
  const differenceHz = (rate: FrameRate) => Math.abs(hzOf(rate) - hz)
  const [nearest] = simpleRates(hz).sort((a, b) => differenceHz(a) - differenceHz(b))
  const rate = nearest && differenceHz(nearest) * durationS < 0.25 ? nearest : toFraction(hz)
  return { rate, startS: place([[firstS]], rate).startS }
}

/** The fit of a rate that is exact. @returns undefined where the frames do not keep to it, such as those of joined clips */
export function fitRate(runs: readonly (readonly number[])[], rate: FrameRate): FrameFit | undefined {
  const { isConstant, startS } = place(runs, rate)
  return isConstant ? { rate, startS } : undefined
}

/** The largest number of frames a second that lasts for `count` frames. */
export function peakRate(runs: readonly (readonly number[])[], count: number): number {
  const rates = runs.flatMap((run) => run.slice(count).map((timeS, index) => count / (timeS - (run[index] ?? 0))))
  return rates.reduce((peak, rate) => Math.max(peak, rate), 0)
}

type Placement = FrameFit & {
  isConstant: boolean
  /** How far nearly all frames are from their places at most, in frames. */
  distance: number
}

function place(runs: readonly (readonly number[])[], rate: FrameRate): Placement {
  const hz = hzOf(rate)
  const { angle: center } = sumOfCircle(runs.flat(), hz)
  const { lowest, highest } = nearlyAll(runs.flat().map((timeS) => fromNearest(timeS * hz - center)))
  // In the middle between the outermost ones there is the same room on either side.
  const start = (center + (lowest + highest) / 2 + 1) % 1
  const distance = (highest - lowest) / 2
  const slotOf = (timeS: number) => Math.round(timeS * hz - start)
  const steps = runs.flatMap((run) => run.slice(1).map((timeS, index) => slotOf(timeS) - slotOf(run[index] ?? 0)))
  const count = (isCounted: (step: number) => boolean) => steps.filter(isCounted).length
  const isConstant =
    distance <= MAX_DISTANCE &&
    count((step) => step < 1) <= steps.length * MAX_STRAY &&
    count((step) => step === 1) >= steps.length * (1 - MAX_MISSING)
  const shift = Math.abs(fromNearest(start))
  const isNearZero = shift + distance < NEAR_ZERO && shift / hz < MAX_SHIFT_S
  const slot = 1 / Math.max(1, Math.ceil(MIN_RATE_HZ / hz)) // in frames: a slow one has several
  const tooMuchCut = Math.max(0, Math.ceil((start - MAX_CUT_S * hz) / slot))
  const origin = isNearZero ? 0 : start - tooMuchCut * slot
  const firstFrame = origin + Math.round(((runs[0]?.[0] ?? 0) * hz - origin) / slot) * slot
  const startS = (firstFrame / hz < MAX_CUT_S ? Math.max(0, firstFrame) : origin) / hz
  return { rate, isConstant, distance, startS }
}

function nearlyAll(values: readonly number[]): { lowest: number; highest: number } {
  const sorted = values.toSorted((a, b) => a - b)
  const stray = Math.floor((sorted.length * MAX_STRAY) / 2)
  return { lowest: sorted[stray] ?? 0, highest: sorted[sorted.length - 1 - stray] ?? 0 }
}

/** The sum of the frames' places as points on a circle, where 0.9 and 0.1 are near each other. @returns angle: from 0 up to 1 */
function sumOfCircle(times: readonly number[], hz: number): { length: number; angle: number } {
  let [x, y] = [0, 0]
  for (const timeS of times) {
    const turn = 2 * Math.PI * ((timeS * hz) % 1)
    x += Math.cos(turn)
    y += Math.sin(turn)
  }
  return { length: Math.hypot(x, y), angle: (Math.atan2(y, x) / (2 * Math.PI) + 1) % 1 }
}

/** From −0.5 up to 0.5. */
function fromNearest(value: number): number {
  return value - Math.round(value)
}

/** Frames a second, by ever longer parts of the times: the longer, the more exact, and each is near enough to begin the next with. */
function measureRate(runs: readonly (readonly number[])[]): number {
  const [first = []] = runs
  const parts = [64, 256, 1024].filter((length) => length < first.length).map((length) => first.slice(0, length))
  const hz = [...parts, first, ...(runs.length > 1 ? [runs.flat()] : [])].reduce(
    (hz, part) => sharpestRate(part, hz, { turns: 1.5, step: 0.15 }),
    1 / typicalStep(first),
  )
  return sharpestRate(runs.flat(), hz, { turns: 0.15, step: 0.01 })
}

/** Of the rates near `hz`, the one by which the fractional parts of the frames' places agree best. @param turns by how many frames they differ at the end */
function sharpestRate(times: readonly number[], hz: number, { turns, step }: { turns: number; step: number }): number {
  const spanS = (times.at(-1) ?? 0) - (times[0] ?? 0)
  const steps = Math.round(turns / step)
  const rates = Array.from({ length: 2 * steps + 1 }, (_, index) => hz + ((index - steps) * step) / spanS)
  return rates.map((rate) => ({ rate, ...sumOfCircle(times, rate) })).reduce((a, b) => (b.length > a.length ? b : a)).rate
}

/** The mean of the steps that are about as long as most. */
function typicalStep(times: readonly number[]): number {
  const steps = times.slice(1).map((timeS, index) => timeS - (times[index] ?? 0))
  const median = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0
  const typical = steps.filter((step) => Math.abs(step - median) <= median * 0.4)
  return typical.reduce((sum, step) => sum + step, 0) / typical.length
}

/** The simplest fraction that is exact to a frame in a day. */
function toFraction(hz: number): FrameRate {
  for (let rateDen = 1; ; rateDen++) {
    const rateNum = Math.round(hz * rateDen)
    if (rateNum > 0 && (Math.abs(rateNum / rateDen - hz) < MAX_ERROR_HZ || rateDen === MAX_DENOMINATOR))
      return { rateNum, rateDen }
  }
}

function hzOf({ rateNum, rateDen }: FrameRate): number {
  return rateNum / rateDen
}
