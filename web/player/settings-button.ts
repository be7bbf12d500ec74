import type { PlayerElements } from './elements.ts'
import { message } from './language.ts'
import { loadWhenUsed } from './load-when-used.ts'
import type { Offer, SettingsPage } from './settings.ts'
import type { SettingsMenu } from './settings-menu.ts'
import { showOnTop } from './top-layer.ts'

export type Settings = { show(offer: Offer): void; openPage(page: SettingsPage): void; close(): void; readonly isOpen: boolean }

/** The settings, whose menu is loaded when the viewer opens it, and at the latest when the video plays: then it also opens offline. */
export function createSettings({ settings: container, settingsButton: button, video }: PlayerElements): Settings {
  let offer: Offer = { settings: [], actions: [] }
  let menu: SettingsMenu | undefined
  const loadMenu = loadWhenUsed(async () => {
    const { createSettingsMenu } = await import('./settings-menu.ts')
    menu = createSettingsMenu(container, button, () => offer)
    return menu
  })
  video.addEventListener('playing', () => loadMenu().catch(() => {}), { once: true })
  button.addEventListener('click', () => (menu ? menu.toggle() : loadMenu().then(({ toggle }) => toggle(), apologize)))

  /** No connection, or the server has another version of the player since. */
  function apologize() {
    container.textContent = message('settings-failed')
    showOnTop(container, true)
    for (const type of ['pointerdown', 'keydown']) {
      document.addEventListener(type, () => menu ?? showOnTop(container, false), { capture: true, once: true })
    }
  }

  return {
    show(next) {
      offer = { ...next, settings: next.settings.filter(({ choices }) => choices.length > 1) }
      button.hidden = offer.settings.length === 0
      menu?.draw()
    },
    openPage: (page) => void loadMenu().then((loaded) => loaded.openPage(page), apologize),
    close: () => menu?.close(),
    get isOpen() {
      return !container.hidden
    },
  }
}
