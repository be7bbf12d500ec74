import { PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { MediaEnd, MediaRun, Reader } from '../sandbox/media-run.ts'
import { runMedia, runOnSamples } from '../sandbox/run.ts'
import { limitPeaks, mixChangingSources } from './downmix.ts'
import { audioInputArgs, companionArgs } from './encoder.ts'
import { type AudioBlock, readMatroskaAudio } from './matroska-audio.ts'
import type { AudioTrackPlan, Plan } from './plan.ts'
import { runAll } from './run-all.ts'

// Audio whose channels or sample rate change in mid-stream: joined recordings, television. ffmpeg makes all its filters again at such a
// change, and they count from zero again, pad with silence, and drop what comes after. So one process decodes to one format, with
// filters that count nothing; the samples are put in their places here, and another process encodes them.

export type AudioRun = Pick<MediaRun, 'source' | 'limits' | 'signal'> & {
  plan: Plan
  audioTrack: AudioTrackPlan
  /** By how much it is made louder, in decibels; missing: it stays as it is. */
  gainDb?: number | undefined
  /** The second of the source to seek to; 0: it is read from its start. */
  seekToS: number
  /** At 48 kHz, from there to the first sample that is encoded. */
  skippedSamples: number
  /** How many AAC frames are encoded; what the source lacks is silence. */
  frameCount: number
  /** For what is encoded, after all others. */
  filters: readonly string[]
  /** What is made of it. */
  outputArgs: readonly string[]
  reader: Reader
}
/** @property decodedSamples how many samples there were up to the last one of the source, at most those of all frames */
export type AudioEnd = { end: MediaEnd; decodedSamples: number }

const CHANNELS = 2
/** Times that are off by less are jitter, and so is more that comes about little by little: correcting it would click. */
const JITTER_SAMPLES = 0.01 * AAC_RATE_HZ
const MAX_DRIFT_SAMPLES = 0.08 * AAC_RATE_HZ
/** Two blocks agree if one begins where the other ends, but for rounding. */
const AGREED_SAMPLES = 0.004 * AAC_RATE_HZ
/** Some ten seconds. */
const MAX_JUMPED = 500
/**
 * Where sound overlaps at a change by no more than this, both are heard: it is what an encoder put at the end of one part and at the
 * beginning of the next, and dropping either would take some of the sound next to it.
 */
const MAX_MIXED_SAMPLES = 0.1 * AAC_RATE_HZ

/** Whether a run with `-reinit_filter 0` ended because the channels or the sample rate change. */
export function hasFormatChange({ exitCode, stderr }: MediaEnd): boolean {
  return exitCode !== 0 && stderr.includes('Changing audio frame properties on the fly is not supported')
}

/** Encodes audio whose channels or sample rate change. */
export async function encodeChangingAudio(sandbox: Sandbox, run: AudioRun): Promise<AudioEnd> {
  const { source, plan, seekToS, limits, signal } = run
  const timeline = newTimeline(run)
  const placed = new PassThrough()
  const ends: { decoding?: MediaEnd; encoding?: MediaEnd } = {}
  await runAll(signal, [
    async (signal) => {
      const place = (bytes: Readable) => pipeline(bytes, readMatroskaAudio, timeline.place, placed)
      const outputArgs = [...decodingArgs(run), ...companionArgs(plan, 'videoTrack')]
      const args = { inputArgs: audioInputArgs(plan, seekToS), outputArgs, pipes: [place] }
      ends.decoding = await runMedia(sandbox, { tool: 'ffmpeg', source, isPiped: plan.isPiped, ...args, limits, signal })
    },
    async (signal) => {
      const samples = { format: 'f32le', rateHz: AAC_RATE_HZ, channels: CHANNELS, bytes: placed } as const
      const args = { samples, outputArgs: encodingArgs(run), pipes: [run.reader] }
      ends.encoding = await runOnSamples(sandbox, { ...args, limits, signal })
    },
  ])
  const { decoding, encoding } = ends
  if (!decoding || !encoding) throw new Error('a run has no end')
  const errorLines = decoding.errorLines + encoding.errorLines
  return {
    end: { ...(decoding.exitCode === 0 ? encoding : decoding), errorLines, stderr: decoding.stderr + encoding.stderr },
    decodedSamples: timeline.decodedSamples(),
  }
}

function decodingArgs({ plan, audioTrack, skippedSamples, frameCount }: AudioRun): string[] {
  // By times, not by counts: these filters are made again.
  const endS = (plan.startS ?? 0) + (skippedSamples + frameCount * AAC_FRAME_SAMPLES + MAX_MIXED_SAMPLES) / AAC_RATE_HZ
  const trim = audioTrack.byCount ? [] : [`atrim=start=0:end=${endS.toFixed(3)}`]
  // The filters before are of another format each time; the last one makes it the same.
  const toOneFormat = [`aresample=${AAC_RATE_HZ}`, 'aformat=sample_fmts=flt:channel_layouts=stereo']
  return [
    ...['-filter_complex', `${mixChangingSources(audioTrack.sources, [...trim, ...toOneFormat])}[decoded]`],
    ...['-map', '[decoded]', '-c:a', 'pcm_f32le', '-f', 'matroska', 'pipe:3'],
  ]
}

function encodingArgs({ gainDb, frameCount, filters, outputArgs }: AudioRun): string[] {
  const whole = `apad=whole_len=${frameCount * AAC_FRAME_SAMPLES}`
  return ['-af', [...limitPeaks(gainDb), whole, ...filters].join(','), ...outputArgs, 'pipe:3']
}

/** Puts samples in their places: from the first that is encoded to the last, with silence in between. */
function newTimeline({ plan: { startS = 0 }, audioTrack: { byCount }, skippedSamples, frameCount }: AudioRun) {
  const endSample = frameCount * AAC_FRAME_SAMPLES
  const toSample = (timeS: number) => Math.round((timeS - startS) * AAC_RATE_HZ) - skippedSamples
  let decodedSamples = 0
  async function* place(blocks: AsyncIterable<AudioBlock>): AsyncGenerator<Buffer> {
    // The last samples are held, since the next block may be mixed into them.
    let held = { from: 0, samples: new Float32Array() }
    const heldEnd = () => held.from + lengthOf(held.samples)
    for await (const { at, samples } of findPositions(blocks, toSample, byCount)) {
      if (at >= endSample || at + lengthOf(samples) <= held.from) continue
      if (at > heldEnd()) {
        yield toBytes(held.samples)
        yield* silence(at - heldEnd())
        held = { from: at, samples: new Float32Array() }
      }
      held.samples = mix(held.samples, samples, at - held.from, endSample - held.from)
      decodedSamples = heldEnd()
      const passedOn = Math.max(0, lengthOf(held.samples) - MAX_MIXED_SAMPLES)
      yield toBytes(held.samples.subarray(0, passedOn * CHANNELS))
      held = { from: held.from + passedOn, samples: held.samples.subarray(passedOn * CHANNELS) }
    }
    yield toBytes(held.samples)
    yield* silence(endSample - heldEnd())
  }
  return { place, decodedSamples: () => decodedSamples }
}

type Placed = { at: number; samples: Float32Array }

/**
 * Each block follows the one before, unless the times jump: then where two that agree say. At a change of the rate ffmpeg gives some
 * blocks wrong times, and it never lets one begin before another; and the packets within one of MPEG-TS it counts at the former rate.
 */
async function* findPositions(
  blocks: AsyncIterable<AudioBlock>,
  toSample: (timeS: number) => number,
  byCount = false,
): AsyncGenerator<Placed> {
  let next: number | undefined
  let drift = 0
  let jumped: Placed[] = []
  for await (const { timeS, samples } of blocks) {
    const stated = toSample(timeS)
    const last = jumped.at(-1)
    const isAgreed = last !== undefined && Math.abs(stated - endOf(last)) < AGREED_SAMPLES
    if (last && (isAgreed || byCount || jumped.length === MAX_JUMPED)) {
      const lengths = jumped.reduce((sum, block) => sum + lengthOf(block.samples), 0)
      next = isAgreed ? endOf(last) - lengths : (next ?? jumped[0]?.at ?? 0)
      for (const block of jumped) {
        yield { at: next, samples: block.samples }
        next += lengthOf(block.samples)
      }
      jumped = []
      drift = stated - next
    }
    const late = next === undefined ? 0 : stated - next
    const isSteady =
      Math.abs(late) < JITTER_SAMPLES || (Math.abs(late - drift) < JITTER_SAMPLES && Math.abs(late) < MAX_DRIFT_SAMPLES)
    if (next !== undefined && jumped.length === 0 && (byCount || isSteady)) {
      yield { at: next, samples }
      next += lengthOf(samples)
    } else jumped.push({ at: stated, samples })
    drift = late
  }
  yield* jumped
}

function endOf({ at, samples }: Placed): number {
  return at + lengthOf(samples)
}

/** The sum of two runs of samples, of which the second begins `at` samples after the first, up to `end`. */
function mix(first: Float32Array, second: Float32Array, at: number, end: number): Float32Array<ArrayBuffer> {
  const length = Math.min(Math.max(first.length, at * CHANNELS + second.length), end * CHANNELS)
  const sum = new Float32Array(length)
  sum.set(first)
  for (let i = Math.max(0, -at * CHANNELS); i < second.length && at * CHANNELS + i < length; i++)
    sum[at * CHANNELS + i] = (sum[at * CHANNELS + i] ?? 0) + (second[i] ?? 0)
  return sum
}

/** In parts, however long it is. */
function* silence(samples: number): Generator<Buffer> {
  for (let left = samples; left > 0; left -= AAC_RATE_HZ) yield toBytes(new Float32Array(Math.min(left, AAC_RATE_HZ) * CHANNELS))
}

function lengthOf(samples: Float32Array): number {
  return samples.length / CHANNELS
}

function toBytes({ buffer, byteOffset, byteLength }: Float32Array<ArrayBuffer>): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
