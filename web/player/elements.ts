import 'media-chrome/dist/media-captions-button.js'
import 'media-chrome/dist/media-control-bar.js'
import 'media-chrome/dist/media-controller.js'
import 'media-chrome/dist/media-fullscreen-button.js'
import 'media-chrome/dist/media-loading-indicator.js'
import 'media-chrome/dist/media-mute-button.js'
import 'media-chrome/dist/media-play-button.js'
import 'media-chrome/dist/media-time-display.js'
import 'media-chrome/dist/media-time-range.js'
import 'media-chrome/dist/media-volume-range.js'
import type { MediaController } from 'media-chrome/dist/media-controller.js'
import type MediaFullscreenButton from 'media-chrome/dist/media-fullscreen-button.js'
import { message, pluralMessage } from './language.ts'
import type { PlayerOptions } from './options.ts'

export type PlayerElements = {
  /** The full-screen element: it contains everything, and gets the focus where what had it is gone. */
  controller: MediaController
  video: HTMLVideoElement
  title: HTMLElement
  bigPlay: HTMLButtonElement
  skipBack: HTMLButtonElement
  skipAhead: HTMLButtonElement
  /** What a key or gesture has changed, for a moment. */
  sign: HTMLElement
  note: HTMLElement
  panel: HTMLElement
  panelSentence: HTMLElement
  panelCountdown: HTMLElement
  panelProgress: HTMLProgressElement
  panelAction: HTMLButtonElement
  settings: HTMLElement
  settingsButton: HTMLButtonElement
  floatButton: HTMLButtonElement
  /** Not in the page when there are no controls. */
  fullscreenButton: MediaFullscreenButton
}

const REEL =
  '<path d="M12 1a11 11 0 1 0 0 22 11 11 0 0 0 0-22Zm0 2.4a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6ZM5.7 9.6a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6Zm12.6 0a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6ZM12 9.4a2.2 2.2 0 0 1 1.1 4.1l.7 3.7h-3.6l.7-3.7A2.2 2.2 0 0 1 12 9.4Z"/>'
const SLIDERS =
  '<g fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"><path d="M4 7.5h7.5m6 0H20M4 16.5h2.5m6 0H20"/><circle cx="14.5" cy="7.5" r="2.8"/><circle cx="9.5" cy="16.5" r="2.8"/></g>'
const WINDOWS =
  '<path fill="none" stroke="currentColor" stroke-width="2" d="M11 19H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1h16a1 1 0 0 1 1 1v5"/><rect x="13" y="13" width="9" height="7" rx="1"/>'

const AGAIN = 'M12 5V1.8L6.9 6 12 10.2V7a5.5 5.5 0 1 1-5.4 6.6H4.5A7.5 7.5 0 1 0 12 5Z'

/** Of the buttons for fingers, and of double taps. */
export const SKIP_S = 10
/** Of the bar, when nothing moves. */
const HIDE_AFTER_S = 3

// Static text only; whatever comes from a server or an address is set as textContent.
const PLAYER = `
<media-controller nohotkeys autohide="${HIDE_AFTER_S}" nosubtitleslangpref>
  <video slot="media" playsinline disablepictureinpicture disableremoteplayback preload="auto"
    controlslist="nodownload nofullscreen noremoteplayback noplaybackrate"></video>
  <h1 slot="top-chrome" class="title" dir="auto"></h1>
  <media-loading-indicator slot="centered-chrome" noautohide></media-loading-indicator>
  <button type="button" slot="centered-chrome" class="big-play" noautohide hidden>
    <svg viewBox="0 0 24 24" aria-hidden="true"><path class="play" d="M8 5.2v13.6a.7.7 0 0 0 1.07.6l10.6-6.8a.7.7 0 0 0 0-1.2L9.07 4.6A.7.7 0 0 0 8 5.2Z"/><path class="again" d="${AGAIN}"/></svg>
  </button>
${skipButton('back')}${skipButton('ahead')}
  <p slot="centered-chrome" class="sign" role="status" aria-live="polite" dir="auto" noautohide></p>
  <p class="note" role="status" noautohide popover="manual" hidden></p>
  <div class="settings" role="menu" noautohide popover="manual" hidden></div>
  <media-control-bar>
    <media-play-button></media-play-button>
    <media-time-display showduration notoggle></media-time-display>
    <media-time-range></media-time-range>
    <media-mute-button></media-mute-button>
    <media-volume-range></media-volume-range>
    <media-captions-button></media-captions-button>
    <button type="button" class="bar-button settings-button" aria-haspopup="menu" aria-expanded="false" hidden>
      <svg viewBox="0 0 24 24" aria-hidden="true">${SLIDERS}</svg>
    </button>
    <button type="button" class="bar-button float-button" hidden>
      <svg viewBox="0 0 24 24" aria-hidden="true">${WINDOWS}</svg>
    </button>
    <media-fullscreen-button></media-fullscreen-button>
  </media-control-bar>
  <div class="panel" noautohide popover="manual" hidden>
    <svg class="reel" viewBox="0 0 24 24" aria-hidden="true">${REEL}</svg>
    <p class="sentence" dir="auto"></p>
    <p class="countdown" dir="auto" aria-hidden="true"></p>
    <progress max="1" hidden></progress>
    <button type="button" class="action" hidden></button>
  </div>
</media-controller>`

function skipButton(direction: 'back' | 'ahead'): string {
  const mirror = direction === 'ahead' ? 'transform="matrix(-1 0 0 1 24 0)"' : ''
  return `<button type="button" slot="centered-chrome" class="skip ${direction}">
    <svg viewBox="0 0 24 24" aria-hidden="true"><path ${mirror} d="${AGAIN}"/></svg><span aria-hidden="true">${SKIP_S}</span></button>`
}

/** Builds the player's elements into `root`, as the options of the address say. */
export function createElements(root: HTMLElement, options: PlayerOptions): PlayerElements {
  root.innerHTML = PLAYER
  const one = <T extends Element>(selector: string): T => {
    const element = root.querySelector<T>(selector)
    if (!element) throw new Error(`The player has no ${selector}`)
    return element
  }
  const elements: PlayerElements = {
    controller: one('media-controller'),
    video: one('video'),
    title: one('.title'),
    bigPlay: one('.big-play'),
    skipBack: one('.skip.back'),
    skipAhead: one('.skip.ahead'),
    sign: one('.sign'),
    note: one('.note'),
    panel: one('.panel'),
    panelSentence: one('.sentence'),
    panelCountdown: one('.panel .countdown'),
    panelProgress: one('.panel progress'),
    panelAction: one('.panel .action'),
    settings: one('.settings'),
    settingsButton: one('.settings-button'),
    floatButton: one('.float-button'),
    fullscreenButton: one('media-fullscreen-button'),
  }
  labelElements(elements)
  one('media-captions-button').role = 'switch' // it has `aria-checked`, which a button may not have
  seekOnRelease(one('media-time-range'))
  hideBarAfterClick(elements)
  for (const part of [one<HTMLElement>('media-control-bar'), elements.skipBack, elements.skipAhead])
    showBarWhileFocused(elements, part)
  fitToOptions(elements, options, one('media-control-bar'))
  return elements
}

/** In the viewer's language. */
export function labelElements({ bigPlay, skipBack, skipAhead, settings, settingsButton, floatButton }: PlayerElements) {
  bigPlay.ariaLabel = message('play')
  skipBack.ariaLabel = pluralMessage('seconds-back', SKIP_S)
  skipAhead.ariaLabel = pluralMessage('seconds-ahead', SKIP_S)
  for (const element of [settings, settingsButton]) element.ariaLabel = message('settings')
  floatButton.ariaLabel = message('picture-in-picture')
  for (const button of [settingsButton, floatButton]) button.title = button.ariaLabel ?? ''
}

/** What the bar says before the first media is here; its attribute of this name counts only at creation. */
export function showDuration({ controller }: PlayerElements, durationS: number) {
  controller.mediaStore.dispatch({ type: 'optionschangerequest', detail: { defaultDuration: durationS } })
}

function fitToOptions({ controller, video, skipBack, skipAhead }: PlayerElements, options: PlayerOptions, bar: HTMLElement) {
  if (options.controls !== 'on') for (const part of [bar, skipBack, skipAhead]) part.remove()
  if (options.controls === 'native') video.controls = true
  // Clicks belong to the browser's own bar, or to the embedding page.
  if (options.controls !== 'on') controller.setAttribute('gesturesdisabled', '')
  video.loop = options.loop
  video.muted = options.autoplay
  if (options.autoplay) controller.setAttribute('nomutedpref', '')
}

/**
 * media-chrome's bar hides some seconds after a click on its own play button. After a click on ours it would stay, and be drawn sixty
 * times a second, until the pointer moves: so a click is a movement over the video, which is where the pointer is when they are gone.
 */
function hideBarAfterClick({ controller, bigPlay, panelAction }: PlayerElements) {
  for (const button of [bigPlay, panelAction]) {
    button.addEventListener('click', () => hideBarLater(controller))
  }
}

/** A viewer who uses the keyboard sees where they are: a control with a focus ring does not fade away. */
function showBarWhileFocused({ controller }: PlayerElements, part: HTMLElement) {
  part.addEventListener('focusin', ({ target }) => {
    const focused = target instanceof Element ? (target.shadowRoot?.activeElement ?? target) : undefined
    controller.autohide = focused?.matches(':focus-visible') ? '-1' : String(HIDE_AFTER_S)
  })
  part.addEventListener('focusout', () => {
    controller.autohide = String(HIDE_AFTER_S)
    hideBarLater(controller)
  })
}

/** To media-chrome this is a movement over the video, some seconds after which the bar hides. */
export function hideBarLater(controller: HTMLElement) {
  controller.dispatchEvent(new PointerEvent('pointermove', { pointerType: 'mouse' }))
}

/**
 * media-chrome seeks with every movement of the thumb; each place passed would cost a key of the paced budget.
 * So while the pointer is down only the last place is remembered, and asked for on release.
 */
function seekOnRelease(range: HTMLElement) {
  let held: CustomEvent<unknown> | undefined
  let down = false
  range.addEventListener('pointerdown', () => {
    down = true
  })
  range.addEventListener(
    'mediaseekrequest',
    (event) => {
      if (!down || !(event instanceof CustomEvent)) return
      event.stopImmediatePropagation()
      held = event
    },
    { capture: true },
  )
  for (const release of ['pointerup', 'pointercancel']) {
    addEventListener(release, () => {
      down = false
      if (held) range.dispatchEvent(new CustomEvent('mediaseekrequest', { bubbles: true, composed: true, detail: held.detail }))
      held = undefined
    })
  }
}
