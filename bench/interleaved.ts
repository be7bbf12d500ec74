import type { Measured } from './row.ts'

/** Measures both alternately, so that other load on the machine affects both alike. */
export async function measureInterleaved(
  pairs: number,
  ours: () => Promise<number>,
  peer: () => Promise<number>,
): Promise<Measured> {
  const results: { ours: number; peer: number }[] = []
  for (let pair = 0; pair < pairs; pair++) results.push({ ours: await ours(), peer: await peer() })
  return {
    ours: median(results.map((pair) => pair.ours)),
    peer: median(results.map((pair) => pair.peer)),
    ratio: median(results.map((pair) => pair.ours / pair.peer)),
  }
}

export async function repeat(times: number, measure: () => Promise<number>): Promise<number[]> {
  const results: number[] = []
  for (let time = 0; time < times; time++) results.push(await measure())
  return results
}

export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** The value that `percent` per cent of the values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN
}

export async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}
