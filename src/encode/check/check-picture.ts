import { decodeVideoChunk } from '../chunk.ts'
import { runAll } from '../run-all.ts'
import { compareFromAnySeek, expectEnd, ignoreInexactSeek, initOf, judge, nameOf, type OnMeasured, spanOf } from './compare.ts'
import { decodeSegments } from './decoded.ts'
import { measurePicture, SMALL, toleranceOf } from './picture-difference.ts'
import { Refusal } from './refusal.ts'
import type { Result, ResultSegment } from './result.ts'

const FRAME_BYTES = (SMALL.widthPx * SMALL.heightPx * 3) / 2
const PICTURE_ARGS = [
  ...['-map', '0:v:0', '-vf', `scale=${SMALL.widthPx}:${SMALL.heightPx}:flags=area`],
  ...['-fps_mode', 'passthrough', '-f', 'rawvideo'],
]

/**
 * Compares each frame of these segments with the source's frame in the same place of the grid, both as small pictures. The source is
 * decoded once for all renditions, at the pace of the slowest, so that memory does not grow with the chunk.
 * @throws Refusal; InexactSeek where the source does not decode cleanly from any place before; otherwise as `decodeVideoChunk` does
 */
export async function checkPicture(result: Result, segments: readonly ResultSegment[], onMeasured: OnMeasured): Promise<void> {
  const { sandbox, source, plan, signal } = result
  const { videoTrack: track } = plan
  if (!track) throw new Error('the plan has no video track')
  const { gopFrames, frameCount, rateNum, rateDen, renditions } = track
  const tolerances = new Map(renditions.map((rendition) => [rendition.id, toleranceOf(track, rendition)]))
  const span = spanOf(result, segments)
  const endFrame = Math.min((span.firstSegment + span.segmentCount) * gopFrames, frameCount)
  await compareFromAnySeek(result, compareFrom)

  async function compareFrom(leadS: number): Promise<void> {
    const rungs = [...Map.groupBy(segments, ({ renditionId }) => renditionId)].map(([renditionId, ofRung]) =>
      openRung(renditionId, ofRung),
    )
    let frame = span.firstSegment * gopFrames
    await runAll(signal, [
      ...rungs.map(({ decoded }) => decoded.run),
      async (signal) => {
        const request = { sandbox, source, plan, chunk: { ...span, leadS }, signal }
        const decoding = decodeVideoChunk(request, {
          ...SMALL,
          onFrame: async (expected) => {
            for (const rung of rungs) await rung.compare(frame, expected)
            frame++
          },
        })
        await decoding.catch(ignoreInexactSeek(() => frame === endFrame))
        for (const { decoded } of rungs) await expectEnd(decoded)
      },
    ])
  }

  function openRung(renditionId: number, ofRung: readonly ResultSegment[]) {
    const inOrder = ofRung.toSorted((a, b) => a.number - b.number)
    const byNumber = new Map(inOrder.map((segment) => [segment.number, segment]))
    const measured = measurePicture(tolerances.get(renditionId) ?? 1)
    const decoded = decodeSegments(
      sandbox,
      { init: initOf(result, renditionId), segments: inOrder },
      { args: PICTURE_ARGS, blockBytes: FRAME_BYTES, lengthS: (span.segmentCount * gopFrames * rateDen) / rateNum },
    )
    async function compare(frame: number, expected: Buffer): Promise<void> {
      const segment = byNumber.get(Math.floor(frame / gopFrames))
      if (!segment) return
      const found = await decoded.next()
      if (!found) throw new Refusal(`${nameOf(segment)} has fewer frames than it says`)
      measured.add(expected, found)
      if ((frame + 1) % gopFrames === 0 || frame + 1 === frameCount) judge(segment, measured.end(), onMeasured)
    }
    return { decoded, compare }
  }
}
