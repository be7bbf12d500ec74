import { showOnTop } from './top-layer.ts'

/** One choice among several: the qualities, the speeds. `chosen` is a value of `choices`. */
export type Setting = {
  name: string
  choices: readonly { value: number; label: string }[]
  chosen: number
  choose: (value: number) => void
}

export type SettingsMenu = { show(settings: readonly Setting[]): void; close(): void; readonly isOpen: boolean }

/** The settings button and its menu: a column per setting, arrows to move, Escape to leave. */
export function createSettingsMenu(menu: HTMLElement, button: HTMLButtonElement): SettingsMenu {
  button.addEventListener('click', () => (menu.hidden ? open() : close()))
  menu.addEventListener('keydown', move)
  document.addEventListener('fullscreenchange', close)
  document.addEventListener('pointerdown', (event) => {
    const path = event.composedPath()
    if (!menu.hidden && !path.includes(menu) && !path.includes(button)) close()
  })
  return {
    close,
    get isOpen() {
      return !menu.hidden
    },
    show(settings) {
      const offered = settings.filter((setting) => setting.choices.length > 1)
      button.hidden = offered.length === 0
      const focused = menu.contains(document.activeElement) ? focusedChoice() : undefined
      menu.replaceChildren(createHeading(close), ...offered.map(createColumn))
      if (focused !== undefined) menu.querySelector<HTMLElement>(`[data-choice="${CSS.escape(focused)}"]`)?.focus()
    },
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
  }

  function focusedChoice(): string | undefined {
    return document.activeElement instanceof HTMLElement ? document.activeElement.dataset.choice : undefined
  }

  function move(event: KeyboardEvent) {
    const columns = [...menu.querySelectorAll<HTMLElement>('[role="group"]')]
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
    if (event.key === 'Escape' || event.key === 'Tab') close()
    else if (target) target()?.focus()
    else if (event.key !== 'Enter' && event.key !== ' ') return
    event.stopPropagation()
    if (event.key !== 'Enter' && event.key !== ' ' && event.key !== 'Tab') event.preventDefault()
  }
}

function listChoices(column: HTMLElement | undefined): HTMLElement[] {
  return [...(column?.querySelectorAll<HTMLElement>('[role="menuitemradio"]') ?? [])]
}

/** Where the menu covers the player, its button is not there to close it. */
function createHeading(close: () => void): HTMLElement {
  const heading = document.createElement('div')
  const button = document.createElement('button')
  heading.className = 'heading'
  heading.textContent = 'Settings'
  button.type = 'button'
  button.role = 'menuitem'
  button.className = 'close'
  button.ariaLabel = 'Close'
  button.textContent = '×'
  button.addEventListener('click', close)
  heading.append(button)
  return heading
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
    item.addEventListener('click', () => choose(value))
    column.append(item)
  }
  return column
}
