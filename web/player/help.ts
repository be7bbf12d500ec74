import { loadWhenUsed } from './load-when-used.ts'

export type Help = { show(): void; readonly isOpen: boolean }

/** The list of keys, loaded when it is first shown. */
export function createHelp(container: HTMLElement): Help {
  let shown: HTMLDialogElement | undefined
  const load = loadWhenUsed(async () => (await import('./key-list.ts')).createKeyList(container))
  return {
    async show() {
      shown = await load().catch(() => undefined) // no connection, or the server has another version of the player since
      if (shown && !shown.open) shown.showModal()
    },
    get isOpen() {
      return shown?.open ?? false
    },
  }
}
