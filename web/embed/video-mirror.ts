import type { Connection } from './connection.ts'
import type { SettableProperty, TimeRange, VideoState } from './messages.ts'
import type { PlayerVideo } from './reelgate.d.ts'

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
  defaultPlaybackRate: 1,
  preservesPitch: true,
  readyState: 0,
  networkState: 0,
  videoWidth: 0,
  videoHeight: 0,
  error: null,
  buffered: [],
  played: [],
  seekable: [],
}

/** The frame's video element, as the player last reported it; what is set can be read immediately. */
export class VideoMirror implements PlayerVideo {
  #connection: Connection
  #state = BEFORE_CONNECTION
  #loaded: readonly string[] = []
  #events = new EventTarget()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** For the player's messages. @param event undefined for the first one of a connection */
  receive(state: VideoState, loaded: readonly string[], event: string | undefined) {
    this.#state = state
    this.#loaded = loaded
    for (const name of event === undefined ? loaded : [event]) this.#events.dispatchEvent(new Event(name))
  }

  update(state: VideoState) {
    this.#state = state
  }

  /** The frame loads another video. */
  reset() {
    this.#state = BEFORE_CONNECTION
    this.#loaded = []
    this.#events.dispatchEvent(new Event('emptied'))
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
  async fastSeek(seconds: number): Promise<void> {
    this.currentTime = seconds
  }
  /** Has no effect: pages written for the hosted service set attributes that this player has by itself. */
  async setAttribute(_name: string, _value: string): Promise<void> {}

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
  get defaultPlaybackRate() {
    return this.#state.defaultPlaybackRate
  }
  set defaultPlaybackRate(rate: number) {
    this.#set('defaultPlaybackRate', Number(rate))
  }
  get preservesPitch() {
    return this.#state.preservesPitch
  }
  set preservesPitch(preserves: boolean) {
    this.#set('preservesPitch', Boolean(preserves))
  }
  get loop() {
    return this.#state.loop
  }
  set loop(loop: boolean) {
    this.#set('loop', Boolean(loop))
  }
  get readyState() {
    return this.#state.readyState
  }
  get networkState() {
    return this.#state.networkState
  }
  get videoWidth() {
    return this.#state.videoWidth
  }
  get videoHeight() {
    return this.#state.videoHeight
  }
  get error() {
    return this.#state.error
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
