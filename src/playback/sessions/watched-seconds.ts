import { MAX_SPEED } from '../keys/key-budget.ts'
import { hasWindow, withWindow } from '../keys/window-set.ts'
import { LEASE_S } from '../lease.ts'

// Which seconds of a video a session watched, as far as the server can know: from its beats and the keys that it was given.

/** A beat that was accepted, and when. */
export type TimedBeat = { state: 'playing' | 'stalled' | 'paused' | 'ended'; positionS: number; rate: number; atS: number }

/** What is kept of a session to count what it watches. */
export type WatchedCounter = {
  last: TimedBeat | undefined
  /** How far its beats are ahead of what was possible. */
  leadS: number
  /** Where the part begins that has been played without a gap and whose seconds are not all counted. */
  playedFromS: number | undefined
  /** The key windows that were released to it: window-set.ts. */
  windows: Buffer
}

/** Beats arrive a little earlier or later than they were sent. This much may be gained once, not with each beat. */
const MAX_LEAD_S = 2
/** A video that was played from here was played from its beginning: the first beat is sent when the picture moves. */
const BEGINNING_S = 0.5

/** @param windows what is stored of the session; not changed */
export function newWatchedCounter(windows: Buffer | null): WatchedCounter {
  return { last: undefined, leadS: 0, playedFromS: undefined, windows: Buffer.from(windows ?? []) }
}

export function recordWindow(watched: WatchedCounter, window: number): void {
  watched.windows = withWindow(watched.windows, window)
}

/** Seconds from `fromS` up to, not including, `toS`. */
type Span = { fromS: number; toS: number }

/**
 * The whole seconds that a beat shows to be watched. A second counts when it lies between two beats at most one lease apart, while
 * the video played, when the position moved no faster than rate × time, and in a key window that was released to this session. So
 * what a page claims never counts by itself.
 * @param windowS how long a key window is
 */
export function countWatched(watched: WatchedCounter, beat: TimedBeat, windowS: number): Span[] {
  const { last } = watched
  watched.last = beat
  if (!last || !playedBetween(watched, last, beat)) {
    // A pause leaves the position where it is: what was played before and what is played after it join.
    if (beat.positionS !== last?.positionS) watched.playedFromS = undefined
    return []
  }
  const fromS = watched.playedFromS ?? (last.positionS < BEGINNING_S ? 0 : last.positionS)
  watched.playedFromS = Math.max(fromS, Math.floor(beat.positionS))
  return releasedSpans(watched, { fromS, toS: beat.positionS }, windowS)
    .map((span) => ({ fromS: Math.ceil(span.fromS), toS: Math.floor(span.toS) }))
    .filter((span) => span.fromS < span.toS)
}

function playedBetween(watched: WatchedCounter, last: TimedBeat, beat: TimedBeat): boolean {
  const passedS = beat.atS - last.atS
  const possibleS = Math.min(Math.max(last.rate, beat.rate, 0), MAX_SPEED) * Math.min(passedS, LEASE_S)
  const movedS = beat.positionS - last.positionS
  const wasPlaying = last.state === 'playing' || (last.state === 'stalled' && beat.state === 'playing')
  const leadS = Math.max(0, watched.leadS + movedS - possibleS)
  const isPlayed = wasPlaying && passedS <= LEASE_S && movedS > 0 && leadS <= MAX_LEAD_S
  watched.leadS = isPlayed ? leadS : Math.max(0, watched.leadS - possibleS)
  return isPlayed
}

/** The parts of a span that lie in released windows. */
function releasedSpans(watched: WatchedCounter, { fromS, toS }: Span, windowS: number): Span[] {
  const spans: Span[] = []
  for (let window = Math.floor(fromS / windowS); window * windowS < toS; window++) {
    if (!hasWindow(watched.windows, window)) continue
    const part = { fromS: Math.max(fromS, window * windowS), toS: Math.min(toS, (window + 1) * windowS) }
    const before = spans.at(-1)
    if (before?.toS === part.fromS) before.toS = part.toS
    else spans.push(part)
  }
  return spans
}
