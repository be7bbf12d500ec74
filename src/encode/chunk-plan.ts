import { audioSegmentCount, type Plan, videoSegmentCount } from './plan.ts'

/** A run of segments that one ffmpeg encodes; lower priorities run first. */
export type Chunk = {
  kind: 'video' | 'audio'
  firstSegment: number
  segmentCount: number
  decodesFromStart: boolean
  priority: number
}

// Short at the video's start, so that it plays soon; then 20 s of picture, past which nothing is gained and more is lost with a
// killed run; sound is cheap and its start-up is not.
const LENGTHS = { video: [1, 2, 5], audio: [1, 4, 15] } as const

/** What a viewer waits for is cut to two segments: of a sought chunk nothing is published before its end. */
export const URGENT_SEGMENTS = 2
export const VIEWER_PRIORITY = -1

/** All chunks of a video. Priorities are places in the video, so that picture and sound of all videos advance together. */
export function planChunks(plan: Plan): Chunk[] {
  const chunks: Chunk[] = []
  if (plan.audioTrack) chunks.push(...cut('audio', audioSegmentCount(plan.audioTrack), plan.mayBeSought))
  if (plan.videoTrack) chunks.push(...cut('video', videoSegmentCount(plan.videoTrack), plan.mayBeSought))
  return chunks
}

function cut(kind: Chunk['kind'], segmentCount: number, mayBeSought: boolean): Chunk[] {
  if (!mayBeSought) return [{ kind, firstSegment: 0, segmentCount, decodesFromStart: true, priority: 0 }]
  const chunks: Chunk[] = []
  for (let firstSegment = 0; firstSegment < segmentCount; ) {
    const length = LENGTHS[kind][Math.min(chunks.length, 2)] ?? 1
    chunks.push({
      kind,
      firstSegment,
      segmentCount: Math.min(length, segmentCount - firstSegment),
      decodesFromStart: false,
      priority: firstSegment,
    })
    firstSegment += length
  }
  return chunks
}

/** Cuts a waiting chunk so that the segment somebody waits for comes first, in a short chunk. */
export function splitForViewer(chunk: Chunk, segment: number): Chunk[] {
  if (chunk.decodesFromStart) return [{ ...chunk, priority: VIEWER_PRIORITY }]
  const end = chunk.firstSegment + chunk.segmentCount
  const awaitedEnd = Math.min(end, segment + URGENT_SEGMENTS)
  const pieces = [
    { ...chunk, segmentCount: segment - chunk.firstSegment },
    { ...chunk, firstSegment: segment, segmentCount: awaitedEnd - segment, priority: VIEWER_PRIORITY },
    { ...chunk, firstSegment: awaitedEnd, segmentCount: end - awaitedEnd, priority: awaitedEnd },
  ]
  return pieces.filter((piece) => piece.segmentCount > 0)
}

/** The one chunk that does what is unfinished of a video in sequence, once a seek was found not to decode cleanly. */
export function sequentialChunk(unfinished: readonly [Chunk, ...Chunk[]]): Chunk {
  const firstSegment = Math.min(...unfinished.map((chunk) => chunk.firstSegment))
  const end = Math.max(...unfinished.map((chunk) => chunk.firstSegment + chunk.segmentCount))
  return {
    kind: unfinished[0].kind,
    firstSegment,
    segmentCount: end - firstSegment,
    decodesFromStart: true,
    priority: firstSegment,
  }
}
