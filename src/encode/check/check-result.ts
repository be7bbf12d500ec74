import { randomInt } from 'node:crypto'
import { audioInit } from '../../mp4/aac.ts'
import { encoderFingerprint } from '../encoder.ts'
import type { Plan } from '../plan.ts'
import { checkPicture } from './check-picture.ts'
import { checkSound, tracksOfFile } from './check-sound.ts'
import { nameOf, type OnMeasured } from './compare.ts'
import { adoptParameters } from './parameter-sets.ts'
import { Refusal } from './refusal.ts'
import type { Result, ResultSegment } from './result.ts'
import { checkAudioSegment, checkVideoSegment, maxAudioSegmentBytes, maxVideoSegmentBytes } from './structure.ts'
import { findVideoInits } from './video-inits.ts'

/** `inits`: this server's own, which are published; of another encoder with its parameter sets. */
type Verdict = { ok: true; inits: ReadonlyMap<number, Buffer> } | { ok: false; reason: string }

/** Of a trusted worker's segments one in so many is compared with the source. */
const TRUSTED_SAMPLE = 20

/**
 * Checks what another machine has made of a chunk, before it is published: that it is complete, that its boxes and NAL units are those that our
 * encoder writes, and that it shows and sounds as the source does.
 * @param options.compared which segments are compared with the source; by default all
 * @returns the reason of a refusal as a phrase for the log
 * @throws what says nothing of the result: the source or the sandbox fails, or ffmpeg was killed; InexactSeek where the source does not decode cleanly
 *   after a seek; the signal's reason
 */
export async function checkResult(
  result: Result,
  options: { compared?: readonly ResultSegment[]; onMeasured?: OnMeasured } = {},
): Promise<Verdict> {
  const { compared = result.segments, onMeasured = () => {} } = options
  try {
    const inits = await checkStructure(result)
    const checked = { ...result, inits }
    if (compared.length > 0) await (result.chunk.kind === 'video' ? checkPicture : checkSound)(checked, compared, onMeasured)
    return { ok: true, inits }
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.message }
    throw error
  }
}

/** Those of a trusted worker's segments that are compared. To be called when all are there: it does not know which. */
export function drawSample<T>(segments: readonly T[]): T[] {
  return segments.filter(() => randomInt(TRUSTED_SAMPLE) === 0)
}

/** What a chunk's result must consist of. */
type ExpectedSegment = { maxBytes: number; check(bytes: Buffer, number: number): void }

/** The first part of the check. @returns the init segments to be published @throws Refusal */
export async function checkStructure(result: Omit<Result, 'source'>): Promise<ReadonlyMap<number, Buffer>> {
  const { chunk, plan, inits, segments } = result
  const expected = expectedRenditions(plan, chunk.kind)
  const ownInits = await findInits(result)
  if (inits.size !== expected.size) throw new Refusal(`${inits.size} init segments instead of ${expected.size}`)
  const isOtherEncoder = result.encoder !== undefined && result.encoder !== encoderFingerprint(result.sandbox)
  const published = new Map<number, Buffer>()
  for (const [renditionId, own] of ownInits) {
    const init = inits.get(renditionId)
    const adopted = init && isOtherEncoder && chunk.kind === 'video' ? adoptParameters(own, init) : own
    if (!init || !adopted || (!isOtherEncoder && !init.equals(own)))
      throw new Refusal(`rendition ${renditionId} has another init segment than the server’s encoder makes`)
    published.set(renditionId, adopted)
  }
  const numbers = Array.from({ length: chunk.segmentCount }, (_, index) => chunk.firstSegment + index)
  const names = new Set(segments.map(nameOf))
  const missing = [...expected.keys()]
    .flatMap((renditionId) => numbers.map((number) => nameOf({ renditionId, number })))
    .filter((name) => !names.has(name))
  if (missing.length > 0) throw new Refusal(`${missing[0]} is missing`)
  if (segments.length !== expected.size * numbers.length) throw new Refusal('there are more segments than the chunk has')
  for (const segment of segments) await checkSegment(segment, expected.get(segment.renditionId))
  return published
}

async function checkSegment(segment: ResultSegment, expected: ExpectedSegment | undefined): Promise<void> {
  if (!expected) throw new Refusal(`${nameOf(segment)} is of no rendition of the chunk`)
  const { sizeBytes } = segment
  if (sizeBytes > expected.maxBytes)
    throw new Refusal(`${nameOf(segment)} has ${sizeBytes} bytes, of at most ${expected.maxBytes}`)
  try {
    expected.check(await segment.read(), segment.number)
  } catch (error) {
    if (error instanceof Refusal || error instanceof RangeError) throw new Refusal(`${nameOf(segment)}: ${error.message}`)
    throw error
  }
}

/** Of each rendition of a chunk. */
export function expectedRenditions(plan: Plan, kind: Result['chunk']['kind']): Map<number, ExpectedSegment> {
  if (kind === 'audio')
    return new Map(
      tracksOfFile(plan).map((track) => [
        track.renditionId,
        { maxBytes: maxAudioSegmentBytes(track), check: (bytes, number) => checkAudioSegment(bytes, track, number) },
      ]),
    )
  const { videoTrack } = plan
  return new Map(
    videoTrack?.renditions.map((rendition) => [
      rendition.id,
      {
        maxBytes: maxVideoSegmentBytes(videoTrack, rendition),
        check: (bytes, number) => checkVideoSegment(bytes, videoTrack, number),
      },
    ]),
  )
}

/** The init segments that this server's encoder makes. */
async function findInits({ sandbox, plan, chunk, signal }: Omit<Result, 'source'>): Promise<ReadonlyMap<number, Buffer>> {
  if (chunk.kind === 'audio') return new Map(tracksOfFile(plan).map((track) => [track.renditionId, audioInit(track.bitrateBps)]))
  if (!plan.videoTrack) throw new Error('the plan has no video track')
  return findVideoInits(sandbox, plan.videoTrack, signal)
}
