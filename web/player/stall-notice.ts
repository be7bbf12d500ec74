import type { Waiting } from './refusals.ts'
import type { Screen } from './screen.ts'

/** How long the picture may be still without an explanation, where requests wait, and where all that is missing is still on its way. */
const EXPLAIN_AFTER_MS = 2000
const SLOW_AFTER_MS = 3000
const SLOW: Waiting = { code: 'slow-network' }

export type StallNotice = {
  isStalled(): boolean
  stalled(): void
  playing(): void
  /** @param waiting undefined: the request of this address waits no more */
  setWaiting(url: string, waiting: Waiting | undefined): void
  /** The highest speed at which the keys that are held back would come in time. */
  maxRate(): number
  update(): void
}

/** Explains a stalled picture to the viewer, once it has been still for a while. */
export function createStallNotice(screen: Screen, video: HTMLVideoElement, hasStarted: () => boolean): StallNotice {
  const waits = new Map<string, Waiting>()
  let stalledSinceMs: number | undefined

  return {
    isStalled: () => stalledSinceMs !== undefined,
    stalled() {
      stalledSinceMs ??= performance.now()
    },
    playing() {
      stalledSinceMs = undefined
    },
    setWaiting(url, waiting) {
      if (waiting) waits.set(url, waiting)
      else waits.delete(url)
    },
    maxRate() {
      return Math.min(...[...waits.values()].map(({ maxRate }) => maxRate ?? Number.POSITIVE_INFINITY))
    },
    update() {
      const { shown } = screen
      if (shown.state !== 'playing' && !(shown.state === 'ready' && hasStarted())) return
      const stalledMs = stalledSinceMs === undefined ? 0 : performance.now() - stalledSinceMs
      const [first] = waits.values()
      const reason = first ?? (stalledMs > SLOW_AFTER_MS ? SLOW : undefined)
      const note = stalledMs > EXPLAIN_AFTER_MS && !video.paused ? reason : undefined
      if (shown.state === 'ready' && !note) return
      const before = shown.state === 'playing' ? shown : undefined
      if (before && before.note?.code === note?.code) return
      screen.show({ state: 'playing', ended: before?.ended, note })
    },
  }
}
