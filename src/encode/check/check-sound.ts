import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../../mp4/aac.ts'
import { decodeAudioTrack } from '../audio-chunk.ts'
import { AAC_FRAMES_PER_SEGMENT, type AudioTrackPlan, audioTracksOf, type Plan } from '../plan.ts'
import { runAll } from '../run-all.ts'
import { compareFromAnySeek, expectEnd, ignoreInexactSeek, initOf, judge, nameOf, type OnMeasured, spanOf } from './compare.ts'
import { decodeSegments } from './decoded.ts'
import { Refusal } from './refusal.ts'
import type { Result, ResultSegment } from './result.ts'
import { measureSound } from './sound-difference.ts'

/** Two channels of 16 bits. */
const FRAME_BYTES = AAC_FRAME_SAMPLES * 4

/** Compares the sound of these segments with the source's, each track of the file by itself. @throws as `checkPicture` does */
export async function checkSound(result: Result, segments: readonly ResultSegment[], onMeasured: OnMeasured): Promise<void> {
  for (const track of tracksOfFile(result.plan)) {
    const ofTrack = segments.filter(({ renditionId }) => renditionId === track.renditionId)
    if (ofTrack.length > 0) await checkTrack(result, track, ofTrack, onMeasured)
  }
}

/** Added tracks, which are files of their own, are encoded by this server alone. */
export function tracksOfFile(plan: Plan): AudioTrackPlan[] {
  return audioTracksOf(plan).filter(({ dub }) => dub === undefined)
}

async function checkTrack(
  result: Result,
  track: AudioTrackPlan,
  segments: readonly ResultSegment[],
  onMeasured: OnMeasured,
): Promise<void> {
  const { sandbox, plan, source, signal } = result
  const gainDb = await result.findGain?.(track, source)
  const inOrder = segments.toSorted((a, b) => a.number - b.number)
  const byNumber = new Map(inOrder.map((segment) => [segment.number, segment]))
  const span = spanOf(result, segments)
  const output = {
    args: ['-map', '0:a:0', '-f', 's16le'],
    blockBytes: FRAME_BYTES,
    lengthS: (span.segmentCount * AAC_FRAMES_PER_SEGMENT * AAC_FRAME_SAMPLES) / AAC_RATE_HZ,
  }
  await compareFromAnySeek(result, async (leadS) => {
    const decoded = decodeSegments(sandbox, { init: initOf(result, track.renditionId), segments: inOrder }, output)
    let compared = 0
    async function compare(number: number, expected: Buffer): Promise<void> {
      const segment = byNumber.get(number)
      if (!segment) return
      const found = await take(decoded.next, expected.length)
      if (found.length < expected.length) throw new Refusal(`${nameOf(segment)} has fewer frames than it says`)
      // A decoder mixes each frame with the one before: the first is right only after its neighbor.
      const from = byNumber.has(number - 1) ? 0 : FRAME_BYTES
      judge(segment, await measureSound(expected.subarray(from), found.subarray(from)), onMeasured)
      compared++
    }
    await runAll(signal, [
      decoded.run,
      async (signal) => {
        const request = { sandbox, source, plan, gainDb, chunk: { ...span, leadS }, signal }
        await decodeAudioTrack(request, track, compare).catch(ignoreInexactSeek(() => compared === inOrder.length))
        await expectEnd(decoded)
      },
    ])
  })
}

async function take(next: () => Promise<Buffer | undefined>, sizeBytes: number): Promise<Buffer> {
  const blocks: Buffer[] = []
  for (let taken = 0; taken < sizeBytes; ) {
    const block = await next()
    if (!block) break
    blocks.push(block)
    taken += block.length
  }
  return Buffer.concat(blocks)
}
