/** Samples of 16 bits as numbers. */
export function samplesOf(pcm: Buffer): Int16Array {
  return new Int16Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + (pcm.length & ~1)))
}

/**
 * By how many samples `audible` lags behind `expected` around a place: where their correlation is highest.
 * Undefined where there is next to no sound.
 */
export function findLag(
  audible: Int16Array,
  expected: Int16Array,
  at: number,
  windowSamples: number,
  maxLag: number,
): number | undefined {
  const window = expected.subarray(at, at + windowSamples)
  if (energyOf(window) / windowSamples < 100 ** 2) return undefined
  let best = { lag: 0, correlation: Number.NEGATIVE_INFINITY }
  for (let lag = -maxLag; lag <= maxLag; lag++) {
    const shifted = audible.subarray(at + lag, at + lag + windowSamples)
    if (shifted.length < windowSamples) continue
    const correlation = product(shifted, window) / Math.sqrt(energyOf(shifted) + 1)
    if (correlation > best.correlation) best = { lag, correlation }
  }
  return best.lag
}

export function isSilent(samples: Int16Array): boolean {
  return samples.every((sample) => Math.abs(sample) < 16)
}

/** Root mean square of the difference of two sounds, between two samples. */
export function differenceRms(audible: Int16Array, expected: Int16Array, from: number, to: number): number {
  let sum = 0
  for (let at = from; at < to; at++) sum += ((audible[at] ?? 0) - (expected[at] ?? 0)) ** 2
  return Math.sqrt(sum / (to - from))
}

function energyOf(samples: Int16Array): number {
  return product(samples, samples)
}

function product(a: Int16Array, b: Int16Array): number {
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}
