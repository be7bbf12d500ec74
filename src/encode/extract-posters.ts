import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { collect } from '../sandbox/child-process.ts'
import { type MediaLimits, type Reader, type SealedSource, wasKilled } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { chunkLimits, throwIfFailed } from './chunk.ts'
import { encodedColor, scaleOptions } from './color.ts'
import { sourceFilters, videoFilters, videoInputArgs } from './encoder.ts'
import { MediaFailure } from './media-failure.ts'
import type { Plan, VideoTrackPlan } from './plan.ts'

export type Poster = { widthPx: number; heightPx: number; jpeg: Buffer }

/** Each size of a poster fits its box. */
export const POSTER_BOXES = [
  { widthPx: 854, heightPx: 480 },
  { widthPx: 427, heightPx: 240 },
] as const
// Mean brightness of 0–255 below which a frame is taken for a fade or a black leader.
const MIN_BRIGHTNESS = 40
/** The same as luma, which is 16 for black and 235 for white. */
const MIN_LUMA = 16 + (MIN_BRIGHTNESS * 219) / 255
const MAX_CANDIDATES = 24
/** JPEG has no other. */
const JPEG_COLOR = { matrix: 'smpte170m', range: 'pc' } as const
export const MAX_JPEG_BYTES = 4 * 2 ** 20
const LIMITS = { cpuS: 120, wallS: 240 }

/** Which frames are candidates: input options, and filters before the frames are counted. */
type Search = {
  isPiped?: boolean | undefined
  inputArgs: string[]
  filters: string[]
  mayHaveErrors: boolean
  limits: MediaLimits
}

/** Selects the first candidate that is not dark, in the pass that extracts it: most videos need no second pass. */
const FIRST_BRIGHT = [
  `trim=end_frame=${MAX_CANDIDATES}`,
  'signalstats',
  `metadata=select:key=lavfi.signalstats.YAVG:value=${MIN_LUMA.toFixed(2)}:function=greater`,
].join(',')

/**
 * Extracts the two posters of a video: its first frame after a tenth of it that is not dark, or the brightest.
 * They fit their boxes, keep the aspect ratio and are never larger than the source. A file with audio only has none.
 * @throws MediaFailure `Encoding error` when no frame can be decoded; the signal's reason; anything else may be retried
 */
export async function extractPosters(
  sandbox: Sandbox,
  source: SealedSource,
  plan: Plan,
  signal?: AbortSignal,
): Promise<Poster[]> {
  const { videoTrack } = plan
  if (!videoTrack) return []
  for (const search of searches(plan)) {
    const pass = { sandbox, source, videoTrack, search, signal }
    const bright = await extract(pass, FIRST_BRIGHT)
    if (bright) return bright
    const brightest = await findBrightest(pass)
    const dark = brightest === undefined ? undefined : await extract(pass, `select=eq(n\\,${brightest})`)
    if (dark) return dark
  }
  throw new MediaFailure('Encoding error', 'No frame of the video could be read: the file is damaged. Upload it again.')
}

/**
 * Extracts the frame that is shown at a time, in the same two sizes.
 * @throws MediaFailure `Encoding error` when there is none; the signal's reason
 */
export async function extractPostersAt(
  sandbox: Sandbox,
  source: SealedSource,
  { plan, timeS, signal }: { plan: Plan; timeS: number; signal?: AbortSignal },
): Promise<Poster[]> {
  const { videoTrack } = plan
  if (!videoTrack) throw new MediaFailure('Encoding error', 'The file has audio only.')
  const atS = beginsAtS(plan) + timeS
  const inputArgs = [...videoInputArgs(plan), '-threads', '1', '-ss', atS.toFixed(3), '-t', '20']
  // A pipe is decoded from its start.
  const { isPiped } = plan
  const limits = isPiped ? chunkLimits(0, atS) : LIMITS
  const search: Search = { isPiped, inputArgs, filters: [], mayHaveErrors: true, limits }
  const posters = await extract({ sandbox, source, videoTrack, search, signal }, 'null')
  if (!posters) throw new MediaFailure('Encoding error', 'There is no frame at this time. Choose one a little earlier.')
  return posters
}

type Pass = { sandbox: Sandbox; source: SealedSource; videoTrack: VideoTrackPlan; search: Search; signal?: AbortSignal }

/** Where the video begins in its source, in seconds. */
function beginsAtS({ videoTrack }: Plan): number {
  return videoTrack ? ((videoTrack.firstFrame ?? 0) * videoTrack.rateDen) / videoTrack.rateNum : 0
}

/** Key frames are quick to search. Where a seek is not clean or not possible, the first 20 s are decoded instead. */
function searches(plan: Plan): Search[] {
  // Several threads would each decode a key frame, where one is mostly enough.
  const commonArgs = [...videoInputArgs(plan), '-threads', '1']
  const { isPiped, cut, durationS } = plan
  const fromStart: Search = {
    ...{ isPiped, inputArgs: [...commonArgs, '-t', '20'], filters: ['fps=1'], mayHaveErrors: true, limits: LIMITS },
  }
  // Never a frame that was cut off: a part may have no key frame.
  const atS = (beginsAtS(plan) + durationS / 10).toFixed(3)
  const fromThere = { ...fromStart, inputArgs: [...commonArgs, '-ss', atS, '-t', String(Math.min(20, 0.9 * durationS))] }
  if (!plan.isSeekable) return cut ? [] : [fromStart]
  const others = cut ? [fromThere] : [fromStart]
  const lengthS = String(cut ? Math.min(120, 0.9 * durationS) : 120)
  const inputArgs = [...commonArgs, '-skip_frame', 'nokey', '-ss', atS, '-t', lengthS]
  return [{ inputArgs, filters: [], mayHaveErrors: false, limits: LIMITS }, ...others]
}

/** The number of the brightest candidate; undefined when there is none, or the decoder reported errors where it must not. */
async function findBrightest(pass: Pass): Promise<number | undefined> {
  const means = collect(MAX_CANDIDATES)
  const chain = [...candidateFilters(pass), 'scale=1:1:flags=area', 'format=gray'].join(',')
  const outputArgs = [
    ...['-map', '0:V:0', '-vf', chain, '-fps_mode', 'passthrough'],
    ...['-frames:v', String(MAX_CANDIDATES), '-f', 'rawvideo', 'pipe:3'],
  ]
  if (!(await runSearch(pass, outputArgs, [means.reader]))) return undefined
  const brightness = [...means.bytes()]
  return brightness.length > 0 ? brightness.indexOf(Math.max(...brightness)) : undefined
}

/** @param choice filters that select a candidate. Undefined: there was none, or the decoder reported errors where it must not */
async function extract(pass: Pass, choice: string): Promise<Poster[] | undefined> {
  const { outputArgs, pipes, posters } = posterOutputs(pass.videoTrack, [...candidateFilters(pass), choice])
  return (await runSearch(pass, outputArgs, pipes)) ? posters() : undefined
}

/**
 * The outputs of a run that makes the two posters of the first frame that the filters let through; it has the colors of
 * `encodedColor`. `posters`: undefined when there was none.
 * @param index of the frame, among those of the same run
 */
export function posterOutputs(videoTrack: VideoTrackPlan, filters: readonly string[], index = 0) {
  const sizes = POSTER_BOXES.map((box) => fitBox(videoTrack, box))
  const jpegs = POSTER_BOXES.map(() => collect(MAX_JPEG_BYTES))
  const { color } = videoTrack
  const toJpeg = color ? scaleOptions('in', encodedColor(color)) + scaleOptions('out', JPEG_COLOR) : ''
  const first = index * sizes.length
  const split = sizes.map((_, i) => `[s${first + i}]`).join('')
  const scaled = sizes.map(
    ({ widthPx, heightPx }, i) => `[s${first + i}]scale=${widthPx}:${heightPx}${toJpeg},setsar=1,format=yuvj420p[p${first + i}]`,
  )
  const graph = [`[0:V:0]${filters.join(',')},split=${sizes.length}${split}`, ...scaled].join(';')
  return {
    outputArgs: [...['-filter_complex', graph], ...jpegs.flatMap((_, i) => jpegArgs(first + i))],
    pipes: jpegs.map(({ reader }) => reader),
    posters(): Poster[] | undefined {
      const posters = sizes.map((size, i) => ({ ...size, jpeg: jpegs[i]?.bytes() ?? Buffer.alloc(0) }))
      return posters.every(({ jpeg }) => jpeg.length > 0) ? posters : undefined
    },
  }
}

/** Writes the frame at `[p<size>]` into a pipe of its own, without anything else of its file. */
export function jpegArgs(size: number): string[] {
  const output = ['-frames:v', '1', '-c:v', 'mjpeg', '-q:v', '3', '-map_metadata', '-1', '-f', 'image2pipe']
  return ['-map', `[p${size}]`, ...output, `pipe:${3 + size}`]
}

function candidateFilters({ videoTrack, search }: Pass): string[] {
  return [...search.filters, ...sourceFilters(videoTrack), ...videoFilters(videoTrack)]
}

/** @returns whether the output may be used. @throws when a time limit or a signal ended it: that is no finding about the video */
async function runSearch({ sandbox, source, search, signal }: Pass, outputArgs: string[], pipes: Reader[]): Promise<boolean> {
  const { mayHaveErrors, isPiped, inputArgs, limits } = search
  const end = await runMedia(sandbox, { tool: 'ffmpeg', source, isPiped, inputArgs, outputArgs, pipes, limits, signal })
  if (end.outOfTime || wasKilled(end)) throwIfFailed(end)
  return mayHaveErrors || (end.errorLines === 0 && end.exitCode === 0)
}

/** The largest size with the video's aspect ratio in the box, at most as high as the highest rung. */
function fitBox({ aspectRatio, renditions: [largest] }: VideoTrackPlan, box: { widthPx: number; heightPx: number }) {
  const heightPx = Math.min(box.heightPx, box.widthPx / aspectRatio, largest?.heightPx ?? box.heightPx)
  const even = (px: number) => Math.max(2, 2 * Math.round(px / 2))
  return { widthPx: Math.min(even(heightPx * aspectRatio), box.widthPx), heightPx: even(heightPx) }
}
