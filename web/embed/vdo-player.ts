import { type Connection, connect } from './connection.ts'
import type { MetaData, SettableProperty, TimeRange, VideoState } from './messages.ts'

type Listener = (event: Event) => void

const BEFORE_CONNECTION: VideoState = {
  currentTime: 0,
  duration: Number.NaN,
  paused: true,
  ended: false,
  seeking: false,
  muted: false,
  volume: 1,
  playbackRate: 1,
  loop: false,
  buffered: [],
  played: [],
  seekable: [],
}

const players = new WeakMap<HTMLIFrameElement, VdoPlayer>()

/**
 * A page's hold on the player in one of its frames: `video` mirrors the frame's video element, `api` is what a video element has not.
 * Calls made before the frame has loaded wait for it (wire-contract.md, section 8).
 */
export class VdoPlayer {
  readonly video: VideoMirror
  readonly api: PlayerApi
  /** Resolves to this player when the frame has answered. */
  readonly ready: Promise<VdoPlayer>

  /** @throws TypeError for an element that is no frame and holds none; Error for one that has its player already */
  constructor(element: Element) {
    const frame = findFrame(element)
    if (players.has(frame)) throw new Error('This frame has its VdoPlayer. Use VdoPlayer.getInstance(frame) to get it.')
    players.set(frame, this)
    const connection = connect(frame, (state, loaded, event) => this.video.receive(state, loaded, event))
    this.video = new VideoMirror(connection)
    this.api = {
      getMetaData: async () => (await connection.call('getMetaData')) as MetaData,
      updatePlayerConfig: async (config) => void (await connection.call('updatePlayerConfig', config)),
    }
    this.ready = connection.connected.then(() => this)
  }

  static getInstance(element: Element): VdoPlayer {
    return players.get(findFrame(element)) ?? new VdoPlayer(element)
  }
}

export type PlayerApi = {
  getMetaData(): Promise<MetaData>
  /** @param config `playbackSpeedOptions`: the speeds that the viewer may choose from, such as `[0.75, 1, 1.5]` */
  updatePlayerConfig(config: { playbackSpeedOptions?: number[] }): Promise<void>
}

/** The frame's video element, as the player last reported it; what is set can be read immediately. */
export class VideoMirror {
  #connection: Connection
  #state = BEFORE_CONNECTION
  #loaded: readonly string[] = []
  #events = new EventTarget()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** For the player's messages. */
  receive(state: VideoState, loaded: readonly string[], event: string | undefined) {
    this.#state = state
    const events = event === undefined ? loaded.filter((name) => !this.#loaded.includes(name)) : [event]
    this.#loaded = loaded
    for (const name of events) this.#events.dispatchEvent(new Event(name))
  }

  /** A loading event that has happened is delivered to a listener that comes after it. */
  addEventListener(name: string, listener: Listener, options?: AddEventListenerOptions | boolean) {
    this.#events.addEventListener(name, listener, options)
    if (this.#loaded.includes(name)) queueMicrotask(() => listener(new Event(name)))
  }

  removeEventListener(name: string, listener: Listener, options?: EventListenerOptions | boolean) {
    this.#events.removeEventListener(name, listener, options)
  }

  async play(): Promise<void> {
    await this.#connection.call('play')
  }
  async pause(): Promise<void> {
    await this.#connection.call('pause')
  }

  get currentTime() {
    return this.#state.currentTime
  }
  set currentTime(seconds: number) {
    this.#set('currentTime', Number(seconds))
  }
  get duration() {
    return this.#state.duration
  }
  get paused() {
    return this.#state.paused
  }
  get ended() {
    return this.#state.ended
  }
  get seeking() {
    return this.#state.seeking
  }
  get muted() {
    return this.#state.muted
  }
  set muted(muted: boolean) {
    this.#set('muted', Boolean(muted))
  }
  get volume() {
    return this.#state.volume
  }
  set volume(volume: number) {
    this.#set('volume', Number(volume))
  }
  get playbackRate() {
    return this.#state.playbackRate
  }
  set playbackRate(rate: number) {
    this.#set('playbackRate', Number(rate))
  }
  get loop() {
    return this.#state.loop
  }
  set loop(loop: boolean) {
    this.#set('loop', Boolean(loop))
  }
  get buffered() {
    return timeRanges(this.#state.buffered)
  }
  get played() {
    return timeRanges(this.#state.played)
  }
  get seekable() {
    return timeRanges(this.#state.seekable)
  }

  #set(property: SettableProperty, value: number | boolean) {
    this.#state = { ...this.#state, [property]: value }
    this.#connection.set(property, value)
  }
}

function timeRanges(ranges: readonly TimeRange[]): TimeRanges {
  const at = (index: number) => {
    const range = ranges[index]
    if (!range) throw new DOMException(`There are ${ranges.length} ranges, so none has the index ${index}.`, 'IndexSizeError')
    return range
  }
  return { length: ranges.length, start: (index) => at(index)[0], end: (index) => at(index)[1] }
}

/** A frame, or the one inside `<vdocipher-player>`. */
function findFrame(element: Element): HTMLIFrameElement {
  const frame = element instanceof HTMLIFrameElement ? element : element?.shadowRoot?.querySelector('iframe')
  if (!frame) throw new TypeError('VdoPlayer needs an <iframe> or a <vdocipher-player> element.')
  return frame
}
