// `player.js`: the element `<reelgate-player otp playbackInfo …>`, also as `<vdocipher-player>` (wire-contract.md, section 8).

import { THEME_OPTIONS, VIDEO_EVENTS } from './messages.ts'
import { API_EVENTS } from './player-api.ts'
import { createPlayerFrame, fitToVideo, languageOf, OPTIONS, rootOfScript } from './player-frame.ts'
import type { ReelgatePlayerElement } from './reelgate.d.ts'
import { createThemeProbe, type ThemeProbe } from './theme-probe.ts'
import { VdoPlayer } from './vdo-player.ts'

const root = rootOfScript(document.currentScript, /(player\/)?(v2\/)?player\.js$/)

class ReelgatePlayer extends HTMLElement implements ReelgatePlayerElement {
  static observedAttributes = ['otp', 'playbackinfo']
  #player: VdoPlayer | undefined
  #probe: ThemeProbe | undefined
  #shown: string | undefined
  #resolve: (player: VdoPlayer) => void = () => {}
  #next = this.#expectPlayer()

  /** Resolves when the player in it has answered, so never without the attribute `otp`. */
  getPlayer(): Promise<VdoPlayer> {
    return this.#next
  }

  connectedCallback() {
    if (!this.shadowRoot) this.attachShadow({ mode: 'open' })
    this.#show()
  }

  /** A page may move the element within itself, which reloads the frame. */
  disconnectedCallback() {
    queueMicrotask(() => {
      this.#remove()
      if (this.isConnected) this.#show()
    })
  }

  attributeChangedCallback() {
    queueMicrotask(() => this.isConnected && this.#show()) // both attributes have changed by then
  }

  #show() {
    const otp = this.getAttribute('otp')
    const playbackInfo = this.getAttribute('playbackInfo') ?? undefined
    if (!otp || !this.shadowRoot || otp === this.#shown) return
    this.#shown = otp
    // The frame shows why the viewer may not watch.
    if (this.#player) return void this.#player.api.loadVideo({ otp, playbackInfo }).catch(() => {})
    const probe = createThemeProbe(this, this.shadowRoot)
    const options = Object.fromEntries(OPTIONS.map((name) => [name, this.getAttribute(name)]))
    for (const name of THEME_OPTIONS) options[name] ??= probe.read()[name] || null
    options.lang ??= languageOf(this) ?? null
    const frame = createPlayerFrame(root, otp, options)
    this.shadowRoot.append(frame)
    const player = new VdoPlayer(frame)
    probe.onChange((theme) => {
      const changeable = THEME_OPTIONS.filter((name) => !this.hasAttribute(name)).map((name) => [name, theme[name]])
      player.api.updatePlayerConfig(Object.fromEntries(changeable)).catch(() => {})
    })
    this.#probe = probe
    this.#player = player
    fitToVideo(frame, player)
    for (const name of VIDEO_EVENTS) player.video.addEventListener(name, () => this.dispatchEvent(new Event(name)))
    for (const name of API_EVENTS)
      player.api.addEventListener(name, (detail) => void this.dispatchEvent(new CustomEvent(name, { detail })))
    player.ready.then(this.#resolve)
  }

  #expectPlayer() {
    return new Promise<VdoPlayer>((resolve) => {
      this.#resolve = resolve
    })
  }

  #remove() {
    this.#player?.close()
    this.#probe?.end()
    this.#player = undefined
    this.#shown = undefined
    this.#next = this.#expectPlayer()
    this.shadowRoot?.replaceChildren()
  }
}

window.VdoPlayer ??= VdoPlayer
// A class belongs to one name.
for (const [name, element] of [
  ['reelgate-player', ReelgatePlayer],
  ['vdocipher-player', class extends ReelgatePlayer {}],
] as const) {
  if (!customElements.get(name)) customElements.define(name, element)
}
