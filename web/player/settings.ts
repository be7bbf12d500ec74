/** One choice among several: the qualities, the speeds. `chosen` is a value of `choices`. */
export type Setting = {
  name: string
  choices: readonly { value: number; label: string }[]
  chosen: number
  choose: (value: number) => void
  /** Of the choices, where it is not the player's. */
  language?: string
  /** A page of its own, which an entry of the menu opens. */
  page?: { title: string; load(): Promise<SettingsPage> }
}

/** More settings than the menu has room for, in its place. */
export type SettingsPage = {
  title: string
  /** Shows what is chosen. */
  sample?: HTMLElement
  settings(): readonly Setting[]
  actions: readonly Action[]
}

/** `isInBar`: the control bar has a button for it, unless it is small. `page`: it opens that one. */
export type Action = { label: string; isInBar?: boolean } & ({ run: () => void } | { page: SettingsPage })

/** What the menu offers now. */
export type Offer = { settings: readonly Setting[]; actions: readonly Action[] }
