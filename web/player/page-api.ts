import {
  type ApiEvent,
  type Greeting,
  isGreeting,
  isPosition,
  type PageMessage,
  type PlayerMessage,
  type Position,
  SETTABLE_PROPERTIES,
  type SettableProperty,
  type TimeRange,
  VIDEO_EVENTS,
  type VideoState,
} from '../embed/messages.ts'
import type { MetaData, PlayerStatus } from '../embed/reelgate.d.ts'
import { NO_CAPTIONS } from './captions.ts'
import { labelElements, type PlayerElements } from './elements.ts'
import { randomId } from './encoding.ts'
import { replaceMessages } from './language.ts'
import { createPageMethods } from './page-methods.ts'
import type { Playback } from './playback.ts'
import { needsNewOtp, type Refusal, refusalSentence } from './refusals.ts'
import type { Screen, ScreenState } from './screen.ts'
import { AUTOMATIC } from './stream.ts'
import type { Theme } from './theme.ts'
import type { SessionAnswer } from './wire.ts'

/** The video element's own come much later, and are not reported. */
const METADATA_EVENTS = ['loadstart', 'durationchange', 'loadedmetadata']
const LOADING_EVENTS = new Set([...METADATA_EVENTS, 'loadeddata', 'canplay', 'canplaythrough'])

/** By code. The browser's own may contain addresses. */
const MEDIA_ERRORS = [
  '',
  'Playback was aborted.',
  'The network failed.',
  'The video cannot be decoded.',
  'The video is not supported.',
]

/** After a click on the button for it. */
const OTP_WITHIN_MS = 10_000
/** Where no script of ours is around: most of those pages do not listen, and one that does replaces the frame, whatever it shows. */
const RELOAD_WITHIN_MS = 3_000

type PageApi = {
  /** Whether a script of the page around uses the API. */
  isConnected(): boolean
  opened(answer: SessionAnswer): void
  /** Where the page knows that the viewer left this video, in seconds. */
  leftAtS(videoId: string): number | undefined
  /** The viewer may not watch, unless another try opens the session. */
  refused(refusal: Refusal): void
  /** Qualities or captions are known, or others show. */
  streamChanged(): void
  /** The viewer asks for the next lesson: the page loads it with an OTP. */
  askForNext(videoId: string): void
}

/** @param playback undefined until the session is open */
type Controlled = { elements: PlayerElements; screen: Screen; setTheme(changed: Theme): void; playback(): Playback | undefined }

/**
 * Lets the page around the player control it, and reports to it what the video element does (wire-contract.md, section 8).
 * Accepts messages only from the window that holds this frame.
 */
export function servePage({ elements, screen, setTheme, playback }: Controlled): PageApi {
  const { video } = elements
  const ports: MessagePort[] = []
  const pageLoad = randomId() // `randomUUID` needs a secure page, and an insecure one reports that it is
  const loaded: string[] = []
  const session = createSessionPromise()
  let waiting: (() => void)[] = []
  const reported = new Map<ApiEvent['name'], ApiEvent>()
  let metaData: MetaData | undefined
  let left: Position | undefined
  let openedVideoId: string | undefined
  const methods = createPageMethods({
    ...{ video, playback, setTheme, setMessages, opened, openedStream, refused: session.refused, untilReady },
  })

  if (parent !== window) {
    addEventListener('message', greeted)
    for (const name of VIDEO_EVENTS) if (!METADATA_EVENTS.includes(name)) video.addEventListener(name, () => report(name))
    screen.onShow(reportStatus)
    screen.setAskForOtp(askForOtp)
    sendReady()
  }
  return {
    isConnected: () => ports.length > 0,
    leftAtS: (videoId) => (left?.videoId === videoId ? left.atS : undefined),
    opened({ video: { id, title, durationS, aspectRatio } }) {
      if (metaData) return
      openedVideoId = id
      metaData = { title, duration: durationS, aspectRatio }
      session.resolve()
      for (const name of METADATA_EVENTS) report(name)
    },
    refused(reason) {
      session.reject(refusalError(reason))
    },
    streamChanged: reportStream,
    askForNext(videoId) {
      for (const port of ports) send(port, { apiEvent: { name: 'nextLesson', value: videoId } })
    },
  }

  function setMessages(messages: Readonly<Record<string, unknown>>) {
    replaceMessages(messages)
    labelElements(elements)
    screen.show(screen.shown)
    playback()?.show()
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
      takePosition(data.left)
      reportStatus(screen.shown)
      ports.push(port)
      if (toStatus(screen.shown) === 'otpNeeded') sendPosition(port)
      send(port, { state: readState(), loaded })
      for (const apiEvent of reported.values()) send(port, { apiEvent })
    }
  }

  function report(event: string) {
    if (LOADING_EVENTS.has(event) && !loaded.includes(event)) loaded.push(event)
    for (const port of ports) send(port, { event, state: readState(), loaded })
  }

  function reportApi(apiEvent: ApiEvent) {
    if (reported.get(apiEvent.name)?.value === apiEvent.value) return
    reported.set(apiEvent.name, apiEvent)
    for (const port of ports) send(port, { apiEvent })
  }

  /** A page that connects late sets where the video starts. */
  function takePosition(position: unknown) {
    if (left || !isPosition(position)) return
    left = position
    if (openedVideoId === left.videoId && video.readyState === 0) video.currentTime = left.atS
  }

  function sendPosition(port: MessagePort) {
    if (left) send(port, { left })
  }

  /** The page around gives one, or reloads itself. One that does neither has no button for it any more. */
  function askForOtp(refused: ScreenState) {
    screen.show({ state: 'loading' })
    for (const port of ports) send(port, { asksForOtp: true })
    if (ports.length === 0) askPageWithoutScript()
    const giveUp = () => {
      screen.setAskForOtp(undefined)
      if (screen.shown.state === 'loading') screen.show(refused)
    }
    setTimeout(giveUp, ports.length === 0 ? RELOAD_WITHIN_MS : OTP_WITHIN_MS)
  }

  function askPageWithoutScript() {
    const greeting: Greeting = { reelgate: 'otpNeeded' }
    parent.postMessage(greeting, '*')
    try {
      parent.location.reload()
    } catch {
      // a page of another origin: its own script may do so
    }
  }

  function reportStatus(shown: ScreenState) {
    if (shown.state === 'refused' && shown.left) left = shown.left
    if (toStatus(shown) === 'otpNeeded') for (const port of ports) sendPosition(port)
    reportApi({ name: 'statusChange', value: toStatus(shown) })
    wake()
  }

  function reportStream() {
    const opened = playback()
    if (!opened) return
    const { stream } = opened
    const chapter = opened.currentChapter()
    wake()
    const shown = stream.shownQuality()
    reportApi({ name: 'videoAdaptivenessChange', value: stream.chosenQuality() === AUTOMATIC })
    if (shown) reportApi({ name: 'videoQualityChange', value: shown.index })
    if (stream.audio.list().length > 1 || reported.has('audioTrackChange'))
      reportApi({ name: 'audioTrackChange', value: stream.audio.chosen() })
    reportApi({ name: 'captionVisibilityChange', value: stream.captions.chosen() !== NO_CAPTIONS })
    reportApi({ name: 'captionLanguageChange', value: stream.captions.language() ?? null })
    if (chapter !== undefined) reportApi({ name: 'chapterchange', value: chapter })
  }

  function send(port: MessagePort, message: PlayerMessage) {
    port.postMessage(message)
  }

  async function runMessage(port: MessagePort, message: PageMessage) {
    if ('set' in message) return set(message.set, message.value)
    const { call, method, argument } = message
    try {
      if (!Object.hasOwn(methods, method)) throw new TypeError('The player has no such method.')
      const value = await methods[method](argument)
      send(port, { answer: call, value, videoState: readState() })
    } catch (error) {
      const { name, message: text } = error instanceof Error ? error : new Error(String(error))
      send(port, { answer: call, error: { name, message: text } })
    }
  }

  /** @throws DOMException with the sentence that the viewer reads instead of the video */
  async function opened() {
    if (!metaData) await session.opened()
    const opened = playback()
    if (!metaData || !opened) throw new Error('the session is open without its video')
    return { metaData, playback: opened }
  }

  async function openedStream() {
    const { playback } = await opened()
    await until(() => playback.stream.qualities().length > 0)
    return playback.stream
  }

  function untilReady(): Promise<void> {
    return until(() => ['ready', 'playing', 'ended'].includes(toStatus(screen.shown)))
  }

  /** @throws DOMException with the sentence that the viewer reads instead of the video */
  async function until(isReached: () => boolean): Promise<void> {
    for (;;) {
      if (screen.shown.state === 'refused') throw refusalError(screen.shown.refusal)
      if (isReached()) return
      await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }

  function wake() {
    const woken = waiting
    waiting = []
    for (const resolve of woken) resolve()
  }

  function set(property: SettableProperty, value: number | boolean) {
    if (!SETTABLE_PROPERTIES.includes(property) || typeof value !== typeof video[property]) return
    if (typeof value === 'number' && !Number.isFinite(value)) return
    if (property === 'currentTime') video.currentTime = Math.max(0, Number(value))
    if (property === 'volume') video.volume = Math.min(1, Math.max(0, Number(value)))
    if (property === 'muted' || property === 'loop' || property === 'preservesPitch') video[property] = Boolean(value)
    if (property === 'playbackRate' || property === 'defaultPlaybackRate') {
      // A video that may not be watched has no speed.
      session.opened().then(
        () => playback()?.useRate(Number(value)),
        () => {},
      )
    }
  }

  function readState(): VideoState {
    const { currentTime, duration, paused, ended, seeking, muted, volume, playbackRate, loop } = video
    const { defaultPlaybackRate, preservesPitch, readyState, networkState, videoWidth, videoHeight, error } = video
    return {
      currentTime,
      duration: Number.isNaN(duration) && metaData ? metaData.duration : duration,
      ...{ paused, ended, seeking, muted, volume, playbackRate, loop },
      ...{ defaultPlaybackRate, preservesPitch, readyState, networkState, videoWidth, videoHeight },
      error: error && { code: error.code, message: MEDIA_ERRORS[error.code] ?? '' },
      buffered: toRanges(video.buffered),
      played: toRanges(video.played),
      seekable: toRanges(video.seekable),
    }
  }
}

function refusalError(refusal: Refusal): DOMException {
  return new DOMException(refusalSentence(refusal), 'NotAllowedError')
}

function toStatus(shown: ScreenState): PlayerStatus {
  if (shown.state === 'refused') return needsNewOtp(shown.refusal) ? 'otpNeeded' : 'refused'
  return shown.state === 'playing' && shown.ended ? 'ended' : shown.state
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
export function isFramingOrigin(origin: string): boolean {
  const [nearest] = location.ancestorOrigins ?? []
  return nearest === undefined || nearest === origin
}

function toRanges(ranges: TimeRanges): TimeRange[] {
  return Array.from({ length: ranges.length }, (_, at) => [ranges.start(at), ranges.end(at)])
}
