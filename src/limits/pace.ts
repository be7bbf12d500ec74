const PROOFS_PER_S = 20
const BURST = 60

/** What a playback session may ask yet: its true proofs count against itself, so a school behind one address watches in peace. */
export type Pace = { left: number; atMs: number }

export function newPace(nowMs: number): Pace {
  return { left: BURST, atMs: nowMs }
}

/** Counts a true proof: 20 a second, 60 at once. False: too many. `nowMs` is monotonic. */
export function keepsPace(pace: Pace, nowMs: number): boolean {
  pace.left = Math.min(BURST, pace.left + ((nowMs - pace.atMs) / 1000) * PROOFS_PER_S)
  pace.atMs = nowMs
  if (pace.left < 1) return false
  pace.left -= 1
  return true
}
