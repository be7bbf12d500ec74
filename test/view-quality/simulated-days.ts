import { chanceOf } from '../seeded-random.ts'

// Days of views as accounts have them: each viewer's line is slow or fast, and every day a little better or worse than the last.

export type Account = {
  viewsADay: number
  /** Part of the views that wait, on an average day, and how much days differ (of the logarithm). */
  waits: number
  daysDiffer: number
  startMs: number
  /** How much worse weekends are: more of the views come over mobile networks. */
  weekend: number
}
export type SimulatedDay = { starts: number; waitedViews: number; startMedianMs: number }

export function simulateDays(
  account: Account,
  count: number,
  seed: number,
  worseFrom = Number.POSITIVE_INFINITY,
  worse = 1,
): SimulatedDay[] {
  const { next: random } = chanceOf(seed)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Array.from({ length: count }, (_, day) => {
    const ofDay = Math.exp(account.daysDiffer * normal()) * (day % 7 > 4 ? account.weekend : 1) * (day >= worseFrom ? worse : 1)
    const starts = Math.max(1, Math.round(account.viewsADay * Math.exp(0.2 * normal())))
    const waits = Math.min(0.95, account.waits * ofDay)
    let waitedViews = 0
    const startsMs: number[] = []
    for (let view = 0; view < starts; view++) {
      if (random() < waits) waitedViews++
      // A tail of slow lines, on which a start takes many times as long.
      startsMs.push(account.startMs * ofDay * Math.exp(0.7 * normal()) * (random() < 0.1 ? 5 : 1))
    }
    startsMs.sort((a, b) => a - b)
    return { starts, waitedViews, startMedianMs: Math.round(startsMs[Math.ceil(starts / 2) - 1] ?? 0) }
  })
}
