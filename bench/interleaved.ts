import type { Measured } from './row.ts'

/** Measures both in turns, so that what else the machine does meets both alike. */
export async function measureInterleaved(
  pairs: number,
  ours: () => Promise<number>,
  peer: () => Promise<number>,
): Promise<Measured> {
  const found: { ours: number; peer: number }[] = []
  for (let pair = 0; pair < pairs; pair++) found.push({ ours: await ours(), peer: await peer() })
  return {
    ours: median(found.map((pair) => pair.ours)),
    peer: median(found.map((pair) => pair.peer)),
    ratio: median(found.map((pair) => pair.ours / pair.peer)),
  }
}

export async function repeat(times: number, measure: () => Promise<number>): Promise<number[]> {
  const found: number[] = []
  for (let time = 0; time < times; time++) found.push(await measure())
  return found
}

export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** The value that so many of a hundred do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN
}

export async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const begunAt = performance.now()
  await work()
  return performance.now() - begunAt
}
