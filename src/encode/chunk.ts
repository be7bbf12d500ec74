import type { Readable } from 'node:stream'
import { dropConstraints, placeFragment, readFragment, readVideoInit, splitFragments } from '../mp4/fragments.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type MediaEnd, type MediaLimits, type Reader, type SealedSource, SIGKILL_EXIT, wasKilled } from '../sandbox/media-run.ts'
import { runMedia, runOnFrames } from '../sandbox/run.ts'
import {
  BY_AREA,
  companionArgs,
  gridFilter,
  SAME_ON_ALL_PROCESSORS,
  sourceFilters,
  videoEncoderArgs,
  videoFilters,
  videoInputArgs,
} from './encoder.ts'
import { type Hardware, HardwareFailure, hardwareEncoderArgs, hardwareFilters } from './hardware.ts'
import { videoCodec } from './ladder.ts'
import { clockTime, InexactSeek, MediaFailure } from './media-failure.ts'
import type { Plan, VideoRendition, VideoTrackPlan } from './plan.ts'
import { splitEvery } from './split-every.ts'

/**
 * A run of neighbouring segments. `decodesFromStart`: decode from the video's first frame instead of seeking.
 * `leadS`: how long before the first frame a seek begins, in seconds; missing: `MIN_LEAD_S`.
 */
type ChunkSpan = { firstSegment: number; segmentCount: number; decodesFromStart: boolean; leadS?: number }

/** A whole number of frames early, about a second: half a frame early gave the wrong frame in a third of the files tried. */
export const MIN_LEAD_S = 1

/**
 * How long before a chunk its seek begins, in seconds. Mostly the first is enough; the others end at other key frames, and the last is
 * longer than the key frame interval of nearly all videos.
 */
export const LEADS_S = [MIN_LEAD_S, 20, 80] as const

export type ChunkRequest = {
  sandbox: Sandbox
  source: SealedSource
  plan: Plan
  chunk: ChunkSpan
  signal?: AbortSignal
}

/**
 * Gets the encoded bytes unencrypted; the caller encrypts. A slow callback slows the encoder down. Renditions run independently,
 * so a callback must not wait for another rendition's.
 */
export type ChunkSink = {
  /** Once for each rendition, before its segments; equal bytes in every chunk of a video. */
  onInit: (renditionId: number, bytes: Buffer) => void | Promise<void>
  onSegment: (renditionId: number, segment: number, bytes: Buffer) => void | Promise<void>
}

type VideoChunkRequest = ChunkRequest & {
  threads: 'auto' | 1
  /** The lowest rung is encoded first, by an ffmpeg of its own; the others once this resolves. */
  afterLowest?: (() => Promise<void>) | undefined
  /** What encodes in place of x264. */
  hardware?: Hardware | undefined
}

/**
 * Encodes a run of segments in all rungs with one ffmpeg, which writes each rung into its own pipe.
 *
 * A chunk that starts with a seek is valid only when this resolves: decoder errors appear at any time, and with one of them frames may
 * be wrong. A chunk that begins at the video's start may be published as it comes: its errors are the source's own.
 * @param request.threads 1 when as many chunks run as there are cores (6–11 % faster in all), `auto` for one that a viewer waits for
 * @returns missingFrames: how many of the video's last frames could not be read; the last one that could be read is held for up to a tenth of the video
 * @throws InexactSeek; HardwareFailure; MediaFailure `Encoding error`, its message for the owner; the signal's reason; anything else may be retried
 */
export async function encodeVideoChunk(request: VideoChunkRequest, sink: ChunkSink): Promise<{ missingFrames: number }> {
  const videoTrack = getVideoTrack(request.plan)
  const { renditions } = videoTrack
  const frames = planFrames(videoTrack, request.chunk)
  const encode = (renditions: readonly VideoRendition[]) => {
    const rungs = renditions.map((rendition) => ({
      filters: `scale=${rendition.widthPx}:${rendition.heightPx},setsar=1`,
      ...openRung(request, videoTrack, rendition, frames, sink),
    }))
    return runVideoChunk(request, videoTrack, frames, rungs)
  }
  if (!request.afterLowest || renditions.length === 1) return encode(renditions)
  await encode(renditions.slice(-1))
  await request.afterLowest()
  return encode(renditions.slice(0, -1))
}

function openRung({ hardware, ...request }: VideoChunkRequest, ...rung: Parameters<typeof readRung>) {
  const [videoTrack, rendition] = rung
  if (!hardware) return { outputArgs: videoEncoderArgs(videoTrack, rendition), ...readRung(...rung) }
  return { outputArgs: RAW_FRAMES, ...encodeOnHardware({ ...request, hardware }, ...rung) }
}

const RAW_FRAMES = ['-f', 'rawvideo']

/**
 * A reader of raw frames of a rung, which another ffmpeg encodes on hardware. So what reads the file has no device, and what has one no file.
 * @throws HardwareFailure from the reader
 */
export function encodeOnHardware(
  { sandbox, hardware, signal }: Pick<ChunkRequest, 'sandbox' | 'signal'> & { hardware: Hardware },
  ...[videoTrack, rendition, planned, sink]: Parameters<typeof readRung>
): CountingReader {
  const rung = readRung(videoTrack, rendition, planned, sink)
  const { widthPx, heightPx } = rendition
  const { rateNum, rateDen } = videoTrack
  const reader = async (bytes: Readable) => {
    const end = await runOnFrames(sandbox, {
      frames: { widthPx, heightPx, rate: `${rateNum}/${rateDen}`, bytes },
      inputArgs: hardware.deviceArgs,
      outputArgs: [
        ...['-vf', hardwareFilters(hardware, videoTrack).join(','), '-fps_mode', 'passthrough'],
        ...[...hardwareEncoderArgs(hardware, videoTrack, rendition), 'pipe:3'],
      ],
      pipes: [rung.reader],
      limits: chunkLimits(planned.count / rateHz(videoTrack), 0),
      signal,
    }).catch((error) => {
      signal?.throwIfAborted()
      throw new HardwareFailure(error instanceof Error ? error.message : String(error))
    })
    if (end.exitCode !== 0) throw new HardwareFailure(firstLine(end) || `exit code ${end.exitCode}`)
  }
  return { reader, frames: rung.frames }
}

/**
 * Decodes the frames that `encodeVideoChunk` would encode, scaled to one size.
 * @param output.onFrame gets each in planar 4:2:0 before the next one
 * @throws as `encodeVideoChunk` does
 */
export async function decodeVideoChunk(
  request: ChunkRequest,
  { widthPx, heightPx, onFrame }: { widthPx: number; heightPx: number; onFrame: (frame: Buffer) => Promise<void> },
): Promise<void> {
  const whole = getVideoTrack(request.plan)
  // By way of the lowest rung: colors are converted as in the encode, but in few pixels.
  const videoTrack = { ...whole, renditions: whole.renditions.slice(-1) }
  let frames = 0
  const output: VideoOutput = {
    filters: `scale=${widthPx}:${heightPx}`,
    outputArgs: RAW_FRAMES,
    reader: async (bytes) => {
      for await (const frame of splitEvery(bytes, (widthPx * heightPx * 3) / 2)) {
        await onFrame(frame)
        frames++
      }
    },
    frames: () => frames,
  }
  await runVideoChunk({ ...request, threads: 1, scaling: BY_AREA }, videoTrack, planFrames(videoTrack, request.chunk), [output])
}

/** What becomes of a chunk's frames. */
type VideoOutput = CountingReader & { filters: string; outputArgs: readonly string[] }

async function runVideoChunk(
  { sandbox, source, plan, threads, scaling = SAME_ON_ALL_PROCESSORS, signal }: VideoChunkRequest & { scaling?: string },
  videoTrack: VideoTrackPlan,
  frames: Frames,
  outputs: readonly VideoOutput[],
): Promise<{ missingFrames: number }> {
  const landing = countFrames()
  const lastFrames = frames.endsVideo ? [countFrames()] : []
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    isPiped: plan.isPiped,
    inputArgs: [...(threads === 1 ? ONE_THREAD : []), ...videoInputArgs(plan), ...seekArgs(videoTrack, frames)],
    outputArgs: [...videoArgs(videoTrack, frames, outputs, { threads, scaling }), ...companionArgs(plan, 'audioTrack')],
    pipes: [...outputs, ...(frames.startsWithSeek ? [landing] : []), ...lastFrames].map(({ reader }) => reader),
    limits: chunkLimits(frames.count / rateHz(videoTrack), (frames.skipped + frames.trimmed) / rateHz(videoTrack)),
    signal,
  })
  const shortest = Math.min(...outputs.map((output) => output.frames()))
  // Where frames are missing, the last one is counted twice: in the grid it is shown until after its end.
  const missingFrames = Math.max(
    0,
    ...lastFrames.map((counter) => frames.real - counter.frames()).map((n) => (n > 0 ? n + 1 : 0)),
  )
  const isBroken = shortest < frames.count || (end.errorLines > 0 && missingFrames > maxMissingFrames(videoTrack))
  const landsLate = frames.startsWithSeek && landing.frames() === 0
  // First: an inexact seek may also be the cause of all failures below.
  if (frames.startsWithSeek && end.errorLines > 0) {
    const isWhole = end.exitCode === 0 && !isBroken && !landsLate
    throw new InexactSeek(firstLine(end), isWhole ? { decodedBefore: landing.frames(), end: { missingFrames } } : undefined)
  }
  throwIfFailed(end)
  if (landsLate) throw new InexactSeek('the seek ended after the chunk’s first frame')
  if (isBroken) {
    const lastRead = missingFrames > 0 ? frames.first - frames.trimmed + frames.real - missingFrames : frames.first + shortest
    throw truncatedAt(Math.max(0, lastRead) / rateHz(videoTrack))
  }
  return { missingFrames }
}

function getVideoTrack({ videoTrack }: Plan): VideoTrackPlan {
  if (!videoTrack) throw new Error('the plan has no video track')
  return videoTrack
}

/** Throws when a run failed, with a message for the owner where the media is the cause. Also used for audio. */
export function throwIfFailed(end: MediaEnd): void {
  if (end.outOfTime) {
    throw new MediaFailure(
      'Encoding error',
      'Encoding took far longer than the video lasts: convert it to H.264 in MP4 and upload it again.',
    )
  }
  // The machine may have been short of memory: retried, so this is no finding about the video.
  if (end.exitCode === SIGKILL_EXIT) throw new Error('ffmpeg was killed: at its processor limit, or because memory ran out')
  if (wasKilled(end)) throw new Error(`ffmpeg crashed with exit code ${end.exitCode}: ${firstLine(end)}`)
  if (end.exitCode !== 0) {
    throw new MediaFailure('Encoding error', `The encoder stopped: ${firstLine(end) || `exit code ${end.exitCode}`}`)
  }
}

/** Limits that no honest video reaches: thirty times slower than it plays, and six times for frames that are decoded only to be skipped. */
export function chunkLimits(encodedS: number, skippedS: number): MediaLimits {
  const cpuS = 120 + 30 * encodedS + 6 * skippedS
  return { cpuS, wallS: 2 * cpuS }
}

/** ffmpeg's first error line, without addresses and file names. */
export function firstLine({ stderr }: MediaEnd): string {
  const [line = ''] = stderr.split('\n').filter((text) => text.trim() !== '')
  return line
    .replace(/ @ 0x[0-9a-f]+/g, '')
    .replace(/\p{C}/gu, ' ')
    .replace(/(?<!\S)\S*crypto:\S+/g, 'the source')
    .slice(0, 200)
}

type Frames = {
  first: number
  count: number
  /** The frame to seek to; 0: the input is read from its start. */
  seekTo: number
  /** Frames that are only decoded, then frames that are also scaled, before the first of the chunk: both are dropped by count. */
  skipped: number
  trimmed: number
  /** Frames of the source after the skipped ones, up to the chunk's end. */
  real: number
  startsWithSeek: boolean
  /** Whether the source's last frame is in or before this chunk. */
  endsVideo: boolean
}

function planFrames(videoTrack: VideoTrackPlan, { firstSegment, segmentCount, decodesFromStart, leadS = MIN_LEAD_S }: ChunkSpan) {
  const first = firstSegment * videoTrack.gopFrames
  const count = Math.min(segmentCount * videoTrack.gopFrames, videoTrack.frameCount - first)
  if (count <= 0) throw new Error('the chunk begins after the end of the video')
  // What is read is counted from the source's first frame, what is made from the video's.
  const { firstFrame = 0, heldFrames = 0 } = videoTrack
  const firstRead = firstFrame + first
  const sourceFrames = firstFrame + videoTrack.frameCount - heldFrames
  const secondsBefore = (leadS: number) => Math.max(0, Math.min(firstRead, sourceFrames) - Math.ceil(leadS * rateHz(videoTrack)))
  const arrival = secondsBefore(MIN_LEAD_S)
  const seekTo = decodesFromStart ? 0 : secondsBefore(leadS)
  const end = Math.min(firstRead + count, sourceFrames)
  return {
    first,
    count,
    seekTo,
    skipped: arrival - seekTo,
    trimmed: firstRead - arrival,
    real: end - arrival,
    startsWithSeek: seekTo > 0,
    endsVideo: end === sourceFrames,
  }
}

function seekArgs(videoTrack: VideoTrackPlan, { startsWithSeek, seekTo }: Frames): string[] {
  // Not accurate_seek: the frame that is on screen at seekTo may have begun long before (slides), and fps must see it.
  return startsWithSeek ? ['-noaccurate_seek', '-ss', (seekTo / rateHz(videoTrack)).toFixed(6)] : []
}

/** One branch of the filters per output, and one with a corner of the image that only counts the source's real last frames. */
function videoArgs(
  videoTrack: VideoTrackPlan,
  frames: Frames,
  outputs: readonly VideoOutput[],
  { threads, scaling }: { threads: 'auto' | 1; scaling: string },
): string[] {
  const chain = [
    ...sourceFilters(videoTrack),
    gridFilter(videoTrack),
    ...dropFrames(frames.skipped),
    ...videoFilters(videoTrack),
    ...(frames.endsVideo ? holdLastFrame(videoTrack, frames) : []),
    ...dropFrames(frames.trimmed),
    `split=${outputs.length}${outputs.map((_, index) => `[r${index}]`).join('')}`,
  ]
  const branches = outputs.map(({ filters }, index) => `;[r${index}]${filters}[v${index}]`)
  const counted = [
    ...(frames.startsWithSeek ? [landingArgs(videoTrack, frames)] : []),
    ...(frames.endsVideo ? [['-map', '[ending]', '-frames:v', String(frames.real)]] : []),
  ]
  const common = ['-fps_mode', 'passthrough', ...(threads === 1 ? ONE_THREAD : [])]
  return [
    ...(threads === 1 ? ['-filter_threads', '1', '-filter_complex_threads', '1'] : []),
    ...['-filter_complex', `${scaling}[0:V:0]${chain.join(',')}${branches.join('')}`],
    ...outputs.flatMap(({ outputArgs }, index) => [
      ...['-map', `[v${index}]`, ...common, '-frames:v', String(frames.count)],
      ...[...outputArgs, `pipe:${3 + index}`],
    ]),
    ...counted.flatMap((args, index) => [...args, ...common, '-f', 'rawvideo', `pipe:${3 + outputs.length + index}`]),
  ]
}

/**
 * Counts the frames from where the seek ended to the chunk's first: by decoding times, a seek in an MP4 of slides can end several seconds
 * late. These are filters of their own, since an output of those with several ends only with the source.
 */
function landingArgs(videoTrack: VideoTrackPlan, { skipped, trimmed }: Frames): string[] {
  const endS = ((skipped + trimmed + 0.5) / rateHz(videoTrack) + (videoTrack.slotStartS ?? 0)).toFixed(6)
  return ['-map', '0:V:0', '-vf', `trim=end=${endS},scale=2:2:flags=neighbor,format=yuv420p`]
}

function maxMissingFrames({ frameCount, heldFrames = 0 }: VideoTrackPlan): number {
  return Math.max(TOLERATED_FRAMES, Math.floor((frameCount - heldFrames) * MAX_MISSING_PART))
}

function dropFrames(count: number): string[] {
  return count > 0 ? [`trim=start_frame=${count}`, 'setpts=PTS-STARTPTS'] : []
}

/** Repeats the last frame where the audio is longer, and in place of an end that cannot be read. */
function holdLastFrame(videoTrack: VideoTrackPlan, { trimmed, count, real }: Frames): string[] {
  // Never unlimited: ffmpeg 5.1 then runs forever if the source has one frame less than planned.
  const longest = Math.max(maxMissingFrames(videoTrack), Math.ceil(MAX_LAST_FRAME_S * rateHz(videoTrack)))
  const held = trimmed + count - real + longest
  return [`split=2[whole][ends];[ends]crop=2:2:0:0[ending];[whole]tpad=stop_mode=clone:stop=${held}`]
}

/** So many frames may be missing at the end of a file unnoticed. */
export const TOLERATED_FRAMES = 3
/** A video of which less than nine tenths can be read fails: too much of it would be one frozen frame. */
const MAX_MISSING_PART = 0.1
/** The last frame of slides and screen recordings may be shown for so long; it is one frame, so the rest is missing without an error. */
const MAX_LAST_FRAME_S = 10
const ONE_THREAD = ['-threads', '1']

function readRung(
  videoTrack: VideoTrackPlan,
  rendition: VideoRendition,
  planned: Pick<Frames, 'first' | 'count'>,
  sink: ChunkSink,
): CountingReader {
  const ticks = (videoTrack.timescale * videoTrack.rateDen) / videoTrack.rateNum
  let read = 0
  const reader = async (bytes: Readable) => {
    let compositionShift: number | undefined
    let isBroken = false
    for await (const part of splitFragments(bytes)) {
      if (part.kind === 'init') {
        dropConstraints(part.bytes) // x264 sets none; some hardware does, and the playlist would name another codec
        checkInit(part.bytes, videoTrack, rendition)
        await sink.onInit(rendition.id, part.bytes)
        continue
      }
      const { sampleCount, decodeTime, compositionOffsets } = readFragment(part.bytes)
      const frame = planned.first + read
      const isNext = decodeTime === read * ticks && sampleCount === Math.min(videoTrack.gopFrames, planned.count - read)
      isBroken ||= !isNext
      if (isBroken) continue // read to the end, so that the encoder exits by itself and reports why
      compositionShift ??= compositionOffsets?.[0] ?? 0
      const segment = frame / videoTrack.gopFrames
      placeFragment(part.bytes, { sequence: segment + 1, decodeTime: frame * ticks, compositionShift })
      await sink.onSegment(rendition.id, segment, part.bytes)
      read += sampleCount
    }
  }
  return { reader, frames: () => read }
}

function checkInit(init: Buffer, videoTrack: VideoTrackPlan, rendition: VideoRendition) {
  const { widthPx, heightPx, timescale, codec } = readVideoInit(init)
  const isAsPlanned =
    widthPx === rendition.widthPx &&
    heightPx === rendition.heightPx &&
    timescale === videoTrack.timescale &&
    codec === videoCodec(rendition)
  if (!isAsPlanned)
    throw new Error(`rendition ${rendition.id} came out as ${widthPx}×${heightPx}, ${timescale}, ${codec}, not as planned`)
}

function truncatedAt(atS: number): MediaFailure {
  return new MediaFailure(
    'Encoding error',
    `The video cannot be read past ${clockTime(atS)}: the file is damaged or was cut off. Upload it again.`,
  )
}

type CountingReader = { reader: Reader; frames: () => number }

function countFrames(): CountingReader {
  const cornerBytes = 6 // 2×2 in 4:2:0
  let sizeBytes = 0
  const reader = async (bytes: Readable) => {
    for await (const part of bytes) sizeBytes += part.length
  }
  return { reader, frames: () => sizeBytes / cornerBytes }
}

function rateHz({ rateNum, rateDen }: VideoTrackPlan): number {
  return rateNum / rateDen
}
