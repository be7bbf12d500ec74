/** Sorted intervals of whole seconds that neither overlap nor touch, as `[from, to, from, to, …]`; each `to` is the first second after. */
export type Intervals = readonly number[]

/** The intervals with the seconds from `fromS` up to, not including, `toS`. The same array when all of them were in it. */
export function addInterval(intervals: Intervals, fromS: number, toS: number): Intervals {
  if (toS <= fromS) return intervals
  const before: number[] = []
  const after: number[] = []
  let [mergedFromS, mergedToS] = [fromS, toS]
  for (const [from, to] of pairsOf(intervals)) {
    if (from <= fromS && toS <= to) return intervals
    if (to < fromS) before.push(from, to)
    else if (from > toS) after.push(from, to)
    else {
      mergedFromS = Math.min(mergedFromS, from)
      mergedToS = Math.max(mergedToS, to)
    }
  }
  return [...before, mergedFromS, mergedToS, ...after]
}

/** The seconds that are in one of them; `b` may be unsorted and overlap. */
export function joinIntervals(a: Intervals, b: Intervals): Intervals {
  return pairsOf(b).reduce((joined, [fromS, toS]) => addInterval(joined, fromS, toS), a)
}

/** What of the intervals lies in so many seconds from a place on, counted from there. */
export function cutIntervals(intervals: Intervals, { fromS, lengthS }: { fromS: number; lengthS: number }): Intervals {
  // The same whole number in both directions, so that what was watched before a trim is found again after it.
  const startS = Math.round(fromS)
  return pairsOf(intervals).flatMap(([from, to]) => {
    const [first, end] = [Math.max(0, from - startS), Math.min(lengthS, to - startS)]
    return first < end ? [first, end] : []
  })
}

export function sumIntervals(intervals: Intervals): number {
  let sumS = 0
  for (const [from, to] of pairsOf(intervals)) sumS += to - from
  return sumS
}

/** The whole seconds of a video, which can all be watched: what follows the last one never counts as a second. */
export function wholeSeconds(durationS: number): number {
  return Math.floor(durationS)
}

/** One `[from, to]` for each interval. */
export function pairsOf(intervals: Intervals): [number, number][] {
  const pairs: [number, number][] = []
  for (let at = 0; at < intervals.length; at += 2) pairs.push([intervals[at] ?? 0, intervals[at + 1] ?? 0])
  return pairs
}

/** As they are stored. */
export function encodeIntervals(intervals: Intervals): string {
  return intervals.join(' ')
}

export function decodeIntervals(text: string): Intervals {
  return text === '' ? [] : text.split(' ').map(Number)
}
