export type FrameRate = { rateNum: number; rateDen: number }

// A source within 1 % of one of these has that rate: containers with millisecond times round 29.97 in many ways.
const STANDARD_RATES: readonly FrameRate[] = [
  { rateNum: 24_000, rateDen: 1001 },
  { rateNum: 24, rateDen: 1 },
  { rateNum: 25, rateDen: 1 },
  { rateNum: 30_000, rateDen: 1001 },
  { rateNum: 30, rateDen: 1 },
  { rateNum: 48, rateDen: 1 },
  { rateNum: 50, rateDen: 1 },
  { rateNum: 60_000, rateDen: 1001 },
  { rateNum: 60, rateDen: 1 },
]
const MAX_RATE_HZ = 60
// Slower videos repeat frames, which costs next to nothing; a segment needs more than a few frames.
export const MIN_RATE_HZ = 5

/**
 * The constant rate a video is encoded at.
 * @param baseHz the lowest rate that can express all times (ffprobe's `r_frame_rate`); undefined where it is unknown
 * @param averageHz frames ÷ duration (`avg_frame_rate`)
 * @param peakHz the highest rate that lasts for half a second
 */
export function chooseFrameRate(baseHz: number | undefined, averageHz: number | undefined, peakHz = 0): FrameRate {
  const average = averageHz ?? baseHz ?? 25
  // Far above the average, the base is a clock (1000, 90000) and not a rate, unless frames come at it; below it, it is wrong.
  const isClock = baseHz !== undefined && baseHz > average * 8 && !(baseHz <= MAX_RATE_HZ && peakHz > baseHz * 0.8)
  const rateHz = baseHz !== undefined && !isClock && baseHz >= average * 0.9 ? baseHz : average
  const isConstant = Math.abs(rateHz - average) <= average * 0.01
  return nearestRate(isConstant ? reduceRate(rateHz) : Math.min(rateHz, MAX_RATE_HZ))
}

/** Drops whole frames only: 120 frames a second become 60, 100 become 50. */
function reduceRate(hz: number): number {
  return hz / Math.max(1, Math.ceil(hz / (MAX_RATE_HZ * 1.01)))
}

function nearestRate(hz: number): FrameRate {
  const distance = (rate: FrameRate) => Math.abs(rate.rateNum / rate.rateDen - hz)
  const nearest = STANDARD_RATES.reduce((best, rate) => (distance(rate) < distance(best) ? rate : best))
  if (distance(nearest) <= hz * 0.01) return nearest
  // 20 remains 20 and 12.5 remains 12.5: the nearest standard rate would duplicate frames.
  const halves = Math.round(Math.min(MAX_RATE_HZ, Math.max(MIN_RATE_HZ, hz)) * 2)
  return halves % 2 === 0 ? { rateNum: halves / 2, rateDen: 1 } : { rateNum: halves, rateDen: 2 }
}

/**
 * The grid of a source whose rate is constant: every frame in a slot of its own, or of a source above 60 frames a second every second one,
 * and of a very slow one each in several.
 * @returns slotStartS: what is subtracted from a frame's time so that rounding it finds its slot
 */
export function planConstantRate({ rate, startS }: { rate: FrameRate; startS: number }): FrameRate & { slotStartS: number } {
  const hz = rate.rateNum / rate.rateDen
  const dropped = Math.max(1, Math.ceil(hz / (MAX_RATE_HZ * 1.01)))
  const repeated = Math.max(1, Math.ceil(MIN_RATE_HZ / hz))
  // The last of the frames that share a slot is shown: those before it lie ahead of its time.
  const slotStartS = startS - (dropped - 1) / 2 / hz
  return { ...reduceFraction(rate.rateNum * repeated, rate.rateDen * dropped), slotStartS }
}

export function reduceFraction(rateNum: number, rateDen: number): FrameRate {
  const divisor = greatestCommonDivisor(rateNum, rateDen)
  return { rateNum: rateNum / divisor, rateDen: rateDen / divisor }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}

/** Ticks a second in which a frame is a whole number of ticks: 90000 where it fits, as MPEG has it. */
export function chooseTimescale({ rateNum, rateDen }: FrameRate): number {
  return (90_000 * rateDen) % rateNum === 0 ? 90_000 : rateNum * Math.ceil(10_000 / rateNum)
}
