// `player.js`: the element `<vdocipher-player otp playbackInfo autoplay litemode cclanguage loop>` (wire-contract.md, section 8).

import { createPlayerFrame, fitToVideo, rootOfScript } from './player-frame.ts'
import { VdoPlayer } from './vdo-player.ts'

const root = rootOfScript(document.currentScript, /(player\/)?(v2\/)?player\.js$/)

/** Its attributes by the names of the player page's options; HTML knows no capitals in names of attributes. */
const ATTRIBUTES = {
  playbackinfo: 'playbackInfo',
  autoplay: 'autoplay',
  litemode: 'litemode',
  cclanguage: 'ccLanguage',
  loop: 'loop',
  controls: 'controls',
  primarycolor: 'primaryColor',
}

class VdocipherPlayer extends HTMLElement {
  static observedAttributes = ['otp']
  #resolvePlayer: (player: VdoPlayer) => void = () => {}
  #player = new Promise<VdoPlayer>((resolve) => {
    this.#resolvePlayer = resolve
  })

  /** Resolves when the player in it has answered, so never without the attribute `otp`. */
  getPlayer(): Promise<VdoPlayer> {
    return this.#player
  }

  connectedCallback() {
    if (!this.shadowRoot) this.attachShadow({ mode: 'open' })
    if (!this.shadowRoot?.hasChildNodes()) this.#showPlayer()
  }

  attributeChangedCallback() {
    if (this.isConnected) this.#showPlayer()
  }

  #showPlayer() {
    const otp = this.getAttribute('otp')
    if (!otp || !this.shadowRoot) return
    const options = Object.entries(ATTRIBUTES).map(([attribute, option]) => [option, this.getAttribute(attribute)])
    const frame = createPlayerFrame(root, otp, Object.fromEntries(options))
    const style = document.createElement('style')
    style.textContent = ':host{display:block}:host([hidden]){display:none}'
    this.shadowRoot.replaceChildren(style, frame)
    const player = new VdoPlayer(frame)
    fitToVideo(frame, player)
    player.ready.then(this.#resolvePlayer)
  }
}

const page: Window & { VdoPlayer?: unknown } = window
page.VdoPlayer ??= VdoPlayer
if (!customElements.get('vdocipher-player')) customElements.define('vdocipher-player', VdocipherPlayer)
