import { throwIfFailed } from '../encode/chunk.ts'
import { type Poster, posterOutputs } from '../encode/extract-posters.ts'
import { type VideoTrackPlan, videoSegmentCount } from '../encode/plan.ts'
import type { GenerationWithKey } from '../encode/publication.ts'
import { splitEvery } from '../encode/split-every.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { collect } from '../sandbox/child-process.ts'
import type { Reader } from '../sandbox/media-run.ts'
import { runOnFragments } from '../sandbox/run.ts'
import { chooseFrames, type DecodedFrames, type LookedAt, lookAt, MAX_PARTS, THUMB } from './choose-frames.ts'
import { type ReadRenditionDeps, readRendition } from './read-rendition.ts'

/** A frame that is offered as a poster: when it is shown, in seconds, and its pictures, the larger first. */
type PosterCandidate = { timeS: number; posters: Poster[] }

type CandidateDeps = ReadRenditionDeps & { sandbox: Sandbox }

/** Frames that are looked at, in each second. */
const LOOKS_HZ = 5
const MAX_THUMBS_BYTES = 4 * 2 ** 20
const LIMITS = { cpuS: 120, wallS: 600 }

/**
 * The frames of a finished video that make the best posters, the best first: at most twelve segments of its lowest rendition are looked
 * at, and what is chosen is taken from its best. What is decrypted stays in memory.
 * @returns none for a file with audio only, and where all frames that were looked at are of one color
 * @throws as `readRendition` does
 */
export async function makePosterCandidates(
  deps: CandidateDeps,
  video: GenerationWithKey,
  signal: AbortSignal,
): Promise<PosterCandidate[]> {
  const { videoTrack } = video.plan
  const [best, lowest] = [videoTrack?.renditions[0], videoTrack?.renditions.at(-1)]
  if (!videoTrack || !best || !lowest) return []
  const { hz, gopFrames } = { hz: videoTrack.rateNum / videoTrack.rateDen, ...videoTrack }
  const frames = await findBestFrames()
  const found = new Map<number, Poster[]>()
  // One run for each segment: a short video has one alone.
  for (const [segment, inSegment] of Map.groupBy(frames, (frame) => Math.floor(frame / gopFrames))) {
    const runs = inSegment.map((frame, n) => posterOutputs(videoTrack, [`select=eq(n\\,${frame % gopFrames})`], n))
    const outputArgs = runs.flatMap((outputs) => outputs.outputArgs)
    await run(best.id, [segment], { outputArgs, pipes: runs.flatMap(({ pipes }) => pipes) })
    for (const [n, frame] of inSegment.entries()) {
      const posters = runs[n]?.posters()
      if (posters) found.set(frame, posters)
    }
  }
  return frames.flatMap((frame) => {
    const posters = found.get(frame)
    return posters ? [{ timeS: frame / hz, posters }] : []
  })

  async function findBestFrames(): Promise<number[]> {
    if (!videoTrack || !lowest) return []
    const segments = chooseSegments(videoTrack)
    const step = Math.max(1, Math.round(hz / LOOKS_HZ))
    const thumbs = collect(MAX_THUMBS_BYTES)
    const looks: LookedAt[] = []
    const look = (luma: Buffer) => looks.push({ index: looks.length * step, ...lookAt(luma, lowest.widthPx) })
    const graph = [
      `[0:V:0]split=2[all][some]`,
      `[all]scale=${THUMB.widthPx}:${THUMB.heightPx}:flags=area,format=gray[thumbs]`,
      `[some]select=not(mod(n\\,${step})),format=gray[looks]`,
    ]
    const raw = ['-fps_mode', 'passthrough', '-f', 'rawvideo']
    await run(lowest.id, segments, {
      outputArgs: [
        ...['-filter_complex', graph.join(';')],
        ...['-map', '[thumbs]', ...raw, 'pipe:3', '-map', '[looks]', ...raw, 'pipe:4'],
      ],
      pipes: [thumbs.reader, readFrames(lowest.widthPx * lowest.heightPx, look)],
    })
    return chooseFrames(describeDecoded(videoTrack, segments, thumbs.bytes()), looks)
  }

  async function run(renditionId: number, segments: readonly number[], outputs: { outputArgs: string[]; pipes: Reader[] }) {
    const fragments = readRendition(deps, video, { renditionId, numbers: new Set(segments) })
    const inputArgs = ['-threads', '1']
    throwIfFailed(await runOnFragments(deps.sandbox, { fragments, inputArgs, ...outputs, limits: LIMITS, signal }))
  }
}

/** One segment of each part, from its middle; in a short video all. Pure. */
function chooseSegments(videoTrack: VideoTrackPlan): number[] {
  const count = videoSegmentCount(videoTrack)
  const parts = Math.min(count, MAX_PARTS)
  return Array.from({ length: parts }, (_, part) => Math.floor(((part + 0.5) * count) / parts))
}

/** Each segment has all its frames, the last one of a video fewer. Frames that are held for longer audio are none of the file. Pure. */
function describeDecoded(videoTrack: VideoTrackPlan, segments: readonly number[], thumbs: Uint8Array): DecodedFrames {
  const { rateNum, rateDen, gopFrames, frameCount, heldFrames = 0 } = videoTrack
  const numbers = segments
    .flatMap((segment) => Array.from({ length: gopFrames }, (_, frame) => segment * gopFrames + frame))
    .filter((number) => number < frameCount - heldFrames)
  const parts = numbers.map((_, index) => Math.floor((index * MAX_PARTS) / numbers.length))
  return { hz: rateNum / rateDen, numbers, parts, thumbs }
}

/** Calls back with the bytes of each frame. */
function readFrames(frameBytes: number, use: (frame: Buffer) => void): Reader {
  return async (bytes) => {
    for await (const frame of splitEvery(bytes, frameBytes)) use(frame)
  }
}
