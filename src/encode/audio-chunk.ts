import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ, audioInit, audioSegment, splitAdts } from '../mp4/aac.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { Reader, SealedSource } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { type AudioEnd, type AudioRun, encodeChangingAudio, hasFormatChange } from './changing-audio.ts'
import { type ChunkRequest, type ChunkSink, chunkLimits, firstLine, MIN_LEAD_S, throwIfFailed } from './chunk.ts'
import { limitPeaks, mixSources } from './downmix.ts'
import { audioClockFilter, audioEncoderArgs, audioInputArgs, companionArgs, silenceBefore } from './encoder.ts'
import { InexactSeek, MediaFailure } from './media-failure.ts'
import { AAC_FRAMES_PER_SEGMENT, type AudioTrackPlan, audioTracksOf, type DubFile, type Plan } from './plan.ts'
import { splitEvery } from './split-every.ts'

// Encoded before the chunk's first frame and dropped: with two or fewer, the boundary between chunks clicks. Before the video's first
// frame it is silence: ffmpeg's encoder makes a loud beginning up to 5 dB louder.
const PREROLL_FRAMES = 8
// A decoder mixes each frame with the one before: it cannot restore the first frame, whose loud parts would be in the wrong places.
const FADE_IN = `afade=start_sample=${(PREROLL_FRAMES - 1) * AAC_FRAME_SAMPLES}:nb_samples=${AAC_FRAME_SAMPLES}`
/** So much may be missing at the end unnoticed: two frames. */
const TOLERATED_SAMPLES = 2 * AAC_FRAME_SAMPLES
const ONE_FRAME_S = AAC_FRAME_SAMPLES / AAC_RATE_HZ

/** @property gainDb by how much a track is made louder, in decibels; undefined: it stays as it is */
type TrackRequest = ChunkRequest & { gainDb: number | undefined }
type AudioChunkRequest = ChunkRequest & {
  /** Called before each track is encoded. */
  findGain?: (track: AudioTrackPlan, source: SealedSource) => Promise<TrackRequest['gainDb']>
  /** The file of a track that has one of its own; undefined: it is lost, and the track left out. */
  findDubSource?: (dub: DubFile) => Promise<SealedSource | undefined>
}

/**
 * Encodes a run of segments of each audio track, the default one first, each with an ffmpeg of its own: what one of them contains cannot
 * spoil another. Frame i of the video decodes to samples 1024·i to 1024·(i+1) of the source at 48 kHz, as the
 * encoder's delay is taken off its input; what the source lacks at the end is silence. For publishing see `encodeVideoChunk`.
 * @returns truncatedAtS: where audio ends early, because the rest cannot be decoded; of several tracks that of the first one
 * @throws InexactSeek; MediaFailure `Encoding error`, its message for the owner; the signal's reason
 */
export async function encodeAudioChunk(
  { findGain, findDubSource, ...request }: AudioChunkRequest,
  sink: ChunkSink,
): Promise<{ truncatedAtS?: number }> {
  const tracks = audioTracksOf(request.plan)
  if (tracks.length === 0) throw new Error('the plan has no audio track')
  const ends: { truncatedAtS?: number }[] = []
  for (const track of tracks) {
    const source = track.dub ? await findDubSource?.(track.dub) : request.source
    if (source) ends.push(await encodeAudioTrack({ ...request, source, gainDb: await findGain?.(track, source) }, track, sink))
  }
  return ends.find(({ truncatedAtS }) => truncatedAtS !== undefined) ?? {}
}

/** One track of a chunk of audio: see `encodeAudioChunk`. @param ofVideo its source is that of the track */
export async function encodeAudioTrack(
  ofVideo: TrackRequest,
  audioTrack: AudioTrackPlan,
  sink: ChunkSink,
): Promise<{ truncatedAtS?: number }> {
  await sink.onInit(audioTrack.renditionId, audioInit(audioTrack.bitrateBps))
  return runAudioTrack(ofVideo, audioTrack, {
    outputArgs: (frameCount) => ['-frames:a', String(frameCount), ...audioEncoderArgs(audioTrack)],
    read: (bytes, frames) => readSegments(bytes, audioTrack, frames, sink),
  })
}

/**
 * The samples that one track of a chunk of audio is encoded from: stereo at 48 kHz, as 16-bit integers.
 * @param onSegment gets those of each segment before those of the next one
 * @throws as `encodeAudioChunk` does
 */
export async function decodeAudioTrack(
  ofVideo: TrackRequest,
  audioTrack: AudioTrackPlan,
  onSegment: (segment: number, samples: Buffer) => Promise<void>,
): Promise<void> {
  await runAudioTrack(ofVideo, audioTrack, {
    outputArgs: () => ['-ac', '2', '-f', 's16le'],
    read: (bytes, frames) => readSamples(bytes, frames, onSegment),
  })
}

/** What becomes of a track's samples. */
type AudioOutput = {
  outputArgs(frameCount: number): string[]
  /** @returns how many frames there were in whole segments */
  read(bytes: Readable, frames: AudioFrames): Promise<number>
}
/** AAC frames: the first and how many, and those that are decoded before them and dropped. */
type AudioFrames = { first: number; count: number; dropped: number }

async function runAudioTrack(
  ofVideo: TrackRequest,
  audioTrack: AudioTrackPlan,
  output: AudioOutput,
): Promise<{ truncatedAtS?: number }> {
  const request = audioTrack.dub ? ofDub(ofVideo, audioTrack.dub) : ofVideo
  const { chunk } = request
  const begun = await encodeSegments(request, audioTrack, output, encodeInOneProcess)
  if (begun.end) return begun.end
  const rest = {
    ...chunk,
    firstSegment: chunk.firstSegment + begun.segments,
    segmentCount: chunk.segmentCount - begun.segments,
  }
  const { end = {} } = await encodeSegments({ ...request, chunk: rest }, audioTrack, output, encodeChangingAudio)
  return end
}

/** A file of its own is read as its own plan says. */
function ofDub(request: TrackRequest, { plan }: DubFile): TrackRequest {
  const { chunk } = request
  return { ...request, plan, chunk: { ...chunk, decodesFromStart: chunk.decodesFromStart || !plan.isSeekable } }
}

/** @returns how many segments were read, and no `end` where the run ended before the chunk's, because channels or rate change */
async function encodeSegments(
  { sandbox, source, plan, gainDb, chunk, signal }: TrackRequest,
  audioTrack: AudioTrackPlan,
  output: AudioOutput,
  encode: (sandbox: Sandbox, run: AudioRun) => Promise<AudioEnd>,
): Promise<{ segments: number; end?: { truncatedAtS?: number } }> {
  const first = chunk.firstSegment * AAC_FRAMES_PER_SEGMENT
  const { frameCount, silentFrames = 0, firstSample = 0 } = audioTrack
  const count = Math.min(chunk.segmentCount * AAC_FRAMES_PER_SEGMENT, frameCount - first)
  if (count <= 0) throw new Error('the chunk begins after the end of the video')
  const dropped = PREROLL_FRAMES
  // The encoder puts 1024 samples of its own before the first.
  const startSample = firstSample + (first - dropped + 1) * AAC_FRAME_SAMPLES
  const leadS = chunk.leadS ?? MIN_LEAD_S
  const seekToS = chunk.decodesFromStart ? 0 : Math.max(0, Math.floor(startSample / AAC_RATE_HZ) - leadS)
  const skippedSamples = startSample - seekToS * AAC_RATE_HZ
  let frames = 0
  const { end, decodedSamples } = await encode(sandbox, {
    source,
    plan,
    audioTrack,
    gainDb,
    seekToS,
    skippedSamples,
    frameCount: dropped + count,
    filters: first === 0 ? [FADE_IN] : [],
    outputArgs: output.outputArgs(dropped + count),
    reader: async (bytes) => {
      frames = await output.read(bytes, { first, count, dropped })
    },
    limits: chunkLimits(count * ONE_FRAME_S, Math.max(0, firstSample / AAC_RATE_HZ + first * ONE_FRAME_S - seekToS)),
    signal,
  })
  const segments = Math.ceil(frames / AAC_FRAMES_PER_SEGMENT)
  if (frames < count && hasFormatChange(end)) return { segments }
  const audioEnd = findAudioEnd()
  if (seekToS > 0 && end.errorLines > 0) {
    const isWhole = end.exitCode === 0 && frames === count
    throw new InexactSeek(firstLine(end), isWhole ? { decodedBefore: skippedSamples, end: audioEnd } : undefined)
  }
  throwIfFailed(end)
  if (frames < count) throw new MediaFailure('Encoding error', 'The audio cannot be read: the file is damaged. Upload it again.')
  return { segments, end: audioEnd }

  function findAudioEnd(): { truncatedAtS?: number } {
    const endSample = startSample + decodedSamples - firstSample
    const announcedEnd = Math.min(first + count, frameCount - silentFrames) * AAC_FRAME_SAMPLES
    // Only with decoder errors: many intact files announce a little more audio than they have.
    const isBroken = end.errorLines > 0 && endSample + TOLERATED_SAMPLES < announcedEnd
    return isBroken ? { truncatedAtS: endSample / AAC_RATE_HZ } : {}
  }
}

/** Decodes and encodes, and ends where the channels or the rate change: see `hasFormatChange`. */
async function encodeInOneProcess(sandbox: Sandbox, run: AudioRun): Promise<AudioEnd> {
  const { source, plan, seekToS, reader, limits, signal } = run
  const decoded = countSamples()
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    isPiped: plan.isPiped,
    inputArgs: ['-reinit_filter', '0', ...audioInputArgs(plan, seekToS)],
    outputArgs: [...audioArgs(run), ...companionArgs(plan, 'videoTrack')],
    pipes: [reader, decoded.reader],
    limits,
    signal,
  })
  return { end, decodedSamples: decoded.samples() }
}

/** Outputs the audio, padded with silence, and the sizes of the decoded packets as lines of text. */
function audioArgs({ plan, audioTrack, gainDb, skippedSamples, frameCount, filters, outputArgs }: AudioRun): string[] {
  const samples = frameCount * AAC_FRAME_SAMPLES
  const skipped = skippedSamples + silenceBefore(audioTrack)
  const chain = [
    readSound(plan, audioTrack),
    ...limitPeaks(gainDb),
    `atrim=start_sample=${skipped}:end_sample=${skipped + samples}`,
    'asetpts=PTS-STARTPTS',
    ...filters,
  ]
  const graph = [
    `${chain.join(',')},asplit=2[whole][real]`,
    // Never unlimited: with a second output ffmpeg 5.1 then runs forever.
    `[whole]apad=whole_len=${samples}[sound]`,
    `[real]asetnsamples=n=${AAC_RATE_HZ}:p=0[counted]`,
  ]
  return [
    ...['-filter_complex', graph.join(';')],
    ...['-map', '[sound]', ...outputArgs, 'pipe:3'],
    ...['-map', '[counted]', '-c:a', 'pcm_s16le', '-f', 'framecrc', 'pipe:4'],
  ]
}

/** The beginning of a filter graph: the source's sound at our rate, after `SILENCE_BEFORE_START`; of an older plan in all its channels. */
export function readSound(plan: Plan, { sources, ...audioTrack }: AudioTrackPlan): string {
  const clock = audioClockFilter(plan, audioTrack)
  return sources ? mixSources(sources, clock) : `[0:a:0]${clock.join(',')}`
}

/** Reads ffmpeg's lines `stream, dts, pts, duration, size, checksum`. */
function countSamples(): { reader: Reader; samples: () => number } {
  let samples = 0
  const reader = async (bytes: Readable) => {
    for await (const line of createInterface({ input: bytes })) {
      if (!line.startsWith('#')) samples += Number(line.split(',')[3])
    }
  }
  return { reader, samples: () => samples }
}

/** @returns how many frames the sink got in segments */
async function readSegments(
  bytes: Readable,
  audioTrack: AudioTrackPlan,
  { first, count, dropped }: AudioFrames,
  sink: ChunkSink,
): Promise<number> {
  let left = dropped
  let next = first
  let frames: Buffer[] = []
  for await (const frame of splitAdts(bytes)) {
    if (left-- > 0) continue
    frames.push(frame)
    const isWhole = frames.length === AAC_FRAMES_PER_SEGMENT || next + frames.length === first + count
    if (!isWhole) continue
    const segment = next / AAC_FRAMES_PER_SEGMENT
    await sink.onSegment(audioTrack.renditionId, segment, audioSegment(frames, { sequence: segment + 1, firstFrame: next }))
    next += frames.length
    frames = []
  }
  return next - first
}

/** @returns how many frames there were in whole segments */
async function readSamples(
  bytes: Readable,
  { first, count, dropped }: AudioFrames,
  onSegment: (segment: number, samples: Buffer) => Promise<void>,
): Promise<number> {
  // Samples lack the frame that the encoder puts before its first.
  let left = dropped - 1
  let next = first
  let frames: Buffer[] = []
  for await (const frame of splitEvery(bytes, AAC_FRAME_SAMPLES * SAMPLE_BYTES)) {
    if (left-- > 0 || next === first + count) continue
    frames.push(frame)
    if (frames.length < AAC_FRAMES_PER_SEGMENT && next + frames.length < first + count) continue
    await onSegment(next / AAC_FRAMES_PER_SEGMENT, Buffer.concat(frames))
    next += frames.length
    frames = []
  }
  return next - first
}

/** Two channels of 16 bits. */
const SAMPLE_BYTES = 4
