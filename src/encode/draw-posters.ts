import { firstLine, refuseFailure } from './chunk.ts'
import { pictureFilters, pictureInputArgs, sourceFilters } from './encoder.ts'
import { MediaFailure } from './media-failure.ts'
import type { PicturePlan, Plan } from './plan.ts'
import { collect, runMedia, type Sandbox, type SealedSource } from './sandbox.ts'

export type Poster = { widthPx: number; heightPx: number; jpeg: Buffer }

const BOXES = [
  { widthPx: 854, heightPx: 480 },
  { widthPx: 427, heightPx: 240 },
] as const
// Mean brightness of 0–255 below which a picture is taken for a fade or a black leader.
const DARK = 40
const MAX_CANDIDATES = 24
const MAX_JPEG_BYTES = 4 * 2 ** 20
const LIMITS = { cpuS: 120, wallS: 240 }

/** Where candidates are looked for: input options, and filters before the frames are counted. */
type Search = { inputArgs: string[]; filters: string[]; mayComplain: boolean }

/**
 * Makes the two posters of a film: it is the first picture after a tenth of it that is not dark, or the brightest.
 * They fit their boxes, keep the aspect ratio and are never larger than the source. A film of sound only has none.
 * @throws MediaFailure `Encoding error` when the source gives no picture; the signal's reason
 */
export async function makePosters(sandbox: Sandbox, source: SealedSource, plan: Plan, signal?: AbortSignal): Promise<Poster[]> {
  const { picture } = plan
  if (!picture) return []
  for (const search of searches(plan)) {
    const brightness = await measure(sandbox, source, picture, search, signal)
    if (!brightness) continue
    const firstBright = brightness.findIndex((value) => value > DARK)
    const chosen = firstBright >= 0 ? firstBright : brightness.indexOf(Math.max(...brightness))
    return draw(sandbox, source, picture, search, chosen, signal)
  }
  throw new MediaFailure('Encoding error', 'No picture of the film could be read: the file is damaged. Upload it again.')
}

/** Key frames are quick to look through. Where a seek is not clean or there is none, the film's first 20 s are decoded instead. */
function searches(plan: Plan): Search[] {
  const always = pictureInputArgs(plan)
  const fromStart: Search = { inputArgs: [...always, '-t', '20'], filters: ['fps=1'], mayComplain: true }
  if (!plan.mayBeSought) return [fromStart]
  const atS = (plan.durationS / 10).toFixed(3)
  return [{ inputArgs: [...always, '-skip_frame', 'nokey', '-ss', atS, '-t', '120'], filters: [], mayComplain: false }, fromStart]
}

/** The mean brightness of each candidate; undefined when there is none, or the decoder complained where it must not. */
async function measure(
  sandbox: Sandbox,
  source: SealedSource,
  picture: PicturePlan,
  { inputArgs, filters, mayComplain }: Search,
  signal?: AbortSignal,
): Promise<number[] | undefined> {
  const means = collect(MAX_CANDIDATES)
  const chain = [...filters, ...sourceFilters(picture), ...pictureFilters(picture), 'scale=1:1:flags=area', 'format=gray'].join(
    ',',
  )
  const outputArgs = [
    '-map',
    '0:V:0',
    '-vf',
    chain,
    '-fps_mode',
    'passthrough',
    '-frames:v',
    String(MAX_CANDIDATES),
    '-f',
    'rawvideo',
    'pipe:3',
  ]
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    inputArgs,
    outputArgs,
    pipes: [means.reader],
    limits: LIMITS,
    signal,
  })
  if (!mayComplain && (end.errorLines > 0 || end.exitCode !== 0)) return undefined
  const brightness = [...means.bytes()]
  return brightness.length > 0 ? brightness : undefined
}

async function draw(
  sandbox: Sandbox,
  source: SealedSource,
  picture: PicturePlan,
  { inputArgs, filters }: Search,
  candidate: number,
  signal?: AbortSignal,
): Promise<Poster[]> {
  const sizes = BOXES.map((box) => fitBox(picture, box))
  const jpegs = BOXES.map(() => collect(MAX_JPEG_BYTES))
  const chain = [...filters, ...sourceFilters(picture), ...pictureFilters(picture), `select=eq(n\\,${candidate})`].join(',')
  const graph = `[0:V:0]${chain},split=2[s0][s1];${sizes.map(({ widthPx, heightPx }, i) => `[s${i}]scale=${widthPx}:${heightPx},setsar=1[p${i}]`).join(';')}`
  const outputArgs = [
    ...['-filter_complex', graph],
    ...jpegs.flatMap((_, i) => [
      '-map',
      `[p${i}]`,
      '-frames:v',
      '1',
      '-c:v',
      'mjpeg',
      '-q:v',
      '3',
      '-map_metadata',
      '-1',
      '-f',
      'image2pipe',
      `pipe:${3 + i}`,
    ]),
  ]
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    inputArgs,
    outputArgs,
    pipes: jpegs.map(({ reader }) => reader),
    limits: LIMITS,
    signal,
  })
  refuseFailure(end)
  return sizes.map((size, i) => {
    const jpeg = jpegs[i]?.bytes() ?? Buffer.alloc(0)
    if (jpeg.length === 0) throw new MediaFailure('Encoding error', `The poster could not be made: ${firstLine(end)}`)
    return { ...size, jpeg }
  })
}

/** The largest size of the film's shape in the box. The highest rung, never larger than the source, bounds it. */
function fitBox({ aspectRatio, renditions: [largest] }: PicturePlan, box: { widthPx: number; heightPx: number }) {
  const heightPx = Math.min(box.heightPx, box.widthPx / aspectRatio, largest?.heightPx ?? box.heightPx)
  const even = (px: number) => Math.max(2, 2 * Math.round(px / 2))
  return { widthPx: Math.min(even(heightPx * aspectRatio), box.widthPx), heightPx: even(heightPx) }
}
