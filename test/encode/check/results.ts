import { encodeAudioChunk } from '../../../src/encode/audio-chunk.ts'
import type { Result, ResultSegment } from '../../../src/encode/check/result.ts'
import { encodeVideoChunk } from '../../../src/encode/chunk.ts'
import { newSink, type OpenVideo } from '../videos.ts'

/** A chunk as another machine returns it. @param encoded another video, which is encoded in place of this one */
export async function encodeResult(video: OpenVideo, chunk: Result['chunk'], encoded: OpenVideo = video): Promise<Result> {
  const sink = newSink()
  const request = { ...encoded, plan: video.plan, chunk }
  if (chunk.kind === 'audio') await encodeAudioChunk(request, sink)
  else await encodeVideoChunk({ ...request, threads: 1 }, sink)
  const inits = new Map([...sink.inits].flatMap(([id, [init]]) => (init ? [[id, init] as const] : [])))
  const segments = [...sink.segments].flatMap(([id, all]) => [...all].map(([number, bytes]) => toSegment(id, number, bytes)))
  return { ...video, chunk, inits, segments }
}

export function toSegment(renditionId: number, number: number, bytes: Buffer): ResultSegment {
  return { renditionId, number, sizeBytes: bytes.length, read: async () => bytes }
}

/** The result with some of its segments replaced. */
export async function replace(
  result: Result,
  change: (segment: ResultSegment, bytes: Buffer) => Buffer | undefined,
): Promise<Result> {
  const segments = await Promise.all(
    result.segments.map(async (segment) => {
      const { renditionId, number } = segment
      const bytes = change(segment, Buffer.from(await segment.read()))
      return bytes ? toSegment(renditionId, number, bytes) : segment
    }),
  )
  return { ...result, segments }
}
