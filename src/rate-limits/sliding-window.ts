/** A window of limits of calls. */
export const WINDOW_S = 60

/** A window with so many times its limit is exceeded by far; such windows are counted for ten minutes. */
const FAR_EXCESS = 2
const EXCESS_KEPT_S = 600
const NEVER = Number.NEGATIVE_INFINITY

/** Windows kept for one limit. Beyond it old ones are forgotten, a ban never. */
const MAX_WINDOWS = 20_000

/** The calls of one second, or of another `sliceS`, each by its weight. `all` counts refused ones, too. */
type Slice = { atS: number; passed: number; all: number }
/** `exceededAtS`: when windows that do not overlap were exceeded by far, the newest last. */
type Window = { slices: Slice[]; passed: number; all: number; exceededAtS: number[] }

/** What a call found: the last minute with this call in it. */
type Found = {
  passed: boolean
  /** Calls of the window, passed and refused. */
  all: number
  remaining: number
  /**
   * After a call that passed: until the oldest call leaves the window. After a refused one: until there is room for it and for the calls
   * that were refused before it, so that clients that obey Retry-After do not all come back at the same time.
   */
  waitS: number
  /** Windows of the last ten minutes, apart from each other, that were exceeded by far. Counted when this call's window is one of them, else 0. */
  excesses: number
  /** When the oldest call leaves. */
  endsAtS: number
}

type WindowLength = { windowS: number; sliceS: number }

/** Calls of one subject in one slice. */
type Count = { subject: string; atS: number; passed: number; all: number }

/** The counts of one limit as several servers share them. */
export type SharedWindows = {
  windowS: number
  /** What was counted here since the last call; the first time all that is in memory. From then on it is kept until the next call. */
  takeCounts(): Count[]
  /** Adds what was counted elsewhere. */
  addCount(count: Count): void
}

type SlidingWindows = SharedWindows & {
  /** @param weight how much of a call this one counts: with doubled limits, half */
  take(subject: string, limit: number, weight?: number): Found
  /** Whether the next call would be refused. Counts nothing. */
  isExhausted(subject: string, limit: number): boolean
  /** Takes back the call that was just counted. */
  refund(subject: string): void
  /** Forgets the refused calls of the last minute; those that passed still count. */
  pardon(subject: string): void
  forget(subject: string): void
}

/**
 * Counts calls of the last minute, by subject. The minute slides by the second, so that no two bursts within a minute are twice
 * the limit (R17). In memory, bounded, without timers; `nowS` must not go back.
 * @param length of the window and of its slices, by which it slides
 */
export function createSlidingWindows(
  nowS: () => number,
  { windowS, sliceS }: WindowLength = { windowS: WINDOW_S, sliceS: 1 },
): SlidingWindows {
  const windows = new Map<string, Window>()
  let round = windows.entries()
  /** By subject and slice; undefined: counts are not shared. */
  let unshared: Map<string, Count> | undefined

  /** Looks at the next window, in turns; forgets it when it is over, or when there are too many. */
  function tidy(): void {
    let next = round.next()
    if (next.done) {
      round = windows.entries()
      next = round.next()
    }
    if (next.done) return
    const [subject, { slices, exceededAtS }] = next.value
    const isOver = (slices.at(-1)?.atS ?? 0) + windowS <= nowS() && (exceededAtS.at(-1) ?? NEVER) + EXCESS_KEPT_S <= nowS()
    if (isOver || windows.size >= MAX_WINDOWS) windows.delete(subject)
  }

  function getWindow(subject: string): Window {
    const known = windows.get(subject)
    if (known) {
      dropOld(known, nowS() - windowS)
      return known
    }
    // Two for each new window, so that old ones are removed without a timer.
    tidy()
    tidy()
    const window = { slices: [], passed: 0, all: 0, exceededAtS: [] }
    windows.set(subject, window)
    return window
  }

  function noteCount(count: Count): void {
    if (!unshared) return
    const name = `${count.atS} ${count.subject}`
    const known = unshared.get(name)
    if (!known) unshared.set(name, count)
    else {
      known.passed += count.passed
      known.all += count.all
    }
  }

  return {
    windowS,
    takeCounts() {
      const counts = unshared
        ? [...unshared.values()]
        : [...windows].flatMap(([subject, { slices }]) => slices.map((slice) => ({ subject, ...slice })))
      unshared = new Map()
      return counts
    },
    addCount({ subject, atS, passed, all }) {
      if (atS <= nowS() - windowS) return
      const window = getWindow(subject)
      const slice = window.slices.find((known) => known.atS === atS) ?? insertSlice(window, atS)
      slice.passed += passed
      window.passed += passed
      slice.all += all
      window.all += all
    },
    take(subject, limit, weight = 1) {
      const window = getWindow(subject)
      const slice = sliceAt(window, nowS() - (nowS() % sliceS))
      // Not `+ weight <=`: the last part of a limit is a call, too.
      const passed = window.passed < limit - ROUNDING
      slice.all += weight
      window.all += weight
      if (passed) {
        slice.passed += weight
        window.passed += weight
      }
      noteCount({ subject, atS: slice.atS, passed: passed ? weight : 0, all: weight })
      const oldestS = window.slices[0]?.atS ?? nowS()
      return {
        passed,
        all: window.all,
        remaining: limit - window.passed,
        waitS: (passed ? oldestS : lastNeeded(window, limit, weight)) + windowS - nowS(),
        endsAtS: oldestS + windowS,
        excesses: window.all < FAR_EXCESS * limit ? 0 : countExcesses(window, nowS()),
      }
    },
    isExhausted(subject, limit) {
      const window = windows.get(subject)
      if (!window) return false
      dropOld(window, nowS() - windowS)
      return window.passed >= limit - ROUNDING
    },
    refund(subject) {
      const window = windows.get(subject)
      const slice = window?.slices.at(-1)
      if (!window || !slice) return
      const passed = Math.min(1, slice.passed)
      const all = Math.min(1, slice.all)
      slice.passed -= passed
      window.passed -= passed
      slice.all -= all
      window.all -= all
      noteCount({ subject, atS: slice.atS, passed: -passed, all: -all })
    },
    pardon(subject) {
      const window = windows.get(subject)
      if (!window) return
      for (const slice of window.slices) slice.all = slice.passed
      window.all = window.passed
      window.exceededAtS = []
    },
    forget(subject) {
      windows.delete(subject)
    },
  }
}

/** Weights do not add up to whole numbers. */
const ROUNDING = 1e-6

function dropOld(window: Window, untilS: number): void {
  for (let oldest = window.slices[0]; oldest && oldest.atS <= untilS; oldest = window.slices[0]) {
    window.slices.shift()
    window.passed -= oldest.passed
    window.all -= oldest.all
  }
}

function sliceAt(window: Window, atS: number): Slice {
  const newest = window.slices.at(-1)
  if (newest && newest.atS >= atS) return newest
  const slice = { atS, passed: 0, all: 0 }
  window.slices.push(slice)
  return slice
}

function insertSlice({ slices }: Window, atS: number): Slice {
  const slice = { atS, passed: 0, all: 0 }
  const later = slices.findIndex((known) => known.atS > atS)
  slices.splice(later < 0 ? slices.length : later, 0, slice)
  return slice
}

/** The second of the last call that must leave before there is room for the call that was just refused, and for those refused before it. */
function lastNeeded(window: Window, limit: number, weight: number): number {
  const refusedBefore = window.all - window.passed - weight
  let tooMany = window.passed - limit + refusedBefore
  for (const { atS, passed } of window.slices) {
    tooMany -= passed
    if (tooMany < -ROUNDING) return atS
  }
  return window.slices.at(-1)?.atS ?? 0
}

function countExcesses(window: Window, nowS: number): number {
  const kept = window.exceededAtS.filter((atS) => atS + EXCESS_KEPT_S > nowS)
  if ((kept.at(-1) ?? NEVER) + WINDOW_S <= nowS) kept.push(nowS)
  window.exceededAtS = kept
  return kept.length
}
