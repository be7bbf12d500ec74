import { throwIfFailed } from './chunk.ts'
import { sourceFilters, videoFilters, videoInputArgs } from './encoder.ts'
import { MediaFailure } from './media-failure.ts'
import type { Plan, VideoTrackPlan } from './plan.ts'
import { collect, type Reader, runMedia, type Sandbox, type SealedSource, wasKilled } from './sandbox.ts'

export type Poster = { widthPx: number; heightPx: number; jpeg: Buffer }

const BOXES = [
  { widthPx: 854, heightPx: 480 },
  { widthPx: 427, heightPx: 240 },
] as const
// Mean brightness of 0–255 below which a picture is taken for a fade or a black leader.
const DARK = 40
/** The same as luma, which is 16 for black and 235 for white. */
const DARK_LUMA = 16 + (DARK * 219) / 255
const MAX_CANDIDATES = 24
const MAX_JPEG_BYTES = 4 * 2 ** 20
const LIMITS = { cpuS: 120, wallS: 240 }

/** Where candidates are looked for: input options, and filters before the frames are counted. */
type Search = { inputArgs: string[]; filters: string[]; mayComplain: boolean }

/** The first candidate that is not dark, found in the pass that draws it: for most videos there is no other. */
const FIRST_BRIGHT = [
  `trim=end_frame=${MAX_CANDIDATES}`,
  'signalstats',
  `metadata=select:key=lavfi.signalstats.YAVG:value=${DARK_LUMA.toFixed(2)}:function=greater`,
].join(',')

/**
 * Makes the two posters of a video: it is the first picture after a tenth of it that is not dark, or the brightest.
 * They fit their boxes, keep the aspect ratio and are never larger than the source. A video of sound only has none.
 * @throws MediaFailure `Encoding error` when the source gives no picture; the signal's reason; anything else is worth another try
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
    const look = { sandbox, source, videoTrack, search, signal }
    const bright = await draw(look, FIRST_BRIGHT)
    if (bright) return bright
    const brightest = await findBrightest(look)
    const dark = brightest === undefined ? undefined : await draw(look, `select=eq(n\\,${brightest})`)
    if (dark) return dark
  }
  throw new MediaFailure('Encoding error', 'No picture of the video could be read: the file is damaged. Upload it again.')
}

type Look = { sandbox: Sandbox; source: SealedSource; videoTrack: VideoTrackPlan; search: Search; signal?: AbortSignal }

/** Key frames are quick to look through. Where a seek is not clean or there is none, the video's first 20 s are decoded instead. */
function searches(plan: Plan): Search[] {
  // Of several threads each would begin a key frame of its own, where one is mostly enough.
  const always = [...videoInputArgs(plan), '-threads', '1']
  const decodesFromStart: Search = { inputArgs: [...always, '-t', '20'], filters: ['fps=1'], mayComplain: true }
  if (!plan.isSeekable) return [decodesFromStart]
  const atS = (plan.durationS / 10).toFixed(3)
  return [
    { inputArgs: [...always, '-skip_frame', 'nokey', '-ss', atS, '-t', '120'], filters: [], mayComplain: false },
    decodesFromStart,
  ]
}

/** The number of the brightest candidate; undefined when there is none, or the decoder complained where it must not. */
async function findBrightest(look: Look): Promise<number | undefined> {
  const means = collect(MAX_CANDIDATES)
  const chain = [...candidateFilters(look), 'scale=1:1:flags=area', 'format=gray'].join(',')
  const outputArgs = [
    ...['-map', '0:V:0', '-vf', chain, '-fps_mode', 'passthrough'],
    ...['-frames:v', String(MAX_CANDIDATES), '-f', 'rawvideo', 'pipe:3'],
  ]
  if (!(await runSearch(look, outputArgs, [means.reader]))) return undefined
  const brightness = [...means.bytes()]
  return brightness.length > 0 ? brightness.indexOf(Math.max(...brightness)) : undefined
}

/** @param choice filters that let the chosen candidate pass. Undefined: none passed, or the decoder complained where it must not */
async function draw(look: Look, choice: string): Promise<Poster[] | undefined> {
  const sizes = BOXES.map((box) => fitBox(look.videoTrack, box))
  const jpegs = BOXES.map(() => collect(MAX_JPEG_BYTES))
  const chain = [...candidateFilters(look), choice].join(',')
  const graph = `[0:V:0]${chain},split=2[s0][s1];${sizes.map(({ widthPx, heightPx }, i) => `[s${i}]scale=${widthPx}:${heightPx},setsar=1[p${i}]`).join(';')}`
  const outputArgs = [
    ...['-filter_complex', graph],
    ...jpegs.flatMap((_, i) => [
      ...['-map', `[p${i}]`, '-frames:v', '1', '-c:v', 'mjpeg', '-q:v', '3'],
      ...['-map_metadata', '-1', '-f', 'image2pipe', `pipe:${3 + i}`],
    ]),
  ]
  const readers = jpegs.map(({ reader }) => reader)
  if (!(await runSearch(look, outputArgs, readers))) return undefined
  const posters = sizes.map((size, i) => ({ ...size, jpeg: jpegs[i]?.bytes() ?? Buffer.alloc(0) }))
  return posters.every(({ jpeg }) => jpeg.length > 0) ? posters : undefined
}

function candidateFilters({ videoTrack, search }: Look): string[] {
  return [...search.filters, ...sourceFilters(videoTrack), ...videoFilters(videoTrack)]
}

/** @returns whether what came out may be used. An end by time or by a signal says nothing about the pictures, and is thrown. */
async function runSearch({ sandbox, source, search, signal }: Look, outputArgs: string[], pipes: Reader[]): Promise<boolean> {
  const { inputArgs, mayComplain } = search
  const end = await runMedia(sandbox, { tool: 'ffmpeg', source, inputArgs, outputArgs, pipes, limits: LIMITS, signal })
  if (end.outOfTime || wasKilled(end)) throwIfFailed(end)
  return mayComplain || (end.errorLines === 0 && end.exitCode === 0)
}

/** The largest size of the video's shape in the box. The highest rung, never larger than the source, bounds it. */
function fitBox({ aspectRatio, renditions: [largest] }: VideoTrackPlan, box: { widthPx: number; heightPx: number }) {
  const heightPx = Math.min(box.heightPx, box.widthPx / aspectRatio, largest?.heightPx ?? box.heightPx)
  const even = (px: number) => Math.max(2, 2 * Math.round(px / 2))
  return { widthPx: Math.min(even(heightPx * aspectRatio), box.widthPx), heightPx: even(heightPx) }
}
