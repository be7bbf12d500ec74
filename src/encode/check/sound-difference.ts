import { setImmediate } from 'node:timers/promises'
import { AAC_RATE_HZ } from '../../mp4/aac.ts'

// Below 4 kHz AAC keeps the wave itself, above it only how loud it is. So the difference of the waves is measured below, and the envelope of
// all frequencies.

const CHANNELS = 2
const WINDOW_SAMPLES = AAC_RATE_HZ / 10
/** Of the energy of what is around, so much may be different. */
const MAX_ERROR = 0.5
/** By so many decibels the sound of a window may be louder than the loudest next to it, and less loud than the least. */
const MAX_LOUDER_DB = 4
const MAX_QUIETER_DB = 6
/** Of a full scale of 32 768: what is quieter is silence. */
const SILENCE = 30

/**
 * How far sound is from that of the source, in parts of what an encode may be off: the worst tenth of a second of either ear.
 * @param expected stereo at 48 kHz, as 16-bit integers
 */
export async function measureSound(expected: Buffer, found: Buffer): Promise<number> {
  const left = measureEar(samplesOf(expected, 0), samplesOf(found, 0))
  await setImmediate() // each ear takes some milliseconds of this thread
  return Math.max(left, measureEar(samplesOf(expected, 1), samplesOf(found, 1)))
}

function measureEar(expected: Float32Array, found: Float32Array): number {
  const error = lowPass(expected.map((sample, index) => (found[index] ?? 0) - sample))
  const [wave, errors, all, received] = [lowPass(expected), error, expected, found].map(energies)
  let worst = 0
  for (const [window, energy] of (errors ?? []).entries()) {
    const around = (of: readonly number[] | undefined) => (of ?? []).slice(Math.max(0, window - 1), window + 2)
    const [expectedHere = 0, foundHere = 0] = [all?.[window], received?.[window]]
    worst = Math.max(
      worst,
      energy / (Math.max(...around(wave)) + SILENCE ** 2) / MAX_ERROR,
      decibels(foundHere, Math.max(...around(all))) / MAX_LOUDER_DB,
      decibels(expectedHere, Math.max(...around(received))) / MAX_QUIETER_DB,
    )
  }
  return worst
}

function samplesOf(bytes: Buffer, channel: number): Float32Array {
  const samples = new Int16Array(new Uint8Array(bytes).buffer) // a copy, for the alignment
  return Float32Array.from({ length: samples.length / CHANNELS }, (_, index) => samples[index * CHANNELS + channel] ?? 0)
}

/** The mean square of each window; a last short one counts to the one before. */
function energies(samples: Float32Array): number[] {
  const windows = Math.max(1, Math.floor(samples.length / WINDOW_SAMPLES))
  return Array.from({ length: windows }, (_, window) => {
    const part = samples.subarray(window * WINDOW_SAMPLES, window === windows - 1 ? undefined : (window + 1) * WINDOW_SAMPLES)
    return part.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(1, part.length)
  })
}

function decibels(energy: number, reference: number): number {
  return 10 * Math.log10((energy + SILENCE ** 2) / (reference + SILENCE ** 2))
}

/** A Butterworth filter of second order at a twelfth of the sample rate. */
function lowPass(samples: Float32Array): Float32Array {
  const k = Math.tan(Math.PI / 12)
  const norm = 1 / (1 + Math.SQRT2 * k + k * k)
  const [b, a1, a2] = [k * k * norm, 2 * (k * k - 1) * norm, (1 - Math.SQRT2 * k + k * k) * norm]
  let [x1, x2, y1, y2] = [0, 0, 0, 0]
  return samples.map((x) => {
    const y = b * (x + 2 * x1 + x2) - a1 * y1 - a2 * y2
    x2 = x1
    x1 = x
    y2 = y1
    y1 = y
    return y
  })
}
