import type { Connection } from './connection.ts'
import { fillViewport } from './fill-viewport.ts'
import { type ApiEvent, type PlayerMethod, THEME_OPTIONS } from './messages.ts'
import type { ApiEvents, PlayerApi, ThemeOption } from './reelgate.d.ts'

type EventName = keyof ApiEvents
type Listener = (value: ApiEvents[EventName]) => void

export const API_EVENTS = [
  ...(['fullscreenChange', 'videoAdaptivenessChange', 'videoQualityChange'] as const),
  ...(['statusChange', 'captionVisibilityChange', 'captionLanguageChange', 'chapterchange', 'audioTrackChange'] as const),
  'nextLesson',
] as const satisfies readonly EventName[]

/** @param beforeLoad called when another video replaces this one */
export function createPlayerApi(frame: HTMLIFrameElement, connection: Connection, beforeLoad: () => void) {
  const listeners = new Map<EventName, Set<Listener>>(API_EVENTS.map((name) => [name, new Set<Listener>()]))
  let status: ApiEvents['statusChange'] | undefined
  let isFullscreen = false
  /** Undoes the filling of the viewport, where the browser has no full screen. */
  let unfill: (() => void) | undefined
  /** As it was last changed, for the next video in the frame. */
  const theme = new Map<ThemeOption, string>()
  const life = new AbortController()
  // Also fired when the player enters full screen by its own button: then its frame is this document's full-screen element.
  document.addEventListener('fullscreenchange', reportFullscreen, { signal: life.signal })
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && fill(false), { signal: life.signal })

  const call = <T>(method: PlayerMethod, argument?: unknown) => connection.call(method, argument) as Promise<T>
  const api: PlayerApi = {
    getMetaData: () => call('getMetaData'),
    getTotalPlayed: () => call('getTotalPlayed'),
    getTotalCovered: () => call('getTotalCovered'),
    getTotalCoveredArray: () => call('getTotalCoveredArray'),
    getCaptionLanguages: () => call('getCaptionLanguages'),
    setCaptionLanguage: (language) => call('setCaptionLanguage', language),
    hideCaptions: () => call('hideCaptions'),
    getAudioTracks: () => call('getAudioTracks'),
    setAudioTrack: (track) => call('setAudioTrack', track),
    setTranscript: (shown) => call('setTranscript', shown),
    getVideoQualities: () => call('getVideoQualities'),
    setVideoQuality: (id) => call('setVideoQuality', id),
    enableAdaptiveVideo: () => call('enableAdaptiveVideo'),
    getChapters: () => call('getChapters'),
    setFullscreen,
    async loadVideo({ otp, playbackInfo }) {
      if (typeof otp !== 'string' || otp === '') throw new TypeError('loadVideo needs an otp.')
      connection.load(addressOf(frame, { otp, playbackInfo, ...Object.fromEntries(theme) }))
      status = undefined
      beforeLoad()
      await call('untilReady')
    },
    updatePlayerConfig(config) {
      for (const name of THEME_OPTIONS) if (typeof config?.[name] === 'string') theme.set(name, config[name])
      return call('updatePlayerConfig', config)
    },
    addEventListener(name, listener) {
      // Listeners are kept by name, so each is only called with its event's value.
      const added = listener as Listener
      listenersOf(name).add(added)
      if (name === 'statusChange' && status) {
        const now = status
        queueMicrotask(() => listenersOf(name).has(added) && added(now))
      }
      return () => api.removeEventListener(name, listener)
    },
    removeEventListener: (name, listener) => void listenersOf(name).delete(listener as Listener),
  }
  return {
    api,
    receive({ name, value }: ApiEvent) {
      if (name === 'statusChange') status = value
      dispatch(name, value)
    },
    /** @returns whether the page listens */
    asksForOtp(): boolean {
      dispatch('statusChange', 'otpNeeded')
      return listenersOf('statusChange').size > 0
    },
    /** The player in the frame offers full screen when it knows that this page can do it. */
    opened: () => mayFill() && connection.reportFullscreen(unfill !== undefined),
    fill,
    close() {
      life.abort()
      unfill?.()
    },
  }

  function listenersOf(name: EventName): Set<Listener> {
    const found = listeners.get(name)
    if (!found) throw new TypeError(`There is no event '${name}'. Events are ${API_EVENTS.join(', ')}.`)
    return found
  }

  function dispatch(name: EventName, value: ApiEvents[EventName]) {
    for (const listener of [...listenersOf(name)]) listener(value)
  }

  /** The frame itself, not its player: a click in this page gives the frame's page no right to full screen. */
  async function setFullscreen(fullscreen: boolean): Promise<boolean> {
    if (fullscreen && !isNowFullscreen()) {
      if (mayFill()) fill(true)
      else if (!document.fullscreenEnabled) throw new DOMException('This page may not use full screen.', 'NotSupportedError')
      else
        await frame.requestFullscreen().catch(() => {
          throw new DOMException('Full screen needs a click or key press in this page just before.', 'NotAllowedError')
        })
    } else if (!fullscreen && unfill) fill(false)
    else if (!fullscreen && isNowFullscreen()) await document.exitFullscreen()
    return isNowFullscreen()
  }

  /** Only where the page would allow the browser's own full screen, and there is none, as on iPhones. */
  function mayFill(): boolean {
    return !document.fullscreenEnabled && (frame.allowFullscreen || /\bfullscreen\b/.test(frame.allow))
  }

  function fill(isWanted: boolean) {
    if (isWanted === (unfill !== undefined) || !mayFill()) return
    if (isWanted) unfill = fillViewport(frame)
    else {
      unfill?.()
      unfill = undefined
    }
    connection.reportFullscreen(isWanted)
    reportFullscreen()
  }

  function isNowFullscreen(): boolean {
    if (unfill) return true
    const root = frame.getRootNode()
    return (root instanceof ShadowRoot ? root : document).fullscreenElement === frame
  }

  function reportFullscreen() {
    if (isFullscreen === isNowFullscreen()) return
    isFullscreen = !isFullscreen
    dispatch('fullscreenChange', isFullscreen)
  }
}

/** The frame's own address with another OTP and other options, and from the beginning of its video. */
function addressOf({ src }: HTMLIFrameElement, options: Readonly<Record<string, string | undefined>>): string {
  const address = new URL(src)
  for (const name of ['session', 't', 'playbackInfo']) address.searchParams.delete(name)
  for (const [name, value] of Object.entries(options)) {
    if (value) address.searchParams.set(name, value)
    else address.searchParams.delete(name)
  }
  return address.href
}
