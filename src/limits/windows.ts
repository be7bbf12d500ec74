/** A window of limits, in seconds. */
export const WINDOW_S = 60

/** Windows kept for one limit. Beyond it old ones are forgotten, a ban never. */
const MOST_WINDOWS = 20_000

/** The calls of one second. `all` counts refused ones, too. */
type Slice = { atS: number; passed: number; all: number }
type Window = { slices: Slice[]; passed: number; all: number }

/** What a call found: the last minute with this call in it. */
export type Found = {
  passed: boolean
  /** Calls of the window, passed and refused. */
  all: number
  /** Below 0 by a part of a call where parts were given back. */
  remaining: number
  /** Till calls leave the window: as many as the next one needs when this one was refused, else the oldest. */
  waitS: number
  /** When the oldest call leaves. */
  endsAtS: number
}

export type Windows = ReturnType<typeof createWindows>

/**
 * Counts calls of the last minute, by subject. The minute slides by the second, so that two bursts around no edge are twice the
 * limit (R17). In memory, bounded, without timers; `nowS` must not go back.
 */
export function createWindows(nowS: () => number) {
  const windows = new Map<string, Window>()
  let round = windows.entries()

  /** Goes on by one window, round and round; forgets it when it is over, or when there are too many. */
  function tidy(): void {
    let next = round.next()
    if (next.done) {
      round = windows.entries()
      next = round.next()
    }
    if (next.done) return
    const [subject, { slices }] = next.value
    const isOver = (slices.at(-1)?.atS ?? 0) + WINDOW_S <= nowS()
    if (isOver || windows.size >= MOST_WINDOWS) windows.delete(subject)
  }

  function windowOf(subject: string): Window {
    const known = windows.get(subject)
    if (known) {
      dropOld(known, nowS())
      return known
    }
    // Two for each new one, so that what is over goes without a timer.
    tidy()
    tidy()
    const window = { slices: [], passed: 0, all: 0 }
    windows.set(subject, window)
    return window
  }

  return {
    take(subject: string, limit: number): Found {
      const window = windowOf(subject)
      const slice = sliceAt(window, nowS())
      // Not `+ 1 <=`: parts of calls were given back, and the last part of a limit is a call, too.
      const passed = window.passed < limit - ROUNDING
      slice.all += 1
      window.all += 1
      if (passed) {
        slice.passed += 1
        window.passed += 1
      }
      const oldestS = window.slices[0]?.atS ?? nowS()
      return {
        passed,
        all: window.all,
        remaining: limit - window.passed,
        waitS: (passed ? oldestS : lastNeeded(window, limit)) + WINDOW_S - nowS(),
        endsAtS: oldestS + WINDOW_S,
      }
    },
    /** Takes back a part of the call that was just counted. */
    giveBack(subject: string, part: number): void {
      const window = windows.get(subject)
      const slice = window?.slices.at(-1)
      if (!window || !slice) return
      const passed = Math.min(part, slice.passed)
      const all = Math.min(part, slice.all)
      slice.passed -= passed
      window.passed -= passed
      slice.all -= all
      window.all -= all
    },
    /** Forgets the refused calls of the last minute; what passed in it still counts. */
    pardon(subject: string): void {
      const window = windows.get(subject)
      if (!window) return
      for (const slice of window.slices) slice.all = slice.passed
      window.all = window.passed
    },
    forget(subject: string): void {
      windows.delete(subject)
    },
  }
}

/** Parts of calls that were given back do not add up to whole numbers. */
const ROUNDING = 1e-6

function dropOld(window: Window, nowS: number): void {
  for (let oldest = window.slices[0]; oldest && oldest.atS + WINDOW_S <= nowS; oldest = window.slices[0]) {
    window.slices.shift()
    window.passed -= oldest.passed
    window.all -= oldest.all
  }
}

function sliceAt(window: Window, nowS: number): Slice {
  const newest = window.slices.at(-1)
  if (newest && newest.atS >= nowS) return newest
  const slice = { atS: nowS, passed: 0, all: 0 }
  window.slices.push(slice)
  return slice
}

/** The second of the last call that must leave before the next one passes. */
function lastNeeded(window: Window, limit: number): number {
  let tooMany = window.passed - limit
  for (const { atS, passed } of window.slices) {
    tooMany -= passed
    if (tooMany < -ROUNDING) return atS
  }
  return window.slices.at(-1)?.atS ?? 0
}
