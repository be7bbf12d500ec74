export type FrameRate = { rateNum: number; rateDen: number }

// The rates videos are made at. A source within 1 % of one is that one: containers with millisecond times say 29.97 in many ways.
const STANDARD: readonly FrameRate[] = [
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
const HIGHEST_HZ = 60
// Slower videos repeat pictures, which costs next to nothing; a grid of a few frames a segment would not be one.
const LOWEST_HZ = 5

/**
 * The constant rate a video is encoded at.
 * @param baseHz the lowest rate that can express all times (ffprobe's `r_frame_rate`); undefined where it is not told
 * @param averageHz frames ÷ duration (`avg_frame_rate`)
 */
export function chooseFrameRate(baseHz: number | undefined, averageHz: number | undefined): FrameRate {
  const average = averageHz ?? baseHz ?? 25
  // Far above the average, the base is a clock (1000, 90000) and not a rate; below it, it is wrong.
  const told = baseHz !== undefined && baseHz <= average * 8 && baseHz >= average * 0.9 ? baseHz : average
  const steady = Math.abs(told - average) <= average * 0.01
  return nearestRate(steady ? wholePart(told) : Math.min(told, HIGHEST_HZ))
}

/** 120 frames a second become 60 by leaving out every second one, 100 become 50. */
function wholePart(hz: number): number {
  return hz / Math.max(1, Math.ceil(hz / (HIGHEST_HZ * 1.01)))
}

function nearestRate(hz: number): FrameRate {
  const distance = (rate: FrameRate) => Math.abs(rate.rateNum / rate.rateDen - hz)
  const nearest = STANDARD.reduce((best, rate) => (distance(rate) < distance(best) ? rate : best))
  if (distance(nearest) <= hz * 0.01) return nearest
  // 20 stays 20 and 12.5 stays 12.5: the nearest common rate would double frames.
  const halves = Math.round(Math.min(HIGHEST_HZ, Math.max(LOWEST_HZ, hz)) * 2)
  return halves % 2 === 0 ? { rateNum: halves / 2, rateDen: 1 } : { rateNum: halves, rateDen: 2 }
}

/** Ticks a second in which a frame is a whole number of ticks: 90000 where it fits, as MPEG has it. */
export function timescaleOf({ rateNum, rateDen }: FrameRate): number {
  return (90_000 * rateDen) % rateNum === 0 ? 90_000 : rateNum * Math.ceil(10_000 / rateNum)
}
