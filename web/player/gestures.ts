import { type PlayerElements, SKIP_S } from './elements.ts'
import type { ViewerAction } from './viewer-actions.ts'

const MAX_BETWEEN_TAPS_MS = 300

/**
 * A double click on the picture switches full screen. A double tap does so in its middle; on the left or right third it seeks, and so does
 * each further tap. Single clicks and taps are media-chrome's.
 */
export function listenToGestures(
  { controller, video, skipBack, skipAhead }: PlayerElements,
  run: (action: ViewerAction) => void,
): void {
  let pointerType = ''
  let last = { atMs: Number.NEGATIVE_INFINITY, third: 0 }
  const seek = (third: number) => run({ kind: 'seek-by', seconds: third * SKIP_S })
  skipBack.addEventListener('click', () => seek(-1))
  skipAhead.addEventListener('click', () => seek(1))
  if (controller.hasAttribute('gesturesdisabled')) return
  controller.addEventListener('pointerdown', (event) => {
    pointerType = event.pointerType
  })
  const isOnPicture = (event: Event) => event.target === video || event.target === controller
  // Of a double click, media-chrome plays or pauses twice, or once if both clicks come before the video has reported the first.
  let first = { isOnPicture: false, wasPaused: false }
  const noteFirst = (event: MouseEvent) => {
    if (event.detail === 1) first = { isOnPicture: isOnPicture(event), wasPaused: video.paused }
  }
  controller.addEventListener('click', noteFirst, { capture: true })
  controller.addEventListener('dblclick', (event) => {
    if (pointerType === 'touch' || !isOnPicture(event)) return
    if (first.isOnPicture && first.wasPaused) video.pause()
    else if (video.paused) video.play().catch(() => {}) // also where the first click was on a large button that has gone
    if (first.isOnPicture) run({ kind: 'toggle-fullscreen' })
  })
  controller.addEventListener('click', (event) => {
    if (pointerType !== 'touch' || !isOnPicture(event)) return
    const { left, width } = controller.getBoundingClientRect()
    const tap = { atMs: event.timeStamp, third: Math.floor((3 * (event.clientX - left)) / width) - 1 }
    const isDouble = tap.third === last.third && tap.atMs - last.atMs < MAX_BETWEEN_TAPS_MS
    last = tap
    if (!isDouble) return
    if (tap.third !== 0) return seek(tap.third)
    run({ kind: 'toggle-fullscreen' })
    last.atMs = Number.NEGATIVE_INFINITY // a third tap does not switch back
  })
}
