import { type Greeting, isGreeting } from '../embed/messages.ts'
import type { PlayerElements } from './elements.ts'

/** A plain page has this long to answer. Safari lets what a click causes within a second do what a click may. */
const ANSWER_WITHIN_MS = 500

export type Fullscreen = {
  toggle(): void
  /** Back into the page. */
  end(): void
  /** For a video without a watermark: the browser may show the bare video, which is the only full screen that iPhones have. */
  allowBareVideo(): void
}

/** What Safari has besides the standard. */
type SafariVideo = HTMLVideoElement & { webkitEnterFullscreen?(): void }

/** @param isFramingOrigin whether a message from the window around this one can be of this origin */
export function createFullscreen(elements: PlayerElements, isFramingOrigin: (origin: string) => boolean): Fullscreen {
  const video: SafariVideo = elements.video
  let mayShowBareVideo = false
  video.addEventListener('webkitbeginfullscreen', () => mayShowBareVideo || video.pause())
  const ways = document.fullscreenEnabled ? ofBrowser(elements) : ofPage(elements, enterBareVideo, isFramingOrigin)
  return {
    ...ways,
    allowBareVideo() {
      mayShowBareVideo = true
      if (video.webkitEnterFullscreen) ways.offer()
    },
  }

  function enterBareVideo(): boolean {
    if (!mayShowBareVideo || !video.webkitEnterFullscreen) return false
    try {
      video.webkitEnterFullscreen()
      return true
    } catch {
      return false // it has nothing to show yet
    }
  }
}

/** `offer`: shows the button. */
type Ways = Pick<Fullscreen, 'toggle' | 'end'> & { offer(): void }

function ofBrowser({ controller }: PlayerElements): Ways {
  const end = () => {
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {})
  }
  const toggle = () => {
    if (document.fullscreenElement) end()
    else controller.requestFullscreen().catch(() => {})
  }
  return { toggle, end, offer() {} } // the button is never hidden
}

/**
 * Full screen without the browser's own: the page around makes the frame as large as its viewport, watermark included. Scripts of ours do
 * when asked; other pages may (docs/embedding.md, "Full screen on iPhones").
 * @param enterBareVideo what else can be done. @returns false: nothing
 */
function ofPage(
  { controller, fullscreenButton: button }: PlayerElements,
  enterBareVideo: () => boolean,
  isFramingOrigin: (origin: string) => boolean,
): Ways {
  const isFramed = parent !== window
  let isFilled = false
  let unanswered: ReturnType<typeof setTimeout> | undefined
  // A browser that has full screen, but not in this frame, is no reason to ask a page that may not know the question.
  button.hidden = !isFramed || (document.fullscreenEnabled !== undefined && 'requestFullscreen' in controller)
  for (const type of ['mediaenterfullscreenrequest', 'mediaexitfullscreenrequest']) {
    const toggleInstead = (request: Event) => {
      request.stopImmediatePropagation()
      toggle()
    }
    controller.addEventListener(type, toggleInstead, { capture: true })
  }
  addEventListener('keydown', ({ key }) => key === 'Escape' && end())
  addEventListener('message', ({ data, source, origin }: MessageEvent) => {
    if (!isFramed || source !== parent || !isFramingOrigin(origin)) return
    if (isGreeting(data) && data.reelgate === 'fullscreen') answered(data.isFullscreen === true)
  })
  return { toggle, end, offer }

  function toggle() {
    if (isFilled) return end()
    if (!isFramed) return void enterBareVideo()
    clearTimeout(unanswered)
    unanswered = setTimeout(() => {
      if (!enterBareVideo()) button.hidden = true
    }, ANSWER_WITHIN_MS)
    ask(true)
  }

  function end() {
    if (isFilled) ask(false)
  }

  function offer() {
    button.hidden = false
  }

  function ask(isFullscreen: boolean) {
    const question: Greeting = { reelgate: 'fullscreen', isFullscreen }
    parent.postMessage(question, '*')
  }

  function answered(isFullscreen: boolean) {
    clearTimeout(unanswered)
    offer()
    isFilled = isFullscreen
    button.mediaIsFullscreen = isFullscreen
  }
}
