import type { Captions } from './captions.ts'
import { onCloseRequest } from './close-request.ts'
import type { PlayerElements } from './elements.ts'
import { message, pluralMessage } from './language.ts'
import { formatTime } from './resume-offer.ts'
import { keepOnTop, showOnTop } from './top-layer.ts'
import { TRANSCRIPT_CSS } from './transcript-style.ts'

export type Transcript = {
  /** @param takesFocus whether the keyboard goes there, or back from there */
  show(isShown: boolean, takesFocus: boolean): void
  isOpen(): boolean
  /** Other captions were chosen, or their text has been loaded. */
  update(): void
}

type Line = { startS: number; text: string; folded: string; item: HTMLLIElement; button: HTMLButtonElement; words: HTMLElement }

/** Browsers round a seek. */
const ROUNDED_S = 0.01
/** Lines that a key for a page moves by. */
const PAGE_LINES = 10

const PANEL = `
  <div class="heading">
    <h2></h2>
    <select hidden></select>
    <button type="button" class="close"><svg viewBox="0 0 24 24" aria-hidden="true"><path fill="none" stroke="currentColor" stroke-width="2" d="m6 6 12 12M18 6 6 18"/></svg></button>
  </div>
  <input type="search" dir="auto" autocomplete="off" spellcheck="false" enterkeyhint="search">
  <p class="found" role="status"></p>
  <ol></ol>
  <button type="button" class="follow" hidden></button>`

/**
 * The text of a video's captions, next to the picture or over it: searchable, with the spoken line marked and kept in sight until the
 * viewer scrolls. A line that is chosen is sought.
 */
export function createTranscript(
  { controller, video }: Pick<PlayerElements, 'controller' | 'video'>,
  captions: Pick<Captions, 'list' | 'read' | 'beingRead'>,
  signal: AbortSignal,
): Transcript {
  const panel = createPanel()
  const one = <T extends HTMLElement>(selector: string): T => {
    const element = panel.querySelector<T>(selector)
    if (!element) throw new Error(`The transcript has no ${selector}`)
    return element
  }
  const [languages, search, found, list] = [
    one<HTMLSelectElement>('select'),
    one<HTMLInputElement>('input'),
    one('.found'),
    one('ol'),
  ]
  const follow = one<HTMLButtonElement>('.follow')
  const closeRequests = onCloseRequest(() => show(false, true))
  let lines: Line[] = []
  let current: Line | undefined
  /** Whether the spoken line is kept in sight. */
  let follows = true
  /** What the lines were made of. */
  let shownTrack: TextTrack | undefined
  let shownCues = -1
  let focusedBefore: Element | null = null

  one('h2').textContent = message('transcript')
  languages.ariaLabel = message('transcript.language')
  one('.close').ariaLabel = message('transcript.close')
  search.ariaLabel = message('transcript.search-label')
  search.placeholder = message('transcript.search')
  follow.textContent = message('transcript.follow')
  controller.insertBefore(panel, controller.querySelector('.panel'))
  keepOnTop([panel])
  one('.close').addEventListener('click', () => show(false, true))
  search.addEventListener('input', filter)
  languages.addEventListener('change', () => captions.read(Number(languages.value)))
  follow.addEventListener('click', () => {
    setFollows(true)
    ;(current?.button ?? search).focus({ preventScroll: true })
  })
  for (const type of ['wheel', 'touchmove', 'pointerdown'])
    list.addEventListener(type, (event) => (event.target === list || type !== 'pointerdown' ? setFollows(false) : undefined), {
      passive: true,
    })
  list.addEventListener('click', ({ target }) => {
    const line = lines.find(({ button }) => target instanceof Node && button.contains(target))
    if (line) seek(line)
  })
  panel.addEventListener('keydown', move)
  for (const type of ['timeupdate', 'seeking']) video.addEventListener(type, markCurrent, { signal })
  signal.addEventListener('abort', () => {
    show(false, false)
    panel.remove()
  })
  return { show, isOpen: () => !panel.hidden, update }

  function show(isShown: boolean, takesFocus: boolean) {
    if (isShown !== panel.hidden || (isShown && signal.aborted)) return
    if (isShown) focusedBefore = document.activeElement
    document.body.toggleAttribute('data-transcript', isShown)
    showOnTop(panel, isShown)
    captions.read(isShown)
    if (isShown) closeRequests.watch()
    else closeRequests.end()
    if (!isShown) search.value = ''
    update()
    setFollows(true)
    if (!takesFocus) return
    // On touch a focused field would bring up the keyboard, over the lines.
    const first = matchMedia('(pointer: coarse)').matches ? one('.close') : search
    const last = focusedBefore instanceof HTMLElement && focusedBefore.checkVisibility() ? focusedBefore : controller
    ;(isShown ? first : last).focus({ preventScroll: true })
  }

  function update() {
    if (panel.hidden) return
    const read = captions.beingRead()
    const cues = read?.track.cues?.length ?? 0
    showLanguages(read?.index)
    if (read?.track !== shownTrack || cues !== shownCues) {
      shownTrack = read?.track
      shownCues = cues
      lines = [...(read?.track.cues ?? [])].flatMap((cue) => (cue instanceof VTTCue ? createLine(cue) : []))
      for (const { item } of lines) item.lang = read?.track.language ?? ''
      list.replaceChildren(...lines.map(({ item }) => item))
      current = undefined
    }
    filter()
  }

  function showLanguages(chosen: number | undefined) {
    const offered = captions.list()
    languages.hidden = offered.length < 2
    languages.replaceChildren(...offered.map(({ label, index }) => new Option(label, String(index), false, index === chosen)))
  }

  /** Shows the lines that contain what is searched for. */
  function filter() {
    const wanted = fold(search.value.trim())
    let count = 0
    for (const line of lines) {
      const isFound = line.folded.includes(wanted)
      if (isFound) count++
      if (line.item.hidden === isFound) line.item.hidden = !isFound
      mark(line, isFound ? wanted : '')
    }
    const isWaiting = lines.length === 0 && video.played.length === 0
    if (lines.length === 0) say(isWaiting ? message('transcript.waiting') : message('transcript.empty'))
    else if (wanted === '') say('')
    else say(count === 0 ? message('transcript.not-found') : pluralMessage('transcript.found', count))
    markCurrent()
    setReachable(lines.find(({ item, button }) => !item.hidden && button.tabIndex === 0) ?? current)
    if (follows) showCurrent()
  }

  function say(text: string) {
    if (found.textContent !== text) found.textContent = text
    found.classList.toggle('note', lines.length === 0)
  }

  function markCurrent() {
    if (panel.hidden) return
    const spoken = findSpoken(lines, video.currentTime + ROUNDED_S)
    if (spoken === current) return
    current?.button.removeAttribute('aria-current')
    spoken?.button.setAttribute('aria-current', 'true')
    current = spoken
    if (!list.contains(document.activeElement)) setReachable(spoken)
    if (follows) showCurrent()
  }

  function setFollows(value: boolean) {
    follows = value
    follow.hidden = value || lines.length === 0
    if (value) showCurrent()
  }

  /** Scrolls the list alone: the page around must not move. Lines that were never drawn have guessed heights, so twice. */
  function showCurrent() {
    if (!current || current.item.hidden) return
    scrollTo(current)
    requestAnimationFrame(() => follows && current && scrollTo(current))
  }

  function scrollTo({ item }: Line) {
    const [outer, inner] = [list.getBoundingClientRect(), item.getBoundingClientRect()]
    list.scrollTop += inner.top - outer.top - (outer.height - inner.height) * 0.35
  }

  /** One line is reached by Tab, the others from there by arrows. */
  function setReachable(line: Line | undefined) {
    const chosen = line && !line.item.hidden ? line : lines.find(({ item }) => !item.hidden)
    for (const { button } of lines) if (button.tabIndex === 0 && button !== chosen?.button) button.tabIndex = -1
    if (chosen) chosen.button.tabIndex = 0
  }

  /** Before it is played, too; there 0 is where the video would start anyway, which may be where it resumes. */
  function seek(line: Line) {
    video.currentTime = Math.max(line.startS, 0.001)
    setReachable(line)
    setFollows(true)
  }

  function move(event: KeyboardEvent) {
    const { key, target } = event
    if (event.ctrlKey || event.altKey || event.metaKey) return
    if (key === 'Escape') {
      event.preventDefault()
      if (target === search && search.value !== '') {
        search.value = ''
        filter()
      } else show(false, true)
      return event.stopPropagation()
    }
    const visible = lines.filter(({ item }) => !item.hidden)
    if (target === search) {
      event.stopPropagation() // letters are no shortcuts here
      const [first] = visible
      if (key === 'Enter' && first) seek(first)
      if (key === 'ArrowDown') {
        event.preventDefault()
        list.querySelector<HTMLElement>('[tabindex="0"]')?.focus()
      }
      return
    }
    if (target === languages) return event.stopPropagation()
    const at = visible.findIndex(({ button }) => button === target)
    if (at < 0) return
    if (key === 'Enter' || key === ' ') return event.stopPropagation() // the line is clicked
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + PAGE_LINES,
      PageUp: at - PAGE_LINES,
      Home: 0,
      End: visible.length - 1,
    }[key]
    if (to === undefined) return
    event.preventDefault()
    event.stopPropagation()
    if (to < 0 && key === 'ArrowUp') return search.focus()
    const line = visible[Math.min(visible.length - 1, Math.max(0, to))]
    if (!line) return
    setFollows(false)
    setReachable(line)
    line.button.focus()
  }
}

function createPanel(): HTMLElement {
  const sheet = document.createElement('style')
  sheet.textContent = TRANSCRIPT_CSS
  document.head.append(sheet)
  const panel = document.createElement('aside')
  panel.className = 'transcript'
  panel.ariaLabel = message('transcript')
  panel.setAttribute('noautohide', '')
  panel.popover = 'manual'
  panel.hidden = true
  panel.innerHTML = PANEL
  return panel
}

function createLine(cue: VTTCue): Line[] {
  const text = readText(cue)
  if (text === '') return []
  const [item, button, time, words] = [
    document.createElement('li'),
    document.createElement('button'),
    document.createElement('span'),
    document.createElement('span'),
  ]
  button.type = 'button'
  button.tabIndex = -1
  button.dir = 'auto' // by the letters of the text: a time has none
  time.className = 'time'
  time.textContent = formatTime(cue.startTime)
  words.textContent = text
  button.append(time, ' ', words)
  item.append(button)
  return [{ startS: cue.startTime, text, folded: fold(text), item, button, words }]
}

/** Without markup, on one line; with the name of who speaks. */
function readText(cue: VTTCue): string {
  const [, speaker] = /^\s*<v(?:\.[^\s>]+)?\s+([^>]+)>/.exec(cue.text) ?? []
  const text = cue.getCueAsHTML().textContent?.replace(/\s+/g, ' ').trim() ?? ''
  return speaker && text ? `${speaker}: ${text}` : text
}

/** Without case and accents. */
function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
}

/** Marks each place where the line has the words, as far as its letters are those that were compared. */
function mark({ text, folded, words }: Line, wanted: string) {
  if (wanted === '' || folded.length !== text.length) {
    if (words.firstElementChild) words.textContent = text
    return
  }
  const parts: (string | HTMLElement)[] = []
  let from = 0
  for (let at = folded.indexOf(wanted); at >= 0; at = folded.indexOf(wanted, from)) {
    const marked = document.createElement('mark')
    marked.textContent = text.slice(at, at + wanted.length)
    parts.push(text.slice(from, at), marked)
    from = at + wanted.length
  }
  words.replaceChildren(...parts, text.slice(from))
}

/** The last line that has begun. */
function findSpoken(lines: readonly Line[], timeS: number): Line | undefined {
  let [from, end] = [0, lines.length]
  while (from < end) {
    const middle = (from + end) >> 1
    if ((lines[middle]?.startS ?? 0) <= timeS) from = middle + 1
    else end = middle
  }
  return lines[from - 1]
}
