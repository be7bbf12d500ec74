import { showOnTop } from './top-layer.ts'

/** One choice among several: the qualities, the speeds. `chosen` is a value of `choices`. */
export type Setting = {
  name: string
  choices: readonly { value: number; label: string }[]
  chosen: number
  choose: (value: number) => void
  /** A page of its own, which the last entry of the column opens. */
  page?: SettingsPage
}

/** More settings than the menu has room for, in its place. */
export type SettingsPage = {
  title: string
  /** Shows what is chosen. */
  sample: HTMLElement
  settings(): readonly Setting[]
  actions: readonly { label: string; run: () => void }[]
}

export type SettingsMenu = { show(settings: readonly Setting[]): void; toggle(): void; close(): void; readonly isOpen: boolean }

/** The menu of the settings button: a column per setting, arrows to move, Escape to leave. */
export function createSettingsMenu(menu: HTMLElement, button: HTMLButtonElement): SettingsMenu {
  let offered: readonly Setting[] = []
  let page: SettingsPage | undefined
  menu.addEventListener('keydown', move)
  // A click gives no focus in Safari, and a page that changed may have lost it.
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !menu.hidden && !event.defaultPrevented) leave()
  })
  document.addEventListener('fullscreenchange', close)
  document.addEventListener('pointerdown', (event) => {
    const path = event.composedPath()
    if (!menu.hidden && !path.includes(menu) && !path.includes(button)) close()
  })
  return {
    toggle: () => (menu.hidden ? open() : close()),
    close,
    get isOpen() {
      return !menu.hidden
    },
    show(settings) {
      offered = settings
      draw()
    },
  }

  function draw() {
    const focused = menu.contains(document.activeElement) ? focusedChoice() : undefined
    menu.ariaLabel = page?.title ?? 'Settings'
    menu.classList.toggle('page', page !== undefined)
    menu.replaceChildren(...(page ? drawPage(page) : [createHeading('Settings', close), ...offered.map(drawColumn)]))
    if (focused !== undefined) menu.querySelector<HTMLElement>(`[data-choice="${CSS.escape(focused)}"]`)?.focus()
  }

  function drawColumn(setting: Setting): HTMLElement {
    const column = createColumn(setting)
    const { page } = setting
    if (page) column.append(createItem(page.title, () => showPage(page)))
    return column
  }

  function drawPage({ title, sample, settings, actions }: SettingsPage): HTMLElement[] {
    const columns = settings().map((setting) =>
      createColumn({ ...setting, choose: (value) => redraw(() => setting.choose(value)) }),
    )
    const items = actions.map(({ label, run }) => createItem(label, () => redraw(run)))
    return [createHeading(title, close), sample, ...columns, ...items, createItem('Back', () => showPage(undefined))]
  }

  function redraw(change: () => void) {
    change()
    draw()
  }

  function showPage(next: SettingsPage | undefined) {
    const left = page
    page = next
    draw()
    if (left) menu.querySelector<HTMLElement>(`[data-choice="${CSS.escape(left.title)}"]`)?.focus()
    else menu.querySelector<HTMLElement>('[aria-checked="true"]')?.focus()
    menu.scrollTop = 0
  }

  function leave() {
    if (page) showPage(undefined)
    else close()
  }

  function open() {
    showOnTop(menu, true)
    button.ariaExpanded = 'true'
    menu.querySelector<HTMLElement>('[aria-checked="true"]')?.focus()
  }

  function close() {
    if (menu.hidden) return
    const hadFocus = menu.contains(document.activeElement)
    showOnTop(menu, false)
    button.ariaExpanded = 'false'
    if (hadFocus) button.focus()
    if (page) {
      page = undefined
      draw()
    }
  }

  function focusedChoice(): string | undefined {
    return document.activeElement instanceof HTMLElement ? document.activeElement.dataset.choice : undefined
  }

  function move(event: KeyboardEvent) {
    const columns = [...menu.querySelectorAll<HTMLElement>('[role="group"], .settings > [role="menuitem"]')]
    const columnAt = columns.findIndex((column) => column.contains(document.activeElement))
    const items = listChoices(columns[columnAt])
    const itemAt = items.findIndex((item) => item.matches(':focus'))
    const sideways = (steps: number) => {
      const column = listChoices(columns.at((columnAt + steps) % columns.length))
      return column[Math.min(itemAt, column.length - 1)]
    }
    const target = {
      ArrowDown: () => items[(itemAt + 1) % items.length],
      ArrowUp: () => items.at(itemAt - 1),
      Home: () => items[0],
      End: () => items.at(-1),
      ArrowRight: () => sideways(1),
      ArrowLeft: () => sideways(-1),
    }[event.key]
    if (event.key === 'Escape') leave()
    else if (event.key === 'Tab') close()
    else if (target) target()?.focus()
    else if (event.key !== 'Enter' && event.key !== ' ') return
    event.stopPropagation()
    if (event.key !== 'Enter' && event.key !== ' ' && event.key !== 'Tab') event.preventDefault()
  }
}

/** An entry below the columns is a column of its own. */
function listChoices(column: HTMLElement | undefined): HTMLElement[] {
  if (column?.role === 'menuitem') return [column]
  return [...(column?.querySelectorAll<HTMLElement>('[role^="menuitem"]') ?? [])]
}

/** Where the menu covers the player, its button is not there to close it. */
function createHeading(title: string, close: () => void): HTMLElement {
  const heading = document.createElement('div')
  const button = createItem('×', close)
  heading.className = 'heading'
  heading.textContent = title
  button.className = 'close'
  button.ariaLabel = 'Close'
  heading.append(button)
  return heading
}

function createItem(label: string, run: () => void): HTMLButtonElement {
  const item = document.createElement('button')
  item.type = 'button'
  item.role = 'menuitem'
  item.tabIndex = -1
  item.dataset.choice = label
  item.textContent = label
  item.addEventListener('click', run)
  return item
}

function createColumn({ name, choices, chosen, choose }: Setting): HTMLElement {
  const column = document.createElement('div')
  const heading = document.createElement('span')
  column.role = 'group'
  column.ariaLabel = name
  heading.className = 'name'
  heading.ariaHidden = 'true'
  heading.textContent = name
  column.append(heading)
  for (const { value, label } of choices) {
    const item = document.createElement('button')
    item.type = 'button'
    item.role = 'menuitemradio'
    item.tabIndex = -1
    item.ariaChecked = String(value === chosen)
    item.dataset.choice = `${name} ${value}`
    item.textContent = label
    item.addEventListener('click', () => {
      item.focus({ preventScroll: true }) // Safari does not
      choose(value)
    })
    column.append(item)
  }
  return column
}
