import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Chunk, planChunks, sequentialChunk, splitForViewer, URGENT_SEGMENTS } from '../../src/encode/chunk-plan.ts'
import type { Plan } from '../../src/encode/plan.ts'

/** A video of so many picture segments of 4 s, with sound of the same length. */
function videoOf(segmentCount: number, isSeekable = true): Plan {
  const durationS = segmentCount * 4
  return {
    durationS,
    isSeekable,
    videoTrack: {
      rateNum: 25,
      rateDen: 1,
      timescale: 90_000,
      frameCount: segmentCount * 100,
      gopFrames: 100,
      interlaced: false,
      storedPx: { widthPx: 1920, heightPx: 1080 },
      aspectRatio: 16 / 9,
      renditions: [{ id: 1, widthPx: 426, heightPx: 240, maxBitrateBps: 400_000, level: 21 }],
    },
    audioTrack: { renditionId: 2, bitrateBps: 128_000, frameCount: Math.ceil((durationS * 48_000) / 1024) },
  }
}

function segmentsOf(chunks: readonly Chunk[]): number[] {
  return chunks.flatMap((chunk) => Array.from({ length: chunk.segmentCount }, (_, index) => chunk.firstSegment + index))
}

const isVideo = (chunk: Chunk) => chunk.kind === 'video'

test('every segment of a video is in exactly one chunk, in order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3000 }), (segmentCount) => {
      const videoRenditions = planChunks(videoOf(segmentCount)).filter(isVideo)
      expect(segmentsOf(videoRenditions)).toEqual(Array.from({ length: segmentCount }, (_, index) => index))
    }),
  )
})

test('a video begins with a chunk of one segment, so that it plays soon', () => {
  for (const kind of ['video', 'audio']) {
    const [first] = planChunks(videoOf(100)).filter((chunk) => chunk.kind === kind)
    expect(first).toMatchObject({ firstSegment: 0, segmentCount: 1, priority: 0 })
  }
})

test('a video without seeking is one chunk from its start', () => {
  expect(planChunks(videoOf(50, false)).filter(isVideo)).toEqual([
    { kind: 'video', firstSegment: 0, segmentCount: 50, decodesFromStart: true, priority: 0 },
  ])
})

test('the segment that a viewer waits for begins a short chunk before all others, and none is lost', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 40 }),
      fc.integer({ min: 1, max: 8 }),
      fc.nat(7),
      (firstSegment, segmentCount, offset) => {
        const chunk: Chunk = { kind: 'video', firstSegment, segmentCount, decodesFromStart: false, priority: firstSegment }
        const awaited = firstSegment + (offset % segmentCount)
        const pieces = splitForViewer(chunk, awaited)
        expect(segmentsOf(pieces)).toEqual(segmentsOf([chunk]))
        const [first] = pieces.toSorted((a, b) => a.priority - b.priority)
        expect(first?.firstSegment).toBe(awaited)
        expect(first?.segmentCount).toBeLessThanOrEqual(URGENT_SEGMENTS)
        expect(first?.priority).toBeLessThan(0)
      },
    ),
  )
})

test('the sequential chunk covers everything unfinished, from its first segment, without a seek', () => {
  const [, second, third, ...rest] = planChunks(videoOf(30)).filter(isVideo)
  if (!second || !third) throw new Error('the video is too short for this test')
  expect(sequentialChunk([second, third, ...rest])).toEqual({
    kind: 'video',
    firstSegment: 1,
    segmentCount: 29,
    decodesFromStart: true,
    priority: 1,
  })
})
