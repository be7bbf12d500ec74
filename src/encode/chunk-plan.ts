import { audioSegmentCount, type Plan, videoSegmentCount } from './plan.ts'

export const CHUNK_KINDS = ['video', 'audio'] as const
export type ChunkKind = (typeof CHUNK_KINDS)[number]

/** A run of segments that one ffmpeg encodes; lower priorities run first. */
export type Chunk = {
  kind: ChunkKind
  firstSegment: number
  segmentCount: number
  decodesFromStart: boolean
  priority: number
}

// In segments. Short at the video's start, so that it plays soon; then 20 s of video: longer gains nothing and loses more with a
// killed run. Audio is cheap to encode, but not to start.
const LENGTHS = { video: [1, 2, 5], audio: [1, 4, 15] } as const

/** A chunk that a viewer waits for has two segments: a chunk that starts with a seek publishes nothing before its end. */
export const URGENT_SEGMENTS = 2
export const VIEWER_PRIORITY = -1

/** All chunks of a video. The priority is the first segment, so that video and audio of all videos advance together. */
export function planChunks(plan: Plan): Chunk[] {
  const { videoTrack } = plan
  const ofVideo = videoTrack ? splitIntoChunks('video', videoSegmentCount(videoTrack), plan.isSeekable) : []
  return [...planAudioChunks(plan), ...ofVideo]
}

/** Those of the sound: each has the segments of all audio tracks. */
export function planAudioChunks({ audioTrack, isSeekable }: Plan): Chunk[] {
  return audioTrack ? splitIntoChunks('audio', audioSegmentCount(audioTrack), isSeekable) : []
}

function splitIntoChunks(kind: Chunk['kind'], segmentCount: number, isSeekable: boolean): Chunk[] {
  if (!isSeekable) return [{ kind, firstSegment: 0, segmentCount, decodesFromStart: true, priority: 0 }]
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

/** Splits a pending chunk so that the segment a viewer waits for comes first, in a short chunk. */
export function splitForViewer(chunk: Chunk, segment: number): Chunk[] {
  if (chunk.decodesFromStart) return [{ ...chunk, priority: VIEWER_PRIORITY }]
  const end = chunk.firstSegment + chunk.segmentCount
  const awaitedEnd = Math.min(end, segment + URGENT_SEGMENTS)
  const parts = [
    { ...chunk, segmentCount: segment - chunk.firstSegment },
    { ...chunk, firstSegment: segment, segmentCount: awaitedEnd - segment, priority: VIEWER_PRIORITY },
    { ...chunk, firstSegment: awaitedEnd, segmentCount: end - awaitedEnd, priority: awaitedEnd },
  ]
  return parts.filter((part) => part.segmentCount > 0)
}

/** One chunk without a seek for all unfinished segments, after a seek did not decode cleanly. */
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
