import { PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { readSound } from '../encode/audio-chunk.ts'
import { chunkLimits } from '../encode/chunk.ts'
import { companionArgs, inputClockArgs, SILENCE_BEFORE_START } from '../encode/encoder.ts'
import { type AudioTrackPlan, audioTracksOf, type Plan } from '../encode/plan.ts'
import { Failure } from '../errors.ts'
import { limitBytes } from '../limit-bytes.ts'
import { AAC_RATE_HZ } from '../mp4/aac.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type SealedSource, wasKilled } from '../sandbox/media-run.ts'
import { runMedia, runProgram } from '../sandbox/run.ts'
import { MAX_CAPTION_BYTES, parseInWorker } from './caption.ts'

/** The operator's program that makes captions of speech, and the files and folders that it may read. */
export type Transcriber = { path: string; files: readonly string[] }

type Program = { sandbox: Sandbox; transcriber: Transcriber; language: string; signal?: AbortSignal }

type Transcription = Program & {
  source: SealedSource
  plan: Plan
  audioTrack: AudioTrackPlan
  /** Where the file begins on the time line of its video, in seconds. */
  startS: number
  signal: AbortSignal
  /** @param part of the audio, from 0 to 1 */
  onProgress(part: number): void
}

/** Address space, into which a model of several gigabytes is mapped. */
const MEMORY_BYTES = 64 * 2 ** 30
const MAX_CORES = 256
const WAV_HZ = 16_000
const BYTES_PER_SAMPLE = 2

/**
 * Has the operator's program make captions of the speech of a video: it gets a WAV of 16 kHz on its standard input and the language as its
 * argument, and prints WebVTT.
 * @returns plain WebVTT, on the time line of the whole file
 * @throws Failure `invalid` for what the owner must know; the signal's reason; what may be retried
 */
export async function transcribe({ sandbox, source, plan, audioTrack, startS, ...work }: Transcription): Promise<Buffer> {
  const samples = Math.round((plan.cut?.ofS ?? plan.durationS) * WAV_HZ)
  const wav = new PassThrough()
  wav.write(wavHeader(samples))
  const ended = new AbortController()
  const signal = AbortSignal.any([work.signal, ended.signal])
  let problem = ''
  const decoding = runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    isPiped: plan.isPiped,
    inputArgs: inputClockArgs(plan),
    outputArgs: [
      ...['-filter_complex', `${audioGraph(plan, audioTrack, samples)}[speech]`],
      ...['-map', '[speech]', '-c:a', 'pcm_s16le', '-f', 's16le', 'pipe:1', ...companionArgs(plan, 'videoTrack')],
    ],
    stdout: (bytes) => pipeline(bytes, wav),
    limits: { ...chunkLimits(0, samples / WAV_HZ), wallS: wallLimitS(samples) },
    signal,
  }).then(
    ({ exitCode, stderr }) => {
      if (exitCode !== 0) problem = `ffmpeg ended with exit code ${exitCode}: ${stderr.slice(-500)}`
    },
    (error: unknown) => {
      problem = String(error)
      wav.destroy()
    },
  )
  try {
    const text = await runTranscriber({ sandbox, ...work, signal }, wav, samples)
    if (wav.readableEnded) await decoding // what it ended with is known a moment after its last bytes
    if (problem !== '') throw new Error(`the audio was not decoded: ${problem}`)
    return await parseOutput(text, work.language, startS)
  } finally {
    ended.abort()
    await decoding
  }
}

/** Runs the operator's program on a second of silence. @throws as `transcribe` does, where it would work on no video */
export async function tryTranscriber(program: Program): Promise<void> {
  const wav = new PassThrough()
  wav.end(Buffer.concat([wavHeader(WAV_HZ), Buffer.alloc(WAV_HZ * BYTES_PER_SAMPLE)]))
  const text = await runTranscriber({ ...program, onProgress: () => undefined }, wav, WAV_HZ)
  if (!/^(\uFEFF)?WEBVTT/.test(text.toString('utf8', 0, 20))) throw new Failure('invalid', NOT_WEBVTT)
}

const FAILED = 'The program that transcribes failed. The log of this server says why; then request it again.'
const NOT_WEBVTT = 'The program that transcribes did not print WebVTT, which begins with a line "WEBVTT".'

async function runTranscriber(
  { sandbox, transcriber, language, signal, onProgress }: Program & Pick<Transcription, 'onProgress'>,
  wav: Readable,
  samples: number,
): Promise<Buffer> {
  const texts: Buffer[] = []
  const wallS = wallLimitS(samples)
  const end = await runProgram(sandbox, {
    program: transcriber,
    args: [language],
    stdin: wav,
    stdout: async (bytes) => {
      for await (const part of limitBytes(bytes, MAX_CAPTION_BYTES, tooMuch)) {
        texts.push(part)
        onProgress(Math.min(1, (lastSecond(part) * WAV_HZ) / samples))
      }
    },
    onStderr: (part) => onProgress(Math.min(1, lastPercent(part) / 100)),
    limits: { memoryBytes: MEMORY_BYTES, cpuS: MAX_CORES * wallS, wallS },
    ...(signal && { signal }),
  })
  if (end.outOfTime)
    throw new Failure('invalid', `The program that transcribes did not end within ${Math.round(wallS / 60)} minutes.`)
  if (end.exitCode !== 0) {
    const cause = new Error(`the program that transcribes ended with exit code ${end.exitCode}: ${end.stderr.trim().slice(-500)}`)
    throw wasKilled(end) ? cause : new Failure('invalid', FAILED, { cause })
  }
  return Buffer.concat(texts)
}

/** The track in this language; where none is known to be, the one that plays. Undefined: there is no audio. */
export function findSpoken(plan: Plan, language: string): AudioTrackPlan | undefined {
  const [spoken] = language.split('-')
  return audioTracksOf(plan).find((track) => track.language?.split('-')[0] === spoken) ?? plan.audioTrack
}

/** Mono from the start of the whole file, exactly that long. */
function audioGraph(plan: Plan, audioTrack: AudioTrackPlan, samples: number): string {
  return [
    readSound(plan, audioTrack),
    `atrim=start_sample=${SILENCE_BEFORE_START}:end_sample=${SILENCE_BEFORE_START + (samples * AAC_RATE_HZ) / WAV_HZ}`,
    'asetpts=PTS-STARTPTS',
    ...['pan=mono|c0=0.5*c0+0.5*c1', `aresample=${WAV_HZ}`, `apad=whole_len=${samples}`, `atrim=end_sample=${samples}`],
  ].join(',')
}

/** Of 16-bit mono. What is longer than its field holds, 37 hours, has no known length. */
function wavHeader(samples: number): Buffer {
  const header = Buffer.from('RIFF....WAVEfmt ....................data....', 'latin1')
  const sizeBytes = Math.min(samples * BYTES_PER_SAMPLE, 2 ** 32 - 1 - 36)
  header.writeUInt32LE(36 + sizeBytes, 4)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20) // PCM
  header.writeUInt16LE(1, 22) // channels
  header.writeUInt32LE(WAV_HZ, 24)
  header.writeUInt32LE(WAV_HZ * BYTES_PER_SAMPLE, 28)
  header.writeUInt16LE(BYTES_PER_SAMPLE, 32)
  header.writeUInt16LE(8 * BYTES_PER_SAMPLE, 34)
  header.writeUInt32LE(sizeBytes, 40)
  return header
}

/** Slower than five times the length is of no use. */
function wallLimitS(samples: number): number {
  return 300 + (5 * samples) / WAV_HZ
}

function tooMuch(): Failure {
  return new Failure('invalid', `The program that transcribes printed more than ${MAX_CAPTION_BYTES / 2 ** 20} MiB.`)
}

const TAIL_BYTES = 2_000

/** The end of the last cue in a part of the output, in seconds; 0: none. */
function lastSecond(part: Buffer): number {
  const ends = part.toString('latin1', part.length - TAIL_BYTES).matchAll(/--> (?:(\d\d):)?(\d\d):(\d\d)/g)
  const [, hours = '0', minutes = '0', seconds = '0'] = [...ends].at(-1) ?? []
  return (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)
}

/** The last `progress = 40%` in a part of what the program reports; 0: none. */
function lastPercent(part: Buffer): number {
  const reports = part.toString('latin1', part.length - TAIL_BYTES).matchAll(/progress = {0,3}(\d{1,3})%/g)
  return Number([...reports].at(-1)?.[1] ?? 0)
}

async function parseOutput(text: Buffer, language: string, startS: number): Promise<Buffer> {
  try {
    return await parseInWorker(text, language, Math.round(startS * 1000))
  } catch (error) {
    if (!(error instanceof Failure) || error.kind !== 'invalid') throw error
    throw new Failure('invalid', `The program that transcribes printed no captions. ${error.message}`)
  }
}
