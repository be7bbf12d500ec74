import type { Chapter } from '../embed/reelgate.d.ts'
import type { PlayerElements } from './elements.ts'
import { message } from './language.ts'
import { formatTime } from './resume-offer.ts'
import type { Setting, SettingsPage } from './settings.ts'

/** So near to the beginning of a chapter, "previous" is the one before; later, its beginning. */
const AT_BEGINNING_S = 3
/** Browsers round a seek. */
const ROUNDED_S = 0.01

export type Chapters = {
  /** Null: the first one has not begun. */
  current(): Chapter | null
  /** @returns what the viewer reads of it */
  step(steps: 1 | -1): string
  page: SettingsPage
}

type Shown = {
  /** In their order, at least one. */
  chapters: readonly Chapter[]
  language: string
  durationS: number
  signal: AbortSignal
  /** Another chapter plays. */
  changed(): void
  closeMenu(): void
  /** Opens the page below. */
  openPage(): void
}

/** Shows the chapters of a video: their parts and titles on the seek bar, the current title next to the time, and a page of the menu. */
export function showChapters({ controller, video }: Pick<PlayerElements, 'controller' | 'video'>, shown: Shown): Chapters {
  const { chapters, language, signal, changed } = shown
  markSeekBar(video, shown)
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'bar-button chapter'
  button.title = message('chapters')
  button.ariaHasPopup = 'menu'
  button.lang = language
  button.dir = 'auto'
  button.addEventListener('click', shown.openPage)
  controller.querySelector('media-time-display')?.after(button)
  let current = find()
  const settings: Setting = {
    name: message('chapters'),
    language,
    choices: chapters.map(({ startTime, title }, value) => ({ value, label: `${formatTime(startTime)} ${title}` })),
    get chosen() {
      return current ? chapters.indexOf(current) : -1
    },
    choose(index) {
      const chosen = chapters[index]
      if (chosen) seek(chosen.startTime)
      shown.closeMenu()
    },
  }
  for (const type of ['timeupdate', 'seeking', 'loadedmetadata']) video.addEventListener(type, follow, { signal })
  signal.addEventListener('abort', () => button.remove())
  showTitle()
  return { current: () => current, step, page: { title: message('chapters'), settings: () => [settings], actions: [] } }

  function find(): Chapter | null {
    return chapters.findLast(({ startTime }) => startTime <= video.currentTime + ROUNDED_S) ?? null
  }

  function follow() {
    const found = find()
    if (found === current) return
    current = found
    showTitle()
    changed()
  }

  function showTitle() {
    button.hidden = current === null
    button.textContent = current?.title ?? ''
  }

  /** Before it is played, too; there 0 is where the video would start anyway, which may be where it resumes. */
  function seek(timeS: number) {
    video.currentTime = Math.max(timeS, 0.001)
    follow()
  }

  function step(steps: 1 | -1): string {
    follow()
    const index = current ? chapters.indexOf(current) : -1
    const isAtBeginning = current !== null && video.currentTime - current.startTime < AT_BEGINNING_S
    const found = chapters[steps > 0 || isAtBeginning ? index + steps : index]
    if (!found && steps > 0) return message('last-chapter')
    seek(found?.startTime ?? 0)
    return current?.title ?? formatTime(0)
  }
}

/** As cues: of these media-chrome makes the parts of the bar and the titles over it. What is before the first one is a part, too. */
function markSeekBar(video: HTMLVideoElement, { chapters, language, durationS }: Shown): void {
  // A video element's text tracks cannot be removed; a session that goes on has the same ones.
  if ([...video.textTracks].some(({ kind }) => kind === 'chapters')) return
  const track = video.addTextTrack('chapters', message('chapters'), language)
  track.mode = 'hidden' // a disabled one has no cues
  const [first] = chapters
  const parts = first && first.startTime > 0 ? [{ startTime: 0, title: '' }, ...chapters] : chapters
  for (const [index, { startTime, title }] of parts.entries())
    track.addCue(new VTTCue(startTime, parts[index + 1]?.startTime ?? durationS, escapeCue(title)))
}

function escapeCue(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
