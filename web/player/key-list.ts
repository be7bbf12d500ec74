import type { TextKey } from '../languages/english.ts'
import { message } from './language.ts'

/** The keys of those actions. */
const KEY_LIST: readonly (readonly [keys: string, meaning: TextKey])[] = [
  ['', 'keys.play'],
  ['← →', 'keys.5-seconds'],
  ['J L', 'keys.10-seconds'],
  [', .', 'keys.frame'],
  ['N P', 'keys.chapter'],
  ['0 – 9', 'keys.tenth'],
  ['Home End', 'keys.ends'],
  ['↑ ↓', 'keys.volume'],
  ['M', 'keys.sound'],
  ['C', 'keys.captions'],
  ['A', 'keys.audio'],
  ['T', 'transcript'],
  ['< >', 'keys.speed'],
  ['F', 'full-screen'],
  ['Esc', 'keys.escape'],
  ['?', 'keys.list'],
]

const DIALOG = `<div>
  <form method="dialog" class="heading">
    <h2></h2>
    <button autofocus><svg viewBox="0 0 24 24" aria-hidden="true"><path fill="none" stroke="currentColor" stroke-width="2" d="m6 6 12 12M18 6 6 18"/></svg></button>
  </form>
  <div class="keys" role="region" tabindex="0"><dl></dl></div>
</div>`

/** Builds the dialog with the list of keys into `place`. */
export function createKeyList(container: HTMLElement): HTMLDialogElement {
  const dialog = document.createElement('dialog')
  dialog.className = 'key-list'
  dialog.ariaLabel = message('keys')
  dialog.innerHTML = DIALOG
  const [heading, close, region, list] = ['h2', 'button', '.keys', 'dl'].map((part) => dialog.querySelector(part))
  if (heading) heading.textContent = message('keys')
  if (close) close.ariaLabel = message('close')
  if (region) region.ariaLabel = message('keys')
  for (const [keys, meaning] of KEY_LIST) {
    const term = document.createElement('dt')
    const description = document.createElement('dd')
    term.textContent = keys || message('keys.play-keys')
    description.textContent = message(meaning)
    list?.append(term, description)
  }
  // Of a tap the browser may take an element nearby, so the place counts.
  dialog.addEventListener('pointerdown', ({ clientX, clientY }) => {
    const { left, right, top, bottom } = dialog.getBoundingClientRect()
    if (clientX < left || clientX > right || clientY < top || clientY > bottom)
      dialog.addEventListener('click', () => dialog.close(), { once: true })
  })
  container.append(dialog)
  return dialog
}
