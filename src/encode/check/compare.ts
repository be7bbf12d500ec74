import { LEADS_S } from '../chunk.ts'
import { InexactSeek } from '../media-failure.ts'
import type { Decoded } from './decoded.ts'
import { Refusal } from './refusal.ts'
import type { Result, ResultSegment } from './result.ts'

/** Above this a segment is refused: `picture-difference.ts` and `sound-difference.ts` count in parts of what is tolerated. */
const MAX_DIFFERENCE = 1

/** Called with how far each segment is from the source; above 1 it is refused. */
export type OnMeasured = (segment: ResultSegment, difference: number) => void

/**
 * Compares a result with what the source decodes to, again from earlier in the source when they differ or the source does not decode cleanly:
 * after a seek it may come out with other frames, and the result be right.
 * @throws what the first attempt threw that found a difference, or else the last one
 */
export async function compareFromAnySeek({ plan, chunk }: Result, compareFrom: (leadS: number) => Promise<void>): Promise<void> {
  const startsWithSeek = !chunk.decodesFromStart && (chunk.firstSegment > 0 || plan.cut !== undefined)
  let failure: unknown
  for (const leadS of startsWithSeek ? LEADS_S : LEADS_S.slice(0, 1)) {
    try {
      return await compareFrom(leadS)
    } catch (error) {
      if (!(error instanceof Refusal) && !(error instanceof InexactSeek)) throw error
      failure = failure instanceof Refusal ? failure : error
    }
  }
  throw failure
}

/** The part of the chunk that has these segments. */
export function spanOf({ chunk }: Result, segments: readonly ResultSegment[]) {
  const numbers = segments.map(({ number }) => number)
  const firstSegment = Math.min(...numbers)
  return { ...chunk, firstSegment, segmentCount: Math.max(...numbers) - firstSegment + 1 }
}

/** A complaint of the source's decoder does not matter where all that it gave was the same as the result. */
export function ignoreInexactSeek(isAllCompared: () => boolean): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof InexactSeek) || !isAllCompared()) throw error
  }
}

/** @throws Refusal when a segment differs by too much */
export function judge(segment: ResultSegment, difference: number, onMeasured: OnMeasured): void {
  onMeasured(segment, difference)
  if (!(difference <= MAX_DIFFERENCE))
    throw new Refusal(
      `${nameOf(segment)} is not what the source is: it differs ${difference.toFixed(1)} times as much as an encode may`,
    )
}

export async function expectEnd(decoded: Decoded): Promise<void> {
  if (await decoded.next()) throw new Refusal('a segment decodes to more than it says')
}

export function initOf({ inits }: Result, renditionId: number): Buffer {
  const init = inits.get(renditionId)
  if (!init) throw new Refusal(`rendition ${renditionId} has no init segment`)
  return init
}

export function nameOf({ renditionId, number }: Pick<ResultSegment, 'renditionId' | 'number'>): string {
  return `segment ${number} of rendition ${renditionId}`
}
