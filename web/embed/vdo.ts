// `vdo.js`, the script of older embeds: `vdo.add({o: OTP})` fills the element `#vdo<OTP>`, `vdo.add({otp, playbackInfo, container})` the
// container. It leaves nothing in the page but `vdo`.

import { createPlayerFrame, fitToVideo, languageOf, rootOfScript } from './player-frame.ts'
import { VdoPlayer } from './vdo-player.ts'

/** What a page says. Options of the player go with it; what else there is, such as the hosted service's `theme`, has no meaning here. */
type Added = { o?: string; otp?: string; container?: Element | string | null; [option: string]: unknown }

/** Before this script runs, the page's own snippet has put a `vdo` in its place whose `add` collects the calls in `d`. */
type Vdo = { add?: (added: Added) => void; d?: Added[]; getObjects?: () => OlderPlayer[] }

/** A player with what its older interface had besides `video`. */
class OlderPlayer extends VdoPlayer {
  addEventListener(name: string, listener: (event: Event) => void) {
    this.video.addEventListener(name === 'load' ? 'loadedmetadata' : name, listener)
  }
  removeEventListener(name: string, listener: (event: Event) => void) {
    this.video.removeEventListener(name === 'load' ? 'loadedmetadata' : name, listener)
  }
  play = () => this.video.play()
  pause = () => this.video.pause()
  seek(seconds: number) {
    this.video.currentTime = seconds
  }
  get currentTime() {
    return this.video.currentTime
  }
  get duration() {
    return this.video.duration
  }
  get ended() {
    return this.video.ended
  }
  set availablePlaybackRates(rates: number[]) {
    this.api.updatePlayerConfig({ playbackSpeedOptions: rates })
  }
}

const page: Window & { vdo?: Vdo; onVdoCipherAPIReady?: () => void } = window
const root = rootOfScript(document.currentScript, /(playerAssets\/.*)?vdo\.js$/)
const players: OlderPlayer[] = []
const vdo = page.vdo ?? {}
const added = vdo.d ?? []
for (const one of added) put(one)
page.vdo = Object.assign(vdo, {
  d: added,
  add(one: Added) {
    added.push(one)
    put(one)
  },
  getObjects: () => [...players],
})
// The page may define it in a script that comes later.
if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', () => page.onVdoCipherAPIReady?.())
else setTimeout(() => page.onVdoCipherAPIReady?.())

function put(one: Added) {
  const otp = one.otp ?? one.o ?? ''
  const frame = createPlayerFrame(root, otp, { lang: languageOf(findContainer(one, otp) ?? document.documentElement), ...one })
  const player = new OlderPlayer(frame)
  players.push(player)
  fitToVideo(frame, player)
  const fill = () => findContainer(one, otp)?.replaceChildren(frame)
  // A script in the page's head comes before the element that it fills.
  if (document.readyState === 'loading' && !findContainer(one, otp)) document.addEventListener('DOMContentLoaded', fill)
  else fill()
}

function findContainer({ container }: Added, otp: string): Element | null {
  if (container instanceof Element) return container
  return typeof container === 'string' ? document.querySelector(container) : document.getElementById(`vdo${otp}`)
}
