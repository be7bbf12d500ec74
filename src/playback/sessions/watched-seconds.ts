import { MAX_SPEED } from '../keys/key-budget.ts'
import { hasWindow, withWindow } from '../keys/window-set.ts'
import { LEASE_S } from '../lease.ts'

// Which seconds of a video a session watched, as far as the server can know: from its beats and the keys that it was given.

/** A beat that was accepted, and when. */
export type TimedBeat = { state: 'playing' | 'stalled' | 'paused' | 'ended'; positionS: number; rate: number; atS: number }

/** What is kept of a session to count what it watches. */
export type Watching = {
  last: TimedBeat | undefined
  /** How far its beats are ahead of what was possible. */
  leadS: number
  /** Where the part begins that has been played without a gap and whose seconds are not all counted. */
  playedFromS: number | undefined
  /** The key windows that were released to it: window-set.ts. */
  windows: Buffer
  /** Whether a window was released since they were saved. */
  hasNewWindow: boolean
}

/** Beats arrive a little earlier or later than they were sent. This much may be gained once, not with each beat. */
const MAX_LEAD_S = 2
/** A video that was played from here was played from its beginning: the first beat is sent when the picture moves. */
const BEGINNING_S = 0.5

export function newWatching(windows: Buffer | null): Watching {
  return { last: undefined, leadS: 0, playedFromS: undefined, windows: windows ?? Buffer.alloc(0), hasNewWindow: false }
}

export function recordWindow(watching: Watching, window: number): void {
  if (hasWindow(watching.windows, window)) return
  watching.windows = withWindow(watching.windows, window)
  watching.hasNewWindow = true
}

/** Seconds from `fromS` up to, not including, `toS`. */
export type Span = { fromS: number; toS: number }

/**
 * The whole seconds that a beat shows to be watched. A second counts when it lies between two beats at most one lease apart, while
 * the video played, when the position moved no faster than rate × time, and in a key window that was released to this session. So
 * what a page claims never counts by itself.
 * @param windowS how long a key window is
 */
export function countWatched(watching: Watching, beat: TimedBeat, windowS: number): Span[] {
  const { last } = watching
  watching.last = beat
  if (!last || !playedBetween(watching, last, beat)) {
    // A pause leaves the position where it is: what was played before and what is played after it join.
    if (beat.positionS !== last?.positionS) watching.playedFromS = undefined
    return []
  }
  const fromS = watching.playedFromS ?? (last.positionS < BEGINNING_S ? 0 : last.positionS)
  watching.playedFromS = Math.max(fromS, Math.floor(beat.positionS))
  return releasedSpans(watching, { fromS, toS: beat.positionS }, windowS)
    .map((span) => ({ fromS: Math.ceil(span.fromS), toS: Math.floor(span.toS) }))
    .filter((span) => span.fromS < span.toS)
}

function playedBetween(watching: Watching, last: TimedBeat, beat: TimedBeat): boolean {
  const passedS = beat.atS - last.atS
  const possibleS = Math.min(Math.max(last.rate, beat.rate, 0), MAX_SPEED) * Math.min(passedS, LEASE_S)
  const movedS = beat.positionS - last.positionS
  const wasPlaying = last.state === 'playing' || (last.state === 'stalled' && beat.state === 'playing')
  const leadS = Math.max(0, watching.leadS + movedS - possibleS)
  const isPlayed = wasPlaying && passedS <= LEASE_S && movedS > 0 && leadS <= MAX_LEAD_S
  watching.leadS = isPlayed ? leadS : Math.max(0, watching.leadS - possibleS)
  return isPlayed
}

/** The parts of a span that lie in released windows. */
function releasedSpans(watching: Watching, { fromS, toS }: Span, windowS: number): Span[] {
  const spans: Span[] = []
  for (let window = Math.floor(fromS / windowS); window * windowS < toS; window++) {
    if (!hasWindow(watching.windows, window)) continue
    const part = { fromS: Math.max(fromS, window * windowS), toS: Math.min(toS, (window + 1) * windowS) }
    const before = spans.at(-1)
    if (before?.toS === part.fromS) before.toS = part.toS
    else spans.push(part)
  }
  return spans
}
