import { formatBytes } from '../console/units.ts'
import type { UploaderTexts } from './reelgate.d.ts'
import { isUnderWay, type QueuedFile, type UploadQueue } from './upload-queue.ts'

// What a <reelgate-uploader> shows. Its colors are those of the page around it, which may set them with custom properties and parts.

export const TEXTS: UploaderTexts = {
  choose: 'Choose a video',
  chooseSeveral: 'Choose videos',
  drop: 'or drop it here',
  dropSeveral: 'or drop them here',
  list: 'Files',
  checking: 'Looking at the file',
  waiting: 'Waiting · {size}',
  sending: '{percent} % of {size}',
  stalled: '{percent} % of {size} · waiting for the connection',
  retrying: '{percent} % of {size} · the connection was lost, and the upload continues by itself',
  paused: 'Paused at {percent} % of {size}',
  sent: 'Uploaded · {size}',
  failed: 'Not uploaded. {problem}',
  sentAnnouncement: '{name} was uploaded.',
  failedAnnouncement: '{name} was not uploaded. {problem}',
  retryingAnnouncement: 'The connection was lost. {name} continues by itself.',
  pause: 'Pause',
  resume: 'Continue',
  retry: 'Try again',
  cancel: 'Cancel',
  remove: 'Remove',
}

const STYLE = `
:host {
  --primary: var(--reelgate-primary-color, light-dark(#a15c00, #f2a93b));
  --surface: var(--reelgate-surface-color, transparent);
  --radius: var(--reelgate-border-radius, 8px);
  display: block;
  font-family: var(--reelgate-font-family, inherit);
  line-height: 1.4;
}
:host([hidden]) { display: none }
* { box-sizing: border-box }
.zone {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  justify-content: center;
  gap: 8px 12px;
  padding: 24px 16px;
  border: 1px dashed color-mix(in srgb, currentColor 55%, transparent);
  border-radius: var(--radius);
  background: var(--surface);
}
.zone[data-over] { border: 1px solid var(--primary); outline: 1px solid var(--primary) }
button {
  min-height: 36px;
  padding: 6px 12px;
  border: 1px solid color-mix(in srgb, currentColor 55%, transparent);
  border-radius: var(--radius);
  background: transparent;
  color: inherit;
  font: inherit;
  cursor: pointer;
}
.choose { min-height: 44px; padding: 8px 20px; border: 2px solid var(--primary); font-weight: 600 }
button:hover { border-color: currentColor }
button:focus-visible { outline: 2px solid var(--primary); outline-offset: 2px }
ul { display: grid; gap: 8px; margin: 8px 0 0; padding: 0; list-style: none }
ul:empty { display: none }
li {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 8px;
  padding: 12px 16px;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent);
  border-radius: var(--radius);
  background: var(--surface);
}
.text { flex: 1 1 160px; min-width: 0 }
.name { font-weight: 600; overflow-wrap: anywhere }
.status { font-size: 0.9em; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.bar { height: 6px; margin: 6px 0; border-radius: 3px; background: color-mix(in srgb, currentColor 20%, transparent); overflow: hidden }
.done { width: 100%; height: 100%; background: var(--primary); transform-origin: 0 }
:host(:dir(rtl)) .done { transform-origin: 100% }
.actions { display: flex; flex-wrap: wrap; gap: 8px }
.bar[hidden], .actions button[hidden] { display: none }
.announcement { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
@media (pointer: coarse) { button { min-height: 44px } }
@media (forced-colors: active) { .done { background: Highlight } }
`

export type UploaderView = {
  /** Draws the list, after a change of one of its files. */
  show(files: readonly QueuedFile[], changed: QueuedFile): void
  /** For screen readers: the state of the file, which has changed by itself. */
  announce(file: QueuedFile): void
}

type ViewOptions = { texts: UploaderTexts; isMultiple: boolean; accept: string; queue: UploadQueue }

export function createUploaderView(root: ShadowRoot, { texts, isMultiple, accept, queue }: ViewOptions): UploaderView {
  const sheet = new CSSStyleSheet() // allowed under every content policy of the page
  sheet.replaceSync(STYLE)
  root.adoptedStyleSheets = [sheet]
  const input = element('input', { type: 'file', hidden: true, multiple: isMultiple, accept })
  const choose = element('button', { type: 'button', className: 'choose', part: 'choose' }, [
    isMultiple ? texts.chooseSeveral : texts.choose,
  ])
  const hint = element('span', { part: 'hint' }, [isMultiple ? texts.dropSeveral : texts.drop])
  const zone = element('div', { className: 'zone', part: 'drop-zone' }, [choose, hint, input])
  const list = element('ul', { part: 'list', ariaLabel: texts.list, role: 'list' })
  const announcement = element('div', { className: 'announcement', role: 'status' })
  root.replaceChildren(zone, list, announcement)
  const items = new Map<QueuedFile, Item>()
  let lastId = 0

  const take = (files: Iterable<File>) => void queue.add(isMultiple ? files : [...files].slice(0, 1))
  choose.addEventListener('click', () => input.click())
  input.addEventListener('change', () => {
    take([...(input.files ?? [])])
    input.value = '' // so that the same file can be chosen again
  })
  for (const type of ['dragenter', 'dragover', 'dragleave', 'drop'] as const)
    zone.addEventListener(type, (event) => {
      if (!event.dataTransfer?.types.includes('Files')) return
      event.preventDefault()
      zone.toggleAttribute('data-over', type === 'dragenter' || type === 'dragover')
      if (type === 'drop') take([...event.dataTransfer.files])
    })

  type Item = { row: HTMLLIElement; update(): void }

  function createItem(file: QueuedFile): Item {
    const nameId = `name-${++lastId}`
    const name = element('div', { className: 'name', part: 'name', id: nameId }, [file.file.name])
    const done = element('div', { className: 'done', part: 'progress-bar' })
    const bar = element('div', { className: 'bar', part: 'progress', role: 'progressbar' }, [done])
    bar.setAttribute('aria-labelledby', nameId)
    const status = element('div', { className: 'status', part: 'status' })
    const action = (text: keyof UploaderTexts, run: () => void) => {
      const button = element('button', { type: 'button', part: 'action', id: `${text}-${lastId}` }, [texts[text]])
      button.setAttribute('aria-labelledby', `${button.id} ${nameId}`)
      button.addEventListener('click', run)
      return button
    }
    const buttons = {
      pause: action('pause', () => queue.pause(file)),
      resume: action('resume', () => queue.resume(file)),
      retry: action('retry', () => queue.resume(file)),
      cancel: action('cancel', () => queue.remove(file)),
      remove: action('remove', () => queue.remove(file)),
    }
    const actions = element('div', { className: 'actions' }, Object.values(buttons))
    const row = element('li', { part: 'item' }, [element('div', { className: 'text' }, [name, bar, status]), actions])

    function update() {
      const {
        state,
        sentBytes,
        file: { size },
      } = file
      row.dataset.state = state
      bar.hidden = state === 'sent' || (state === 'failed' && sentBytes === 0)
      const percent = percentOf(file)
      bar.ariaValueNow = String(percent)
      done.style.transform = `scaleX(${sentBytes / Math.max(1, size)})`
      const text = fill(texts[state === 'sending' && file.isStalled ? 'stalled' : state], file)
      if (status.textContent !== text) status.textContent = text
      const isShown = {
        pause: isUnderWay(file),
        resume: state === 'paused',
        retry: (state === 'failed' && !file.isNoVideo) || state === 'retrying',
        cancel: state !== 'sent' && state !== 'failed',
        remove: state === 'sent' || state === 'failed',
      }
      const focused = Object.values(buttons).find((button) => button === root.activeElement)
      for (const [key, button] of Object.entries(buttons)) button.hidden = !isShown[key as keyof typeof isShown]
      if (focused?.hidden)
        Object.values(buttons)
          .find((button) => !button.hidden)
          ?.focus() // what it did has another name now
    }

    return { row, update }
  }

  return {
    show(files, changed) {
      for (const [file, { row }] of items) {
        if (files.includes(file)) continue
        const hadFocus = row.contains(root.activeElement)
        row.remove()
        items.delete(file)
        if (hadFocus) choose.focus()
      }
      if (!files.includes(changed)) return
      const item = items.get(changed) ?? createItem(changed)
      if (!items.has(changed)) list.append(item.row)
      items.set(changed, item)
      item.update()
    },
    announce(file) {
      const { state } = file
      if (state !== 'sent' && state !== 'failed' && state !== 'retrying') return
      announcement.textContent = fill(texts[`${state}Announcement`], file)
    },
  }
}

function percentOf({ sentBytes, file }: QueuedFile): number {
  return Math.floor((100 * sentBytes) / Math.max(1, file.size))
}

/** @param text such as `{percent} % of {size}` */
function fill(text: string, upload: QueuedFile): string {
  const { file, problem = '' } = upload
  const values = new Map([
    ['name', file.name],
    ['size', formatBytes(file.size)],
    ['percent', String(percentOf(upload))],
    ['problem', problem],
  ])
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values.get(name) ?? whole)
}

type Properties<Name extends keyof HTMLElementTagNameMap> = Partial<Omit<HTMLElementTagNameMap[Name], 'part'>> & { part?: string }

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  { part, ...properties }: Properties<Name>,
  children: readonly (Node | string)[] = [],
): HTMLElementTagNameMap[Name] {
  const created = document.createElement(name)
  Object.assign(created, properties)
  if (part !== undefined) created.setAttribute('part', part)
  created.append(...children)
  return created
}
