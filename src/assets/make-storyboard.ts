import { throwIfFailed } from '../encode/chunk.ts'
import { encodedColor, scaleOptions } from '../encode/color.ts'
import type { VideoTrackPlan } from '../encode/plan.ts'
import type { GenerationWithKey } from '../encode/publication.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { collect } from '../sandbox/child-process.ts'
import { runOnFragments } from '../sandbox/run.ts'
import { type ReadRenditionDeps, readRendition } from './read-rendition.ts'
import { planStoryboard, type Storyboard } from './storyboard.ts'

type MakeStoryboardDeps = ReadRenditionDeps & { sandbox: Sandbox }

/** Of 360 pictures of an hour, 50 made 295 kB and 30 made 226 kB. */
const WEBP_QUALITY = 50
const MAX_SHEETS_BYTES = 32 * 2 ** 20
const LIMITS = { cpuS: 300, wallS: 1200 }
/** WebP has the colors of BT.601. */
const WEBP_COLOR = { matrix: 'smpte170m', range: 'tv' } as const
/** A frame at the border of two intervals may come out a little before it. */
const ROUNDED = 0.001

/**
 * The sheets of a finished video, as WebP, made from its lowest rendition: at most one segment is read for each picture, and only what
 * its picture needs is decoded. What is decrypted stays in memory.
 * @returns none for a file with audio only
 * @throws as `readRendition` does
 */
export async function makeStoryboard(deps: MakeStoryboardDeps, video: GenerationWithKey, signal: AbortSignal): Promise<Buffer[]> {
  const { videoTrack } = video.plan
  const storyboard = planStoryboard(video.plan)
  if (!videoTrack || !storyboard) return []
  const webps = collect(MAX_SHEETS_BYTES)
  const renditionId = videoTrack.renditions.at(-1)?.id ?? 0
  const end = await runOnFragments(deps.sandbox, {
    fragments: readRendition(deps, video, { renditionId, numbers: neededSegments(videoTrack, storyboard) }),
    // One picture for each segment: its key frame is enough. Else frames that no other needs are left out, about half of them.
    inputArgs: ['-threads', '1', '-skip_frame', takesKeyFrames(videoTrack, storyboard) ? 'nokey' : 'noref'],
    outputArgs: [
      ...['-map', '0:v:0', '-vf', sheetFilters(videoTrack, storyboard).join(','), '-fps_mode', 'passthrough'],
      ...['-frames:v', String(storyboard.sheetCount), '-c:v', 'libwebp', '-quality', String(WEBP_QUALITY)],
      ...['-threads', '1', '-map_metadata', '-1', '-f', 'image2pipe', 'pipe:3'],
    ],
    pipes: [webps.reader],
    limits: LIMITS,
    signal,
  })
  throwIfFailed(end)
  const sheets = splitWebPs(webps.bytes())
  if (sheets.length !== storyboard.sheetCount)
    throw new Error(`${sheets.length} sheets of a storyboard were made instead of ${storyboard.sheetCount}`)
  return sheets
}

/** Takes the first frame of each interval; where there is none, as in slow slides, the one before. */
function sheetFilters({ color }: VideoTrackPlan, { intervalS, tileCount, ...size }: Storyboard): string[] {
  const interval = (time: string) => `floor(${time}/${intervalS}+${ROUNDED})`
  const toWebP = color ? scaleOptions('in', encodedColor(color)) + scaleOptions('out', WEBP_COLOR) : ''
  return [
    `tpad=stop_duration=${2 * intervalS}:stop_mode=clone`, // else fps would leave out the last picture
    `select='isnan(prev_selected_t)+gt(${interval('t')},${interval('prev_selected_t')})'`,
    `setpts='${interval('T')}/TB'`, // an interval is a second
    `fps=1:start_time=0,tpad=stop=${tileCount}:stop_mode=clone`,
    `trim=end_frame=${tileCount}`,
    `scale=${size.widthPx}:${size.heightPx}:flags=area${toWebP},setsar=1,format=yuv420p`,
    `tile=${size.columns}x${size.rows}`,
  ]
}

/** Whether each interval has a key frame of its own. */
function takesKeyFrames(videoTrack: VideoTrackPlan, { intervalS }: Storyboard): boolean {
  return intervalS >= segmentS(videoTrack)
}

function segmentS({ gopFrames, rateDen, rateNum }: VideoTrackPlan): number {
  return (gopFrames * rateDen) / rateNum
}

/** The first segment that begins in each interval; undefined: all are needed. */
function neededSegments(videoTrack: VideoTrackPlan, storyboard: Storyboard): Set<number> | undefined {
  if (!takesKeyFrames(videoTrack, storyboard)) return undefined
  const { tileCount, intervalS } = storyboard
  return new Set(Array.from({ length: tileCount }, (_, tile) => Math.ceil((tile * intervalS) / segmentS(videoTrack) - ROUNDED)))
}

/** Images that were written one after another: each begins with `RIFF` and the number of bytes that follow. */
function splitWebPs(bytes: Buffer): Buffer[] {
  const images: Buffer[] = []
  for (let at = 0; at + 8 <= bytes.length; ) {
    const end = at + 8 + bytes.readUInt32LE(at + 4)
    images.push(bytes.subarray(at, end))
    at = end
  }
  return images
}
