import { connect } from './connection.ts'
import { createPlayerApi } from './player-api.ts'
import type * as Public from './reelgate.d.ts'
import { VideoMirror } from './video-mirror.ts'

const players = new WeakMap<HTMLIFrameElement, VdoPlayer>()

/**
 * A page's hold on the player in one of its frames: `video` mirrors the frame's video element, `api` is what a video element has not.
 * Calls made before the frame has loaded wait for it (wire-contract.md, section 8).
 */
export class VdoPlayer implements Public.VdoPlayer {
  readonly video: VideoMirror
  readonly api: Public.PlayerApi
  /** Resolves to this player when the frame has answered. */
  readonly ready: Promise<VdoPlayer>
  /** Ends the connection of a frame that was removed: open calls are rejected. */
  readonly close: () => void

  /** @throws TypeError for an element that is no frame and holds none; Error for one that has its player already */
  constructor(element: Element) {
    const frame = findFrame(element)
    if (players.has(frame)) throw new Error('This frame has its VdoPlayer. Use VdoPlayer.getInstance(frame) to get it.')
    players.set(frame, this)
    const connection = connect(frame, {
      video: (state, loaded, event) => this.video.receive(state, loaded, event),
      state: (state) => this.video.update(state),
      api: (event) => receive(event),
      asksForOtp: () => asksForOtp(),
      opened: () => opened(),
      fullscreen: (isWanted) => fill(isWanted),
    })
    const { api, receive, asksForOtp, opened, fill, close } = createPlayerApi(frame, connection, () => this.video.reset())
    this.video = new VideoMirror(connection)
    this.api = api
    this.ready = connection.connected.then(() => this)
    this.close = () => {
      connection.close()
      close()
    }
  }

  static getInstance(element: Element): VdoPlayer {
    return players.get(findFrame(element)) ?? new VdoPlayer(element)
  }
}

/** A frame, or the one inside `<reelgate-player>`. */
function findFrame(element: Element): HTMLIFrameElement {
  const frame = element instanceof HTMLIFrameElement ? element : element?.shadowRoot?.querySelector('iframe')
  if (!frame) throw new TypeError('VdoPlayer needs an <iframe>, a <reelgate-player> or a <vdocipher-player> element.')
  return frame
}
