import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type MediaEnd, type SealedSource, SIGKILL_EXIT } from '../sandbox/media-run.ts'
import { runMedia, runOnFragments } from '../sandbox/run.ts'
import { chunkLimits } from './chunk.ts'
import { cutAudio } from './cut-audio.ts'
import { mixSources } from './downmix.ts'
import { inputClockArgs } from './encoder.ts'
import type { AudioTrackPlan, Plan } from './plan.ts'

/** What podcasts and video platforms play speech at. */
const TARGET_LUFS = -16
/** What is quieter still stays quieter: of a nearly silent track all that would become loud is noise. */
export const MAX_GAIN_DB = 25

// A pass over two hours takes 35 s, five samples half a second, and they differ by about 1 LU. Ten shorter ones are no nearer.
const SAMPLES = 5
const SAMPLE_S = 6
/** ffmpeg reports this as long as nothing was loud enough to count. */
const SILENCE_LUFS = -70

/**
 * The gain that brings an audio track to `TARGET_LUFS`, in decibels, rounded to tenths. It comes from samples of the whole track, even
 * where a part of it is kept: the same file always gives the same gain.
 * @returns 0 for silence, for less than 0.4 s, and for what cannot be read
 * @throws Error when ffmpeg is killed, as where memory ran out; the signal's reason
 */
export async function measureGain(
  sandbox: Sandbox,
  source: SealedSource,
  { plan, audioTrack, signal }: { plan: Plan; audioTrack: AudioTrackPlan; signal?: AbortSignal },
): Promise<number> {
  const request = { plan, audioTrack, spans: sampleSpans(plan, audioTrack), signal }
  const lufs = (await measurePackets(sandbox, source, request)) ?? (await measureInFile(sandbox, source, request))
  return gainFor(lufs ?? SILENCE_LUFS)
}

type Measuring = {
  plan: Plan
  audioTrack: AudioTrackPlan
  spans: readonly { fromS: number; lengthS: number }[]
  signal: AbortSignal | undefined
}

/** Undefined where the packets of the samples cannot be cut out of the file, or ffmpeg makes nothing of them alone. */
async function measurePackets(sandbox: Sandbox, source: SealedSource, request: Measuring): Promise<number | undefined> {
  const { plan, audioTrack, spans } = request
  const [only, ...others] = audioTrack.sources ?? []
  if (!only || others.length > 0 || plan.isPiped || spans.length === 1) return undefined
  const fragments = await cutAudio(source, { stream: only.stream, spans })
  if (!fragments) return undefined
  const { run, lufs } = openMeter({ ...request, audioTrack: { ...audioTrack, sources: [{ ...only, stream: 0 }] } }, 1)
  return lufs(await runOnFragments(sandbox, { ...run, fragments, inputArgs: SAME_FILTERS }))
}

async function measureInFile(sandbox: Sandbox, source: SealedSource, request: Measuring): Promise<number | undefined> {
  const { plan, spans } = request
  const inputs = spans.map(({ fromS, lengthS }) => [
    ...[...SAME_FILTERS, ...inputClockArgs(plan), '-ss', fromS.toFixed(3), '-t', lengthS.toFixed(3)],
  ])
  const { run, lufs } = openMeter(request, spans.length)
  return lufs(await runMedia(sandbox, { ...run, tool: 'ffmpeg', source, inputs }))
}

/** Filters that are made again would begin to measure again: it ends there instead. */
const SAME_FILTERS = ['-reinit_filter', '0']

/** A run that measures its inputs one after another. @returns lufs: undefined where nothing was decoded */
function openMeter({ plan, audioTrack, signal }: Measuring, inputs: number) {
  let lufs: number | undefined
  return {
    run: {
      outputArgs: ['-filter_complex', measuringGraph(inputs, audioTrack), '-map', '[measured]', '-f', 'null', '-'],
      pipes: [
        async (bytes: Readable) => {
          lufs = await readLoudness(bytes)
        },
      ],
      limits: chunkLimits(0, SAMPLES * SAMPLE_S + plan.durationS / MIN_SEEK_SPEED),
      ...(signal ? { signal } : {}),
    },
    lufs(end: MediaEnd): number | undefined {
      if (end.exitCode === SIGKILL_EXIT && !end.outOfTime) throw new Error('ffmpeg was killed while it measured the loudness')
      return lufs
    },
  }
}

/** The plan and the track by which a track is measured: of one that is a file of its own, those of that file. */
export function measuredAs(plan: Plan, audioTrack: AudioTrackPlan): { plan: Plan; audioTrack: AudioTrackPlan } {
  const { dub } = audioTrack
  return dub ? { plan: dub.plan, audioTrack: dub.plan.audioTrack ?? audioTrack } : { plan, audioTrack }
}

/** A file without an index is read up to each sample; usually several hundred times as fast as it plays. */
const MIN_SEEK_SPEED = 10

/** @param lufs the integrated loudness of a track */
export function gainFor(lufs: number): number {
  if (!(lufs > SILENCE_LUFS)) return 0
  return Math.round(Math.min(TARGET_LUFS - lufs, MAX_GAIN_DB) * 10) / 10
}

/** From each fifth of the track its middle, or all of a short one. */
function sampleSpans({ startS = 0, durationS, cut }: Plan, { frameCount, silentFrames = 0 }: AudioTrackPlan) {
  const trackS = cut?.ofS ?? Math.min(durationS, ((frameCount - silentFrames) * AAC_FRAME_SAMPLES) / AAC_RATE_HZ)
  if (trackS <= SAMPLES * SAMPLE_S) return [{ fromS: startS, lengthS: trackS }]
  const middleS = (sample: number) => startS + ((sample + 0.5) * trackS) / SAMPLES
  return Array.from({ length: SAMPLES }, (_, sample) => ({ fromS: middleS(sample) - SAMPLE_S / 2, lengthS: SAMPLE_S }))
}

function measuringGraph(inputs: number, { sources }: AudioTrackPlan): string {
  const clock = [`aresample=${AAC_RATE_HZ}`]
  const chains = Array.from({ length: inputs }, (_, input) =>
    sources ? mixSources(sources, clock, input) : `[${input}:a:0]${clock}`,
  )
  const labels = chains.map((_, input) => `[sample${input}]`)
  const measure = 'ebur128=metadata=1,ametadata=mode=print:key=lavfi.r128.I:file=pipe\\\\:3'
  return [
    ...chains.map((chain, input) => `${chain}${labels[input]}`),
    `${labels.join('')}concat=n=${inputs}:v=0:a=1,${measure}[measured]`,
  ].join(';')
}

/** Reads the integrated loudness, which ffmpeg writes again for each tenth of a second of what it has measured. */
async function readLoudness(bytes: Readable): Promise<number | undefined> {
  let last: number | undefined
  for await (const line of createInterface({ input: bytes })) {
    const [, lufs] = /^lavfi\.r128\.I=(-?[\d.]+)$/.exec(line) ?? []
    if (lufs !== undefined) last = Number(lufs)
  }
  return last
}
