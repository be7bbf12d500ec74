import type { PlayerElements } from './elements.ts'
import { loadWhenUsed } from './load-when-used.ts'
import type { Setting, SettingsMenu } from './settings-menu.ts'

export type Settings = Pick<SettingsMenu, 'show' | 'close' | 'isOpen'>

/** The settings, whose menu is loaded when the viewer opens it, and at the latest when the video plays: then it also opens offline. */
export function createSettings({ settings: place, settingsButton: button, video }: PlayerElements): Settings {
  let offered: readonly Setting[] = []
  let menu: SettingsMenu | undefined
  const loadMenu = loadWhenUsed(async () => {
    const { createSettingsMenu } = await import('./settings-menu.ts')
    menu = createSettingsMenu(place, button)
    menu.show(offered)
    return menu
  })
  video.addEventListener('playing', () => loadMenu().catch(() => {}), { once: true })
  button.addEventListener('click', async () => {
    if (menu) menu.toggle()
    else (await loadMenu()).toggle()
  })
  return {
    close: () => menu?.close(),
    get isOpen() {
      return menu?.isOpen ?? false
    },
    show(settings) {
      offered = settings.filter(({ choices }) => choices.length > 1)
      button.hidden = offered.length === 0
      menu?.show(offered)
    },
  }
}
