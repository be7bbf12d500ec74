import type { PlayerElements } from './elements.ts'
import { message } from './language.ts'
import type { PublicMeta } from './public-meta.ts'

/** For how long before the end it shows. */
const LAST_S = 10

type NextLesson = {
  meta: Promise<PublicMeta>
  /** Asks the page around for the lesson. */
  choose(): void
  /** Whether a page is there to be asked. */
  hasPage(): boolean
}

/** A card in the last seconds of the video that leads to the next lesson; it does nothing by itself, and a closed one does not come back. */
export function showNextLesson({ controller, video, bigPlay }: PlayerElements, { meta, choose, hasPage }: NextLesson): void {
  const card = document.createElement('section')
  const text = document.createElement('p')
  const title = document.createElement('strong')
  const play = button('play-next', () => {
    play.disabled = true
    choose()
    setTimeout(() => (play.disabled = false), ASK_AGAIN_MS)
  })
  const close = button('close', () => {
    life.abort()
    leave()
    card.remove()
  })
  const life = new AbortController()
  card.className = 'next-lesson'
  card.slot = 'centered-chrome'
  card.setAttribute('noautohide', '')
  card.hidden = true
  text.setAttribute('role', 'status') // there, and empty, before it has something to announce
  title.dir = 'auto'
  card.append(text, play, close)
  bigPlay.after(card)
  void meta.then(({ title: name = '', posterUrl }) => {
    title.textContent = name
    if (posterUrl === undefined) return
    const image = new Image()
    image.alt = ''
    image.src = posterUrl
    card.prepend(image)
  })
  for (const type of ['timeupdate', 'seeked', 'ended', 'durationchange'])
    video.addEventListener(type, show, { signal: life.signal })

  function show() {
    const isLast = video.duration - video.currentTime <= Math.min(LAST_S, video.duration / 2)
    const isShown = hasPage() && video.readyState > 0 && isLast
    if (card.hidden !== isShown) return
    if (!isShown) leave()
    card.hidden = !isShown
    const label = document.createElement('span')
    label.textContent = message('next-lesson')
    text.replaceChildren(...(isShown ? [label, ' ', title] : []))
  }

  function leave() {
    if (card.contains(document.activeElement)) controller.focus({ preventScroll: true })
  }
}

/** The page may not have answered. */
const ASK_AGAIN_MS = 3000

function button(key: 'play-next' | 'close', onClick: () => void): HTMLButtonElement {
  const made = document.createElement('button')
  made.type = 'button'
  made.className = key
  made.textContent = message(key)
  made.addEventListener('click', onClick)
  return made
}
