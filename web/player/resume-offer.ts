import type { PlayerElements } from './elements.ts'
import { message } from './language.ts'

/** For how long it shows while the video plays. */
const OFFERED_MS = 10_000

/** Says that the video resumes, and offers its beginning instead: until the viewer has chosen, seeks, or has watched on for a while. */
export function offerBeginning(
  { controller, video, bigPlay }: PlayerElements,
  resumeAtS: number,
  startOver: () => void,
  signal: AbortSignal,
): void {
  const offer = document.createElement('div')
  const label = document.createElement('span')
  const button = document.createElement('button')
  const life = new AbortController()
  offer.className = 'resume'
  offer.slot = 'centered-chrome'
  offer.setAttribute('noautohide', '')
  label.textContent = message('resumes-at', { time: formatTime(resumeAtS) })
  button.type = 'button'
  button.textContent = message('start-over')
  offer.append(label, button)
  bigPlay.after(offer)

  const on = (type: string, listener: () => void) => video.addEventListener(type, listener, { signal: life.signal })
  let timer: ReturnType<typeof setTimeout> | undefined
  button.addEventListener('click', () => {
    end()
    controller.focus({ preventScroll: true })
    startOver()
  })
  on('playing', () => {
    timer ??= setTimeout(end, OFFERED_MS)
  })
  on('seeking', () => timer !== undefined && end())
  on('ended', end)
  signal.addEventListener('abort', end, { signal: life.signal })

  function end() {
    if (offer.contains(document.activeElement)) controller.focus({ preventScroll: true })
    clearTimeout(timer)
    life.abort()
    offer.remove()
  }
}

/** As players show it: 12:04, 1:02:03. */
export function formatTime(timeS: number): string {
  const [hours, minutes, seconds] = [Math.floor(timeS / 3600), Math.floor(timeS / 60) % 60, Math.floor(timeS) % 60]
  const pad = (part: number) => String(part).padStart(2, '0')
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(seconds)}` : `${minutes}:${pad(seconds)}`
}
