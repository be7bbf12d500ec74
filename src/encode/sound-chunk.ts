import type { Readable } from 'node:stream'
import { soundInit, soundSegment, splitAdts } from './aac.ts'
import { type ChunkRequest, type ChunkSink, chunkLimits, firstLine, refuseFailure } from './chunk.ts'
import { soundClock, soundEncoderArgs, soundInputArgs } from './encoder.ts'
import { MediaFailure, UncleanSeek } from './media-failure.ts'
import { AAC_FRAME_SAMPLES, AAC_FRAMES_PER_SEGMENT, AAC_RATE_HZ, type SoundPlan } from './plan.ts'
import { runMedia } from './sandbox.ts'

// Encoded before a border and dropped: with two or fewer the join clicks.
const PREROLL_FRAMES = 8
const ONE_FRAME_S = AAC_FRAME_SAMPLES / AAC_RATE_HZ

/**
 * Encodes a run of sound segments. Frame i of the film decodes to samples 1024·i to 1024·(i+1) of the source at 48 kHz, as the
 * encoder's delay is taken off its input; what the source lacks at the end is silence. Publishing: as `encodePictureChunk`.
 * @throws UncleanSeek; MediaFailure `Encoding error`, its message for the owner; the signal's reason
 */
export async function encodeSoundChunk({ sandbox, source, plan, chunk, signal }: ChunkRequest, sink: ChunkSink): Promise<void> {
  const { sound } = plan
  if (!sound) throw new Error('the plan has no sound')
  const first = chunk.firstSegment * AAC_FRAMES_PER_SEGMENT
  const count = Math.min(chunk.segmentCount * AAC_FRAMES_PER_SEGMENT, sound.frameCount - first)
  if (count <= 0) throw new Error('the chunk lies past the end of the film')
  const dropped = Math.min(PREROLL_FRAMES, first)
  // The encoder puts 1024 samples of its own before the first.
  const startSample = (first - dropped + 1) * AAC_FRAME_SAMPLES
  const seekToS = chunk.fromStart ? 0 : Math.max(0, Math.floor(startSample / AAC_RATE_HZ) - 1)
  const filters = [soundClock(), `atrim=start_sample=${startSample - seekToS * AAC_RATE_HZ}`, 'asetpts=PTS-STARTPTS', 'apad']
  let frames = 0
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    inputArgs: [...soundInputArgs(plan), ...(seekToS > 0 ? ['-ss', String(seekToS)] : [])],
    outputArgs: [
      '-map',
      '0:a:0',
      '-af',
      filters.join(','),
      '-frames:a',
      String(dropped + count),
      ...soundEncoderArgs(sound),
      'pipe:3',
    ],
    pipes: [
      async (bytes) => {
        frames = await readSegments(bytes, sound, { first, count, dropped }, sink)
      },
    ],
    limits: chunkLimits(count * ONE_FRAME_S, first * ONE_FRAME_S - seekToS),
    signal,
  })
  if (seekToS > 0 && end.errorLines > 0) throw new UncleanSeek(firstLine(end))
  refuseFailure(end)
  if (frames < count) throw new MediaFailure('Encoding error', 'The sound cannot be read: the file is damaged. Upload it again.')
}

/** @returns how many frames were given on as segments */
async function readSegments(
  bytes: Readable,
  sound: SoundPlan,
  { first, count, dropped }: { first: number; count: number; dropped: number },
  sink: ChunkSink,
): Promise<number> {
  let left = dropped
  let next = first
  let frames: Buffer[] = []
  await sink.onInit(sound.renditionId, soundInit(sound.bitrateBps))
  for await (const frame of splitAdts(bytes)) {
    if (left-- > 0) continue
    frames.push(frame)
    const isWhole = frames.length === AAC_FRAMES_PER_SEGMENT || next + frames.length === first + count
    if (!isWhole) continue
    const segment = next / AAC_FRAMES_PER_SEGMENT
    await sink.onSegment(sound.renditionId, segment, soundSegment(frames, { sequence: segment + 1, firstFrame: next }))
    next += frames.length
    frames = []
  }
  return next - first
}
