import {
  type Greeting,
  isGreeting,
  type MetaData,
  type PageMessage,
  type PlayerMessage,
  type PlayerMethod,
  type SettableProperty,
  type TimeRange,
  type VideoState,
} from '../embed/messages.ts'
import type { Playback } from './playback.ts'
import { type Refusal, refusalSentence } from './refusals.ts'
import type { SessionAnswer } from './wire.ts'

/** The video element's own events. Those of its metadata come when the session is open, long before the element has any. */
const EVENTS = [
  ...[
    'progress',
    'suspend',
    'abort',
    'error',
    'emptied',
    'stalled',
    'loadeddata',
    'canplay',
    'canplaythrough',
    'playing',
    'waiting',
  ],
  ...['seeking', 'seeked', 'ended', 'timeupdate', 'play', 'pause', 'ratechange', 'resize', 'volumechange'],
]
const METADATA_EVENTS = ['loadstart', 'durationchange', 'loadedmetadata']
const LOADING_EVENTS = new Set([...METADATA_EVENTS, 'loadeddata', 'canplay', 'canplaythrough'])

export type PageApi = {
  opened(answer: SessionAnswer): void
  /** The viewer may not watch, unless another try opens the session. */
  refused(refusal: Refusal): void
}

/** @param playback undefined until the session is open */
type Controlled = { video: HTMLVideoElement; playback(): Playback | undefined }

/**
 * Lets the page around the player play, pause and seek, and reports to it what the video element does (wire-contract.md, section 8).
 * Accepts messages only from the window that holds this frame.
 */
export function servePage({ video, playback }: Controlled): PageApi {
  const ports: MessagePort[] = []
  const pageLoad = crypto.randomUUID()
  const loaded: string[] = []
  const session = createSessionPromise()
  let metaData: MetaData | undefined

  if (parent !== window) {
    addEventListener('message', greeted)
    for (const name of EVENTS) video.addEventListener(name, () => report(name))
    sendReady()
  }
  return {
    opened({ video: { title, durationS, aspectRatio } }) {
      if (metaData) return
      metaData = { title, duration: durationS, aspectRatio }
      session.resolve()
      for (const name of METADATA_EVENTS) report(name)
    },
    refused(reason) {
      session.reject(new DOMException(refusalSentence(reason), 'NotAllowedError'))
    },
  }

  function sendReady() {
    const greeting: Greeting = { reelgate: 'ready', pageLoad }
    parent.postMessage(greeting, '*')
  }

  function greeted({ data, source, origin, ports: [port] }: MessageEvent) {
    if (source !== parent || !isFramingOrigin(origin) || !isGreeting(data)) return
    if (data.reelgate === 'hello') sendReady()
    if (data.reelgate === 'connect' && port) {
      port.onmessage = (message: MessageEvent<PageMessage>) => runMessage(port, message.data)
      ports.push(port)
      send(port, { state: readState(), loaded })
    }
  }

  function report(event: string) {
    if (LOADING_EVENTS.has(event) && !loaded.includes(event)) loaded.push(event)
    for (const port of ports) send(port, { event, state: readState(), loaded })
  }

  function send(port: MessagePort, message: PlayerMessage) {
    port.postMessage(message)
  }

  async function runMessage(port: MessagePort, message: PageMessage) {
    if ('set' in message) return set(message.set, message.value)
    const { call, method, argument } = message
    try {
      send(port, { answer: call, value: await runMethod(method, argument) })
    } catch (error) {
      const { name, message: text } = error instanceof Error ? error : new Error(String(error))
      send(port, { answer: call, error: { name, message: text } })
    }
  }

  async function runMethod(method: PlayerMethod, argument: unknown): Promise<unknown> {
    switch (method) {
      case 'play':
        return Promise.race([play(), session.refused()])
      case 'pause':
        return video.pause()
      case 'getMetaData':
        return readMetaData()
      case 'updatePlayerConfig':
        await session.opened()
        return playback()?.offerRates(readRates(argument))
    }
  }

  /** WebKit rejects a call that precedes the stream, though the video plays as soon as it is there. */
  function play(): Promise<void> {
    return video.play().catch((error) => {
      if (video.paused) throw error
      return video.play()
    })
  }

  /** Known while a session is open, and after it. @throws DOMException with the sentence that the viewer reads instead of the video */
  async function readMetaData(): Promise<MetaData> {
    if (!metaData) await session.opened()
    if (!metaData) throw new Error('the session is open without its metadata')
    return metaData
  }

  function set(property: SettableProperty, value: number | boolean) {
    if (typeof value !== typeof video[property] || (typeof value === 'number' && !Number.isFinite(value))) return
    if (property === 'currentTime') video.currentTime = Math.max(0, Number(value))
    if (property === 'volume') video.volume = Math.min(1, Math.max(0, Number(value)))
    if (property === 'muted') video.muted = Boolean(value)
    if (property === 'loop') video.loop = Boolean(value)
    if (property === 'playbackRate') {
      // A video that may not be watched has no speed.
      session.opened().then(
        () => playback()?.useRate(Number(value)),
        () => {},
      )
    }
  }

  function readState(): VideoState {
    const { currentTime, duration, paused, ended, seeking, muted, volume, playbackRate, loop } = video
    return {
      currentTime,
      duration: Number.isNaN(duration) && metaData ? metaData.duration : duration,
      ...{ paused, ended, seeking, muted, volume, playbackRate, loop },
      buffered: toRanges(video.buffered),
      played: toRanges(video.played),
      seekable: toRanges(video.seekable),
    }
  }
}

/** Whether the session is open. A refusal ends the waiting, until another attempt opens it. */
function createSessionPromise() {
  let resolve = () => {}
  let reject = (_refusal: DOMException) => {}
  const next = () =>
    new Promise<void>((onOpen, onRefusal) => {
      resolve = onOpen
      reject = onRefusal
    })
  let pending = next()
  let current = pending
  return {
    resolve() {
      resolve()
      current = pending
    },
    reject(refusal: DOMException) {
      reject(refusal)
      current = pending
      current.catch(() => {}) // no call may be waiting
      pending = next()
    },
    /** @throws DOMException with the sentence that the viewer reads instead of the video */
    opened: () => current,
    /** Never resolves. @throws as `opened` does */
    refused: () => current.then(() => new Promise<never>(() => {})),
  }
}

/** Safari and Chromium name the pages around a frame; where they do not, the window alone decides. */
function isFramingOrigin(origin: string): boolean {
  const [nearest] = location.ancestorOrigins ?? []
  return nearest === undefined || nearest === origin
}

function toRanges(ranges: TimeRanges): TimeRange[] {
  return Array.from({ length: ranges.length }, (_, at) => [ranges.start(at), ranges.end(at)])
}

function readRates(config: unknown): number[] {
  const rates = typeof config === 'object' && config !== null && 'playbackSpeedOptions' in config && config.playbackSpeedOptions
  return Array.isArray(rates) ? rates.filter((rate) => typeof rate === 'number' && rate >= 0.25 && rate <= 4) : []
}
