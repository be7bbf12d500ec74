import { expect, test } from 'vitest'
import {
  addInterval,
  decodeIntervals,
  encodeIntervals,
  type Intervals,
  pairsOf,
  sumIntervals,
} from '../../src/viewers/intervals.ts'

test.each<[string, Intervals, [number, number], Intervals]>([
  ['the first', [], [3, 5], [3, 5]],
  ['nothing', [3, 5], [4, 4], [3, 5]],
  ['before all', [10, 20], [3, 5], [3, 5, 10, 20]],
  ['after all', [10, 20], [30, 40], [10, 20, 30, 40]],
  ['between two', [0, 5, 30, 40], [10, 20], [0, 5, 10, 20, 30, 40]],
  ['inside one', [0, 20], [5, 10], [0, 20]],
  ['the same again', [0, 20], [0, 20], [0, 20]],
  ['around one', [5, 10], [0, 20], [0, 20]],
  ['what touches the end of one', [0, 10], [10, 20], [0, 20]],
  ['what touches the beginning of one', [10, 20], [0, 10], [0, 20]],
  ['what overlaps the end of one', [0, 10], [5, 20], [0, 20]],
  ['what overlaps the beginning of one', [10, 20], [5, 15], [5, 20]],
  ['what joins two', [0, 10, 20, 30], [10, 20], [0, 30]],
  ['what covers several', [0, 2, 4, 6, 8, 10, 20, 30], [3, 12], [0, 2, 3, 12, 20, 30]],
])('adds %s', (_, intervals, [from, to], expected) => {
  expect(addInterval(intervals, from, to)).toEqual(expected)
})

test('whatever is added in whatever order, the intervals are those of the set of its seconds', () => {
  const seconds = new Set<number>()
  let intervals: Intervals = []
  for (let n = 0; n < 300; n++) {
    const from = (n * 7919) % 1000
    const to = from + (n % 7)
    for (let second = from; second < to; second++) seconds.add(second)
    intervals = addInterval(intervals, from, to)
  }
  const covered = pairsOf(intervals).flatMap(([from, to]) => Array.from({ length: to - from }, (_, n) => from + n))
  expect(covered).toEqual([...seconds].toSorted((a, b) => a - b))
  expect(sumIntervals(intervals)).toBe(seconds.size)
  expect(pairsOf(intervals).every(([from], n, all) => n === 0 || from > (all[n - 1]?.[1] ?? 0))).toBe(true)
})

test.each([[[]], [[0, 60, 90, 120]]])('reads %j as it was written', (intervals) => {
  expect(decodeIntervals(encodeIntervals(intervals))).toEqual(intervals)
})
