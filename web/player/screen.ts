import type { Position } from '../embed/messages.ts'
import type { PlayerElements } from './elements.ts'
import { message } from './language.ts'
import { type Refusal, refusalAction, refusalSentence, retrySentence, type Waiting, waitingSentence } from './refusals.ts'
import { keepOnTop, showOnTop } from './top-layer.ts'

/** What the viewer sees. `note`: a sentence over the picture, which stays. `left`: the place at which playback was refused. */
export type ScreenState =
  | { state: 'loading' }
  | { state: 'ready' }
  | { state: 'playing'; ended?: boolean; note?: Waiting }
  | { state: 'waiting'; waiting: Waiting }
  | { state: 'refused'; refusal: Refusal; left?: Position; onAction: () => void }

export type Screen = {
  readonly shown: ScreenState
  show(shown: ScreenState): void
  onShow(listener: (shown: ScreenState) => void): void
  /** Offers to ask the page around for a new OTP, where that helps; undefined: no longer. */
  setAskForOtp(ask: ((refused: ScreenState) => void) | undefined): void
}

/** Puts one state on the screen at a time, and on `<body>` as `data-state` and `data-code`. */
export function createScreen(elements: PlayerElements): Screen {
  const { controller, bigPlay, note, panel, panelSentence, panelCountdown, panelProgress, panelAction } = elements
  const listeners: ((shown: ScreenState) => void)[] = []
  let shown: ScreenState = { state: 'loading' }
  let askForOtp: ((refused: ScreenState) => void) | undefined
  keepOnTop([note, panel])
  panelAction.addEventListener('click', () => {
    if (shown.state !== 'refused') return
    if (refusalAction(shown.refusal)) shown.onAction()
    else askForOtp?.(shown)
  })
  return {
    get shown() {
      return shown
    },
    show(next) {
      const focused = document.activeElement
      shown = next
      document.body.dataset.state = next.state
      document.body.dataset.code = toStateCode(next)
      bigPlay.hidden = !(next.state === 'ready' || (next.state === 'playing' && next.ended))
      bigPlay.ariaLabel = next.state === 'playing' ? message('watch-again') : message('play')
      showOnTop(note, next.state === 'playing' && next.note !== undefined)
      setText(note, next.state === 'playing' && next.note ? waitingSentence(next.note) : '')
      showOnTop(panel, next.state !== 'ready' && next.state !== 'playing')
      showPanel(next)
      if (focused instanceof HTMLElement && focused !== document.body && !isVisible(focused)) {
        controller.focus({ preventScroll: true }) // what was pressed has gone: the next Tab or key continues in the player
      }
      for (const listener of listeners) listener(next)
    },
    onShow: (listener) => void listeners.push(listener),
    setAskForOtp(ask) {
      askForOtp = ask
    },
  }

  function showPanel(next: ScreenState) {
    const waiting = next.state === 'waiting' ? next.waiting : undefined
    const refusal = next.state === 'refused' ? next.refusal : undefined
    const action = refusal && refusalAction(refusal, askForOtp !== undefined)
    // A refusal interrupts the screen reader, waiting does not.
    panelSentence.setAttribute('role', refusal ? 'alert' : 'status')
    setText(
      panelSentence,
      refusal ? refusalSentence(refusal, askForOtp !== undefined) : waiting ? waitingSentence(waiting) : message('loading'),
    )
    setText(panelCountdown, waiting ? retrySentence(waiting) : '') // not for screen readers, which would say each second
    panelCountdown.hidden = waiting?.retryInS === undefined
    panelProgress.hidden = waiting?.progress === undefined
    panelProgress.ariaLabel = message('preparation')
    panelProgress.value = waiting?.progress ?? 0
    panelAction.hidden = action === undefined
    setText(panelAction, action?.label ?? '')
    if (action && document.activeElement === document.body) panelAction.focus({ preventScroll: true })
  }
}

function isVisible(element: HTMLElement): boolean {
  return element.checkVisibility({ visibilityProperty: true })
}

function toStateCode(shown: ScreenState): string {
  if (shown.state === 'refused') return shown.refusal.why ? `${shown.refusal.code}.${shown.refusal.why}` : shown.refusal.code
  if (shown.state === 'waiting') return shown.waiting.code
  if (shown.state === 'playing') return shown.note?.code ?? (shown.ended ? 'ended' : '')
  return ''
}

/** Writing the same words again would make screen readers say them again. */
function setText(element: HTMLElement, text: string) {
  if (element.textContent !== text) element.textContent = text
}
