import { onCloseRequest } from './close-request.ts'
import { message } from './language.ts'
import type { Action, Offer, Setting, SettingsPage } from './settings.ts'
import { showOnTop } from './top-layer.ts'

/** Where columns of choices have no room: an entry for each setting, which opens a page of its choices. */
const LIST = '(max-width: 640px), (max-height: 440px)'

export type SettingsMenu = { toggle(): void; openPage(page: SettingsPage): void; close(): void; draw(): void }

/** Undefined: what it shows is no longer offered. */
type Page = () => SettingsPage | undefined

/** The menu: a column per setting, or a list of them; arrows to move, Escape or the back button to leave. */
export function createSettingsMenu(menu: HTMLElement, button: HTMLButtonElement, offer: () => Offer): SettingsMenu {
  const list = matchMedia(LIST)
  /** The open one is the last. */
  let pages: Page[] = []
  /** From where arrows came to what is below the columns. */
  let lastColumn = 0
  const closeRequests = onCloseRequest(leave)
  menu.addEventListener('keydown', move)
  // A click gives no focus in Safari, and a page that changed may have lost it.
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || menu.hidden || event.defaultPrevented) return
    event.preventDefault()
    leave()
  })
  document.addEventListener('fullscreenchange', close)
  document.addEventListener('pointerdown', closeFromOutside, { capture: true })
  list.addEventListener('change', draw)
  return { toggle: () => (menu.hidden ? open() : close()), openPage, close, draw }

  function draw() {
    if (menu.hidden) return
    const focused = menu.contains(document.activeElement) ? focusedItem() : undefined
    const page = pages.at(-1)?.() ?? rootPage()
    const { title, sample, settings, actions } = page
    menu.ariaLabel = title
    menu.classList.toggle('list', list.matches)
    menu.replaceChildren(
      createHeading(title, { close, back: pages.length > 0 ? leave : undefined }),
      ...(sample ? [sample] : []),
      ...drawSettings(settings()),
      ...actions.map(createActionItem),
    )
    if (focused !== undefined) findItem(focused)?.focus()
  }

  function rootPage(): SettingsPage {
    const { settings, actions } = offer()
    const listed = actions.filter(({ isInBar }) => !isInBar || list.matches)
    return { title: message('settings'), settings: () => settings, actions: listed }
  }

  function drawSettings(settings: readonly Setting[]): HTMLElement[] {
    if (list.matches && (settings.length > 1 || pages.length === 0)) return settings.flatMap(createEntries)
    const columns = document.createElement('div')
    columns.className = 'columns'
    columns.append(...settings.map(createColumn))
    return [columns]
  }

  function createColumn(setting: Setting): HTMLElement {
    const column = createGroup({
      ...setting,
      choose(value) {
        setting.choose(value)
        draw()
      },
    })
    if (setting.page) column.append(createPageItem(setting.page.title, setting.page.load))
    return column
  }

  /** Opens the choices of a setting, and its page. */
  function createEntries({ name, choices, chosen, page }: Setting): HTMLElement[] {
    const parent = pages.at(-1) ?? rootPage
    const entry = createItem(name, () => {
      showPage(() => {
        const shown = parent()
        const setting = shown?.settings().find((offered) => offered.name === name)
        return setting && { title: name, sample: shown?.sample, settings: () => [{ ...setting, page: undefined }], actions: [] }
      })
    })
    const value = document.createElement('span')
    value.className = 'value'
    value.textContent = choices.find((choice) => choice.value === chosen)?.label ?? ''
    entry.append(value)
    entry.ariaHasPopup = 'menu'
    return page ? [entry, createPageItem(page.title, page.load)] : [entry]
  }

  function createPageItem(title: string, load: () => SettingsPage | Promise<SettingsPage>): HTMLElement {
    const item = createItem(title, async () => {
      const loaded = await load()
      showPage(() => loaded)
    })
    item.ariaHasPopup = 'menu'
    return item
  }

  /** Those of a page change what it shows. */
  function createActionItem(action: Action): HTMLElement {
    if ('page' in action) return createPageItem(action.label, () => action.page)
    return createItem(action.label, () => {
      if (pages.length === 0) close()
      action.run()
      draw()
    })
  }

  function showPage(page: Page) {
    pages.push(page)
    draw()
    menu.scrollTop = 0
    focusChosen()
  }

  function openPage(page: SettingsPage) {
    if (menu.hidden) open()
    showPage(() => page)
  }

  function leave() {
    const left = pages.pop()?.()
    if (!left) return close()
    draw()
    findItem(left.title)?.focus()
    closeRequests.watch()
  }

  function open() {
    showOnTop(menu, true)
    button.ariaExpanded = 'true'
    draw()
    menu.scrollTop = 0
    focusChosen()
    closeRequests.watch()
  }

  function close() {
    if (menu.hidden) return
    const hadFocus = menu.contains(document.activeElement)
    closeRequests.end()
    showOnTop(menu, false)
    menu.replaceChildren()
    pages = []
    button.ariaExpanded = 'false'
    if (hadFocus) button.focus()
  }

  function focusChosen() {
    const [first] = itemsIn(menu).filter((item) => !item.closest('.heading'))
    const chosen = menu.querySelector<HTMLElement>('[aria-checked="true"]') ?? first
    chosen?.focus()
  }

  function findItem(item: string): HTMLElement | null {
    return menu.querySelector<HTMLElement>(`[data-item="${CSS.escape(item)}"]`)
  }

  function focusedItem(): string | undefined {
    return document.activeElement instanceof HTMLElement ? document.activeElement.dataset.item : undefined
  }

  /** A tap outside the menu closes it and does nothing else. */
  function closeFromOutside(event: Event) {
    const path = event.composedPath()
    if (menu.hidden || path.includes(menu) || path.includes(button)) return
    close()
    const once = { capture: true, once: true }
    const swallow = (click: Event) => click.stopPropagation()
    document.addEventListener('click', swallow, once)
    document.addEventListener('pointerdown', () => document.removeEventListener('click', swallow, once), once)
  }

  function move(event: KeyboardEvent) {
    const columns = [...menu.querySelectorAll<HTMLElement>('[role="group"]')]
    const focused = columns.findIndex((column) => column.contains(document.activeElement))
    if (focused >= 0) lastColumn = focused
    const current = columns[lastColumn] ?? columns[0]
    const others = itemsIn(menu).filter((item) => !item.closest('[role="group"]'))
    const order = current ? [...itemsIn(current), ...others] : others
    const at = order.findIndex((item) => item.matches(':focus'))
    const sideways = (steps: number) => {
      const column = current ? itemsIn(columns.at((columns.indexOf(current) + steps) % columns.length)) : []
      return column[Math.min(at, column.length - 1)]
    }
    const isRightToLeft = menu.matches(':dir(rtl)')
    const target = {
      ArrowDown: () => order[(at + 1) % order.length],
      ArrowUp: () => order.at(at - 1),
      Home: () => order[0],
      End: () => order.at(-1),
      ArrowRight: () => sideways(isRightToLeft ? -1 : 1),
      ArrowLeft: () => sideways(isRightToLeft ? 1 : -1),
    }[event.key]
    if (event.key === 'Escape') leave()
    else if (event.key === 'Tab') close()
    else if (target) target()?.focus()
    else if (event.key !== 'Enter' && event.key !== ' ') return
    event.stopPropagation()
    if (event.key !== 'Enter' && event.key !== ' ' && event.key !== 'Tab') event.preventDefault()
  }
}

function itemsIn(part: HTMLElement | undefined): HTMLElement[] {
  return [...(part?.querySelectorAll<HTMLElement>('[role^="menuitem"]') ?? [])].filter((item) => item.checkVisibility())
}

/** Where the menu covers the player, its button is not there to close it. */
function createHeading(title: string, { close, back }: { close: () => void; back: (() => void) | undefined }): HTMLElement {
  const heading = document.createElement('div')
  const name = document.createElement('span')
  heading.className = 'heading'
  name.textContent = title
  if (back) heading.append(createIcon('back', 'M14.5 5.5 8 12l6.5 6.5', back))
  heading.append(name, createIcon('close', 'm6 6 12 12M18 6 6 18', close))
  return heading
}

function createIcon(name: 'back' | 'close', path: string, run: () => void): HTMLElement {
  const item = createItem(message(name), run)
  item.className = name
  item.ariaLabel = message(name)
  item.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true"><path fill="none" stroke="currentColor" stroke-width="2" d="${path}"/></svg>`
  return item
}

function createItem(label: string, run: () => void): HTMLButtonElement {
  const item = document.createElement('button')
  item.type = 'button'
  item.className = 'item'
  item.role = 'menuitem'
  item.tabIndex = -1
  item.dataset.item = label
  item.textContent = label
  item.addEventListener('click', run)
  return item
}

function createGroup({ name, choices, chosen, choose, language }: Setting): HTMLElement {
  const group = document.createElement('div')
  const heading = document.createElement('span')
  group.role = 'group'
  group.classList.toggle('titles', language !== undefined)
  group.ariaLabel = name
  heading.className = 'name'
  heading.ariaHidden = 'true'
  heading.textContent = name
  group.append(heading)
  for (const { value, label } of choices) {
    const item = createItem(label, () => {
      item.focus({ preventScroll: true }) // Safari does not
      choose(value)
    })
    item.role = 'menuitemradio'
    if (language !== undefined) item.lang = language
    item.className = 'choice'
    item.ariaChecked = String(value === chosen)
    item.dataset.item = `${name} ${value}`
    group.append(item)
  }
  return group
}
