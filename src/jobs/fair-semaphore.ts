import { Failure } from '../errors.ts'

/** Does a piece of work in its account's turn. @throws Failure `unavailable` when as much of the account waits as may */
export type FairSemaphore = <T>(accountId: string, work: () => Promise<T>) => Promise<T>

type Line = { busy: number; waiting: (() => void)[] }

/**
 * Lets so many pieces of work go on at once, in all and of one account. The others wait, and accounts take turns: nobody waits for
 * another's many.
 * @param line how much of one account may wait, and what is told of more; without it all may, which somebody else bounds then
 */
export function createFairSemaphore(options: {
  places: number
  placesOfOne: number
  line?: { longest: number; refusal: string }
}): FairSemaphore {
  const { longest, refusal } = options.line ?? { longest: Number.POSITIVE_INFINITY, refusal: '' }
  /** By account; whose work has just ended comes last. */
  const lines = new Map<string, Line>()
  let busy = 0

  const hasPlaceFor = (line: Line) => busy < options.places && line.busy < options.placesOfOne

  function begin(line: Line): void {
    line.busy++
    busy++
  }

  function end(accountId: string, line: Line): void {
    line.busy--
    busy--
    lines.delete(accountId)
    if (line.busy > 0 || line.waiting.length > 0) lines.set(accountId, line)
    const ready = [...lines.values()].filter((other) => other.waiting.length > 0 && hasPlaceFor(other))
    const [next] = ready.toSorted((a, b) => a.busy - b.busy)
    if (!next) return
    begin(next)
    next.waiting.shift()?.()
  }

  return async function inTurn(accountId, work) {
    const line = lines.get(accountId) ?? { busy: 0, waiting: [] }
    if (!hasPlaceFor(line) && line.waiting.length >= longest) throw new Failure('unavailable', refusal)
    lines.set(accountId, line)
    if (hasPlaceFor(line)) begin(line)
    else await new Promise<void>((resolve) => line.waiting.push(resolve)) // takes the place of one that is done
    try {
      return await work()
    } finally {
      end(accountId, line)
    }
  }
}
