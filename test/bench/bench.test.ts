import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { measureInterleaved, percentile } from '../../bench/interleaved.ts'
import { formatAim, isMet } from '../../bench/row.ts'

const MAIN = join(import.meta.dirname, '../../bench/main.ts')

test.each(['--only=nothing', '--help'])('npm run bench -- %s says which rows there are', async (argument) => {
  const { code, stderr } = await promisify(execFile)(process.execPath, [MAIN, argument]).catch((error) => error)
  expect(code).toBe(2)
  for (const row of ['list', 'search-million', 'otp', 'key', 'segment-static', 'ladder', 'killed', 'first-frame', 'start'])
    expect(stderr).toContain(row)
})

test('the ratio is the median of the pairs’ ratios, so that a disturbance of both says nothing', async () => {
  const [ours, peer] = [
    [10, 1, 12],
    [20, 2, 20],
  ].map((values) => values.values())
  const take = (values?: Iterator<number>) => async () => values?.next().value ?? Number.NaN
  expect(await measureInterleaved(3, take(ours), take(peer))).toEqual({ ours: 10, peer: 20, ratio: 0.5 })
  expect(percentile([4, 1, 3, 2], 99)).toBe(4)
})

test('an aim is met at its limit and missed past it', () => {
  expect([0.5, 0.49].map((ratio) => isMet({ ratioAtLeast: 0.5 }, { ours: 1, peer: 1, ratio }))).toEqual([true, false])
  expect([1.1, 1.11].map((ratio) => isMet({ ratioAtMost: 1.1 }, { ours: 1, peer: 1, ratio }))).toEqual([true, false])
  expect([90, 91].map((ours) => isMet({ oursAtMost: 90 }, { ours }))).toEqual([true, false])
  expect([95, 94].map((ours) => isMet({ oursAtLeast: 95 }, { ours }))).toEqual([true, false])
  expect([25, 26].map((ours) => isMet({ maxExtraS: 15 }, { ours, peer: 10, ratio: ours / 10 }))).toEqual([true, false])
  expect(isMet({ ratioAtLeast: 0.5 }, { ours: 1 })).toBe(false)
  expect([formatAim({ ratioAtLeast: 0.5 }, 'per s'), formatAim({ oursAtMost: 90 }, 'MB')]).toEqual(['≥ 0.5×', '≤ 90 MB'])
})
