/** The keys as viewers read them. */
const KEY_LIST: readonly (readonly [keys: string, meaning: string])[] = [
  ['Space, K or Enter', 'Play or pause'],
  ['← →', '5 seconds back or ahead'],
  ['J L', '10 seconds back or ahead'],
  [', .', 'One frame back or ahead'],
  ['N P', 'Next or previous chapter'],
  ['0 – 9', 'To a tenth of the video'],
  ['Home End', 'To the beginning or the end'],
  ['↑ ↓', 'Louder or quieter'],
  ['M', 'Sound off or on'],
  ['C', 'Captions off or on'],
  ['A', 'Next audio track'],
  ['T', 'Transcript'],
  ['< >', 'Slower or faster'],
  ['F', 'Full screen'],
  ['Esc', 'Hide the controls'],
  ['?', 'This list'],
]

const DIALOG = `<div>
  <form method="dialog" class="heading">
    <h2>Keyboard shortcuts</h2>
    <button aria-label="Close" autofocus><svg viewBox="0 0 24 24" aria-hidden="true"><path fill="none" stroke="currentColor" stroke-width="2" d="m6 6 12 12M18 6 6 18"/></svg></button>
  </form>
  <div class="keys" role="region" aria-label="Keys" tabindex="0"><dl></dl></div>
</div>`

/** Builds the dialog with the list of keys into `place`. */
export function createKeyList(container: HTMLElement): HTMLDialogElement {
  const dialog = document.createElement('dialog')
  dialog.className = 'key-list'
  dialog.ariaLabel = 'Keyboard shortcuts'
  dialog.innerHTML = DIALOG
  const list = dialog.querySelector('dl')
  for (const [keys, meaning] of KEY_LIST) {
    const term = document.createElement('dt')
    const description = document.createElement('dd')
    term.textContent = keys
    description.textContent = meaning
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
