import type { Chapter } from '../embed/reelgate.d.ts'
import { NO_CAPTIONS } from './captions.ts'
import type { Chapters } from './chapters.ts'
import { type PlayerElements, showDuration } from './elements.ts'
import type { Floating } from './floating.ts'
import type { Fullscreen } from './fullscreen.ts'
import type { Help } from './help.ts'
import { message } from './language.ts'
import { savesData } from './line-speed.ts'
import { loadWhenUsed } from './load-when-used.ts'
import { showMediaSession } from './media-session.ts'
import { readSettings, rememberPosition } from './memory.ts'
import type { PlayerOptions } from './options.ts'
import { posterUrl } from './play-client.ts'
import { createPlaybackSettings, type PlaybackSettings } from './playback-settings.ts'
import type { Signer } from './proof.ts'
import { mayResume, type Refusal } from './refusals.ts'
import { offerBeginning } from './resume-offer.ts'
import type { Screen } from './screen.ts'
import { createSessionReports } from './session-reports.ts'
import type { SettingsPage } from './settings.ts'
import type { Settings } from './settings-button.ts'
import { createSlotWait } from './slot-wait.ts'
import { createStallNotice, type StallNotice } from './stall-notice.ts'
import { openStream, type Stream } from './stream.ts'
import { startTicker } from './ticker.ts'
import type { Transcript } from './transcript.ts'
import { measureViewQuality } from './view-quality.ts'
import { keepScreenOn } from './wake-lock.ts'
import { showWatermarks, type WatermarkGuard } from './watermark-overlay.ts'
import type { PlayState, SessionAnswer } from './wire.ts'

const SAVE_POSITION_EVERY_MS = 5_000
/** A paused video so near to its end is at its end. */
const END_WITHIN_S = 0.1

type PlaybackDeps = {
  elements: PlayerElements
  screen: Screen
  floating: Floating
  fullscreen: Fullscreen
  help: Help
  menu: Settings
  loadCaptionStyle(): Promise<SettingsPage>
  options: PlayerOptions
  root: URL
  /** When playback was asked for before the session was open; undefined: it was not. */
  askedMs: () => number | undefined
  /** Called on the viewer's click when this page was replaced by another one. */
  playHere: (atS: number) => void
  /** Qualities or captions are known, or others show. */
  streamChanged: () => void
}

/** What keys and the page around the player may change. */
export type Playback = Pick<
  PlaybackSettings,
  'rates' | 'offerRates' | 'chooseRate' | 'useRate' | 'toggleCaptions' | 'chooseAudio' | 'show'
> & {
  readonly stream: Pick<
    Stream,
    'audio' | 'captions' | 'qualities' | 'chosenQuality' | 'shownQuality' | 'chooseQuality' | 'frameRate'
  >
  /** @returns whether a watermarked video has to wait, because it is not drawn; it plays when it is */
  playWhenDrawn(): boolean
  pause(): void
  readonly chapters: readonly Chapter[]
  /** Null: before the first one; undefined: the video has none, or what shows them is not loaded yet. */
  currentChapter(): Chapter | null | undefined
  /** @returns what the viewer reads of it */
  stepChapter(steps: 1 | -1): string | undefined
  /** @param isShown missing: the other way round. Resolves when it is. */
  showTranscript(isShown?: boolean): Promise<void>
}

/** Where the video starts. `isResumed`: because the viewer left it there. */
export type Start = { atS: number; isResumed: boolean }

/** Plays one opened session on this page until it ends: stream, beats, watermarks, and what the screen shows meanwhile. */
export function startPlayback(deps: PlaybackDeps, signer: Signer, answer: SessionAnswer, { atS, isResumed }: Start): Playback {
  const { elements, screen, menu, options, root } = deps
  const { video } = elements
  const { session } = answer
  const life = new AbortController()
  /** The browser's own controls, a media key or a script can ask before the session is open. */
  const wasAskedToPlay = !video.paused
  let hasStarted = false
  let startAtS = atS
  let watermarks: WatermarkGuard | undefined
  const { language = '', chapters: listed = [] } = answer.video.chapters ?? {}
  const chapters = listed.map(({ startS, title }) => ({ startTime: startS, title }))
  let shownChapters: Chapters | undefined
  let transcript: Transcript | undefined
  let opensTranscript = options.transcript
  const loadTranscript = loadWhenUsed(async () => {
    const { createTranscript } = await import('./transcript.ts')
    transcript = createTranscript(elements, stream.captions, life.signal)
    return transcript
  })

  const quality = measureViewQuality({
    ...{ video, signal: life.signal, askedMs: deps.askedMs() },
    renditionId: () => stream.renditionId(),
    network: () => navigator.connection?.effectiveType,
  })
  const stall = createStallNotice(screen, video, () => hasStarted)
  const reports = createSessionReports({
    ...{ signer, root, session, video, playState },
    beatEveryMs: answer.beatEveryMs,
    signal: life.signal,
    hasStarted: () => hasStarted,
    renditionId: () => stream.renditionId(),
    readQuality: quality.read,
    onRefused: refused,
  })
  const stream = openStream(
    {
      ...{ video, signer, session, captionLanguage: options.captionLanguage ?? (readSettings().captions || undefined) },
      audioLanguage: readSettings().audio,
      playlist: new URL(`play/${session}/playlist/main`, root),
    },
    {
      waiting(url, waiting) {
        stall.setWaiting(url, waiting)
        settings.setMaxRate(stall.maxRate())
        stall.update()
      },
      keyReleased: reports.keyReleased,
      refused,
      qualityChanged: showSettings,
      captionsChanged,
    },
  )
  const mayFloat = answer.mayFloat && deps.floating.allow(elements.floatButton)
  if (answer.mayFloat) deps.fullscreen.allowBareVideo()
  const settings = createPlaybackSettings({ ...deps, actions }, stream, video, answer.maxSpeed)
  const slotWait = createSlotWait(
    (retryInS) => screen.show({ state: 'waiting', waiting: { code: 'stream-limit', retryInS } }),
    () => void takeSlot(),
  )
  const position = rememberPositions(video, answer, { signal: life.signal, hasStarted: () => hasStarted })
  showVideo(deps, signer, answer, life.signal)
  keepScreenOn(video, life.signal)
  const stopTicker = startTicker(tick)
  listenToVideo(deps, { signal: life.signal, start, play, tick, stall, settings })
  playOnAfterPageCache(video, play, life.signal)
  showStoryboardWhenUsed()
  if (chapters.length > 0) void showChapters().catch(() => {}) // without a connection: the video itself is not there, either
  screen.show({ state: 'ready' })
  if (isResumed) offerBeginning(elements, atS, startOver, life.signal)
  if (options.autoplay || wasAskedToPlay) play()
  else if (!savesData()) whenSeen(video, () => stream.preload(startAtS), life.signal)
  return Object.assign(settings, { stream, playWhenDrawn, pause, chapters, currentChapter, stepChapter, showTranscript })

  async function showChapters() {
    const loaded = await import('./chapters.ts')
    if (life.signal.aborted) return
    shownChapters = loaded.showChapters(elements, {
      ...{ chapters, language, durationS: answer.video.durationS, signal: life.signal },
      changed: showSettings,
      closeMenu: menu.close,
      openPage: () => shownChapters && menu.openPage(shownChapters.page),
    })
    showSettings()
  }

  function showStoryboardWhenUsed() {
    const range = elements.controller.querySelector<HTMLElement>('media-time-range')
    const path = answer.video.storyboard
    if (!range || path === undefined) return
    const url = new URL(path, root)
    const load = loadWhenUsed(async () => {
      const { showStoryboard } = await import('./storyboard.ts')
      await showStoryboard({ range, video, signer, session, url, signal: life.signal })
    })
    const show = () => void load().catch(() => {}) // the next use tries again
    for (const type of ['pointerenter', 'focusin']) range.addEventListener(type, show, { signal: life.signal })
  }

  function currentChapter() {
    return shownChapters?.current()
  }

  function stepChapter(steps: 1 | -1) {
    return shownChapters?.step(steps)
  }

  async function showTranscript(isShown?: boolean, takesFocus = true) {
    opensTranscript = false
    const { show, isOpen } = await loadTranscript()
    show(isShown ?? !isOpen(), takesFocus)
  }

  function playWhenDrawn() {
    return watermarks?.playWhenDrawn() ?? false
  }

  function showSettings() {
    document.body.toggleAttribute('data-audio-only', isAudioOnly())
    elements.title.toggleAttribute('noautohide', isAudioOnly())
    settings.show()
    deps.streamChanged()
  }

  function captionsChanged() {
    if (stream.captions.chosen() !== NO_CAPTIONS) void deps.loadCaptionStyle().catch(() => {})
    transcript?.update()
    if (opensTranscript && stream.captions.list().length > 0) void showTranscript(true, false).catch(() => {})
    showSettings()
  }

  function isAudioOnly(): boolean {
    return stream.qualities()[0]?.heightPx === 0
  }

  function actions() {
    const float = { label: message('picture-in-picture'), run: deps.floating.toggle, isInBar: true }
    const chapterPage = shownChapters ? [{ label: message('chapters'), page: shownChapters.page }] : []
    const readCaptions = { label: message('transcript'), run: () => void showTranscript().catch(() => {}) }
    return [
      ...chapterPage,
      ...(stream.captions.list().length > 0 ? [readCaptions] : []),
      ...(mayFloat && hasStarted && !isAudioOnly() ? [float] : []),
      { label: message('keys'), run: deps.help.show },
    ]
  }

  function play() {
    if (!video.paused) start() // an element that is already waiting to play fires no second play event
    video.play().catch(() => {}) // refused autoplay or a stop in between: the screen shows what the element reports
  }

  function pause() {
    watermarks?.stayPaused()
    video.pause()
  }

  /** After a pause that was not the viewer's: a browser that wants a click for it gets a button for that. */
  function playDrawn() {
    video.play().catch(({ name }) => name === 'NotAllowedError' && screen.show({ state: 'ready' }))
  }

  /** On every play, not only the first: after a pause another screen may have the slot, and the beat asks for it again. */
  function start() {
    if (hasStarted) return reports.beat()
    if (answer.marks.length > 0) {
      watermarks ??= showWatermarks(elements.controller, video, answer.marks, {
        onBlocked: () => refused({ code: 'watermark-blocked' }),
        play: playDrawn,
      })
      if (!watermarks.mayPlay()) return
    }
    hasStarted = true
    if (document.activeElement === elements.bigPlay) elements.controller.focus({ preventScroll: true })
    elements.bigPlay.hidden = true
    stream.start(video.currentTime > 0 ? video.currentTime : startAtS)
  }

  function startOver() {
    startAtS = 0
    if (hasStarted) video.currentTime = 0
    play()
  }

  function tick() {
    position.saveIfDue()
    reports.tick()
    stall.update()
  }

  function playState(): PlayState {
    if (video.ended) return 'ended'
    if (video.paused || !hasStarted) return 'paused'
    return stall.isStalled() ? 'stalled' : 'playing'
  }

  function refused(refusal: Refusal) {
    if (life.signal.aborted) return
    if (quality.failed(refusal.code)) reports.failed()
    pause()
    menu.close()
    if (!mayResume(refusal)) deps.floating.end()
    if (!mayResume(refusal)) deps.fullscreen.end()
    if (refusal.code === 'stream-limit' && slotWait.begin(refusal.waitMs)) return
    const atS = hasStarted ? video.currentTime : startAtS
    const left = { videoId: answer.video.id, atS: video.ended ? 0 : atS }
    if (!mayResume(refusal)) end()
    screen.show({ state: 'refused', refusal, left, onAction: () => resume(refusal, atS) })
  }

  /** Asks before it plays on, so that the picture does not move when it is refused again. */
  async function takeSlot() {
    if (!(await reports.requestSlot())) return
    slotWait.end()
    playOn()
  }

  function resume(refusal: Refusal, atS: number) {
    if (refusal.code === 'page-replaced') return deps.playHere(atS)
    if (!mayResume(refusal)) return location.reload()
    playOn()
  }

  function playOn() {
    screen.show({ state: 'playing' })
    stream.start(video.currentTime > 0 ? video.currentTime : startAtS)
    play()
  }

  function end() {
    life.abort()
    slotWait.end()
    stopTicker()
    watermarks?.end()
    stream.drop()
  }
}

type VideoListeners = {
  signal: AbortSignal
  start(): void
  play(): void
  tick(): void
  stall: StallNotice
  settings: PlaybackSettings
}

/** Follows the events of the video element, whatever caused them. */
function listenToVideo({ elements, screen }: PlaybackDeps, listeners: VideoListeners): void {
  const { video } = elements
  const { signal, start, play, tick, stall, settings } = listeners
  const on = (type: string, listener: () => void) => video.addEventListener(type, listener, { signal })
  on('play', start)
  // Otherwise the captions button turns on the first track of the list, whichever was shown before.
  const toggleCaptions = (request: Event) => {
    request.stopImmediatePropagation()
    settings.toggleCaptions()
  }
  elements.controller.addEventListener('mediatogglesubtitlesrequest', toggleCaptions, { signal, capture: true })
  on('playing', () => {
    stall.playing()
    screen.show({ state: 'playing' })
    tick()
  })
  on('waiting', stall.stalled)
  let isFinishing = false
  const showEnd = () => video.ended && screen.shown.state === 'playing' && screen.show({ state: 'playing', ended: true })
  on('ended', showEnd)
  for (const type of ['seeked', 'durationchange']) on(type, finish)
  on('seeking', () => screen.shown.state === 'playing' && screen.shown.ended && screen.show({ state: 'playing' }))
  on('timeupdate', tick)
  on('ratechange', settings.show)
  elements.bigPlay.addEventListener('click', play, { signal })

  /** A paused video that is sought to its end fires no `ended`; and its last segments may be a little longer than its playlist says. */
  function finish() {
    isFinishing = !isFinishing && video.paused && !video.ended && video.duration - video.currentTime < END_WITHIN_S
    if (isFinishing) video.currentTime = video.duration
    showEnd()
  }
}

/** A browser that keeps the page for "back" pauses its video, without playing it again. */
function playOnAfterPageCache(video: HTMLVideoElement, play: () => void, signal: AbortSignal): void {
  let wasPlaying = false
  const notePlaying = () => {
    wasPlaying = !video.paused
  }
  addEventListener('pagehide', notePlaying, { signal })
  addEventListener('pageshow', ({ persisted }) => persisted && wasPlaying && play(), { signal })
}

/** Runs once, when some of the element is on the screen: a page may hold many players. */
function whenSeen(element: Element, run: () => void, signal: AbortSignal): void {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return
    observer.disconnect()
    run()
  })
  observer.observe(element)
  signal.addEventListener('abort', () => observer.disconnect())
}

/** Title, duration and poster. */
async function showVideo(
  { elements, root, options }: PlaybackDeps,
  signer: Signer,
  answer: SessionAnswer,
  signal: AbortSignal,
): Promise<void> {
  const { title, durationS } = answer.video
  showDuration(elements, durationS)
  if (options.showsTitle) elements.title.textContent = title
  document.title = title
  const poster = posterUrl(signer, root, answer)
  void showMediaSession(elements.video, title, poster, signal)
  const url = await poster
  if (url !== undefined) elements.video.poster = url
}

type PositionOptions = { signal: AbortSignal; hasStarted(): boolean }

/** Remembers in this browser where the viewer leaves the video, unless the server does. */
function rememberPositions(
  video: HTMLVideoElement,
  { keepsPosition, video: { id, durationS } }: SessionAnswer,
  { signal, hasStarted }: PositionOptions,
) {
  let savedMs = performance.now()
  for (const type of ['pause', 'ended']) video.addEventListener(type, save, { signal })
  addEventListener('pagehide', save, { signal })

  function save() {
    if (keepsPosition || !hasStarted()) return
    savedMs = performance.now()
    rememberPosition(id, video.ended ? 0 : video.currentTime, durationS)
  }

  return {
    saveIfDue() {
      if (performance.now() - savedMs > SAVE_POSITION_EVERY_MS) save()
    },
  }
}
