import { isBeatDue } from './beats.ts'
import { type PlayerElements, showDuration } from './elements.ts'
import { offeredRates } from './keyboard.ts'
import { readSettings, rememberPlace, rememberSettings } from './memory.ts'
import type { PlayerOptions } from './options.ts'
import { type Leave, posterUrl, prepareLeave, sendBeat } from './play-client.ts'
import type { Signer } from './proof.ts'
import { mayResume, type Refusal, type Waiting } from './refusals.ts'
import type { Screen } from './screen.ts'
import type { SettingsMenu } from './settings-menu.ts'
import { AUTOMATIC, NO_CAPTIONS, openStream, type Stream } from './stream.ts'
import { startTicker } from './ticker.ts'
import { showWatermarks } from './watermark-overlay.ts'
import type { PlayState, SessionAnswer } from './wire.ts'

/** Longer than a viewer should wonder why the picture stands still. */
const SAY_WHY_AFTER_MS = 2000
/** A leave's nonce lives 90 s and its seq stays in the server's window of 32 for about as long. */
const LEAVE_LASTS_MS = 20_000
const PLACE_EVERY_MS = 5_000

export type PlaybackDeps = {
  elements: PlayerElements
  screen: Screen
  menu: SettingsMenu
  options: PlayerOptions
  root: URL
  /** Called on the viewer's click when this page was replaced by another one. */
  playHere: (atS: number) => void
}

export type Playback = {
  /** Speeds on offer to this viewer, ascending. */
  readonly rates: readonly number[]
  /** Other speeds, for the page around the player; none: the usual ones. */
  offerRates(rates: readonly number[]): void
  chooseRate(rate: number): void
  /** As `chooseRate`, for this video alone. No more than the server's pace allows. */
  useRate(rate: number): void
  toggleCaptions(): void
}

/** Plays one opened session on this page until it ends: stream, beats, watermarks, and what the screen says meanwhile. */
export function startPlayback(deps: PlaybackDeps, signer: Signer, answer: SessionAnswer, resumeAtS: number): Playback {
  const { elements, screen, menu, options, root } = deps
  const { video } = elements
  const { session } = answer
  let rates = offeredRates(answer.maxSpeed)
  const waits = new Map<string, Waiting>()
  const life = new AbortController()
  /** The browser's own controls, a media key or a script can ask before the session is open. */
  const wasAskedToPlay = !video.paused
  const last = { beatMs: performance.now(), keyMs: Number.NEGATIVE_INFINITY, placeMs: performance.now() }
  let started = false
  const remembered = readSettings()
  let chosenRate = rates.find((rate) => rate === remembered.rate) ?? 1
  let stalledSinceMs: number | undefined
  let leave: { signedMs: number; ready: Leave } | undefined
  let signingLeave = false
  let removeWatermarks: (() => void) | undefined

  const stream: Stream = openStream(
    {
      video,
      signer,
      session,
      playlist: new URL(`play/${session}/playlist/main`, root),
      captionLanguage: options.captionLanguage ?? (remembered.captions || undefined),
    },
    {
      waiting(url, waiting) {
        if (waiting) waits.set(url, waiting)
        else waits.delete(url)
        keepPace()
        sayWhy()
      },
      keyReleased() {
        last.keyMs = performance.now()
      },
      refused,
      qualityChanged: showSettings,
      captionsChanged: showSettings,
    },
  )
  showDuration(elements, answer.video.durationS)
  elements.title.textContent = answer.video.title
  document.title = answer.video.title
  posterUrl(signer, root, answer).then((url) => {
    if (url !== undefined) video.poster = url
  })
  const endTicker = startTicker(tick)
  listen()
  useRate(chosenRate)
  screen.show({ state: 'ready' })
  if (options.autoplay || wasAskedToPlay) play()
  return {
    get rates() {
      return rates
    },
    offerRates(wanted) {
      rates = offeredRates(answer.maxSpeed, wanted.length > 0 ? wanted : undefined)
      showSettings()
    },
    chooseRate,
    useRate: (rate) => useRate(Math.min(Math.max(rate, 0.25), Math.max(1, answer.maxSpeed))),
    toggleCaptions,
  }

  function listen() {
    const { signal } = life
    const on = (type: string, listener: () => void) => video.addEventListener(type, listener, { signal })
    on('play', begin)
    elements.controller.addEventListener('mediatogglesubtitlesrequest', toggleCaptionsByButton, { signal, capture: true })
    on('pause', () => !video.ended && beat())
    on('playing', () => {
      stalledSinceMs = undefined
      screen.show({ state: 'playing' })
    })
    on('waiting', () => {
      stalledSinceMs ??= performance.now()
    })
    on('ended', () => {
      screen.show({ state: 'playing', ended: true })
      beat()
    })
    on('seeking', () => {
      if (screen.shown.state === 'playing' && screen.shown.ended) screen.show({ state: 'playing' })
    })
    on('timeupdate', tick)
    on('ratechange', showSettings)
    elements.bigPlay.addEventListener('click', play, { signal })
    on('pause', savePlace)
    on('ended', savePlace)
    addEventListener('pagehide', savePlace, { signal })
    addEventListener('pagehide', () => leave?.ready.send(), { signal })
    // Out of the browser's page cache: the slot was given up on leaving.
    addEventListener('pageshow', (event) => event.persisted && beat(), { signal })
  }

  function play() {
    if (!video.paused) begin() // an element that waits to play says no second time that it was asked
    video.play().catch(() => {}) // refused autoplay or a stop in between: the screen shows what the element reports
  }

  /** Every play, not only the first: after a pause the slot may be somebody else's, and the beat asks for it again. */
  function begin() {
    if (started) {
      beat()
      return
    }
    started = true
    elements.bigPlay.hidden = true
    if (answer.marks.length > 0) {
      removeWatermarks = showWatermarks(elements.controller, video, answer.marks, () => refused({ code: 'mark-blocked' }))
    }
    stream.start(video.currentTime > 0 ? video.currentTime : resumeAtS)
  }

  function tick() {
    const nowMs = performance.now()
    if (started && nowMs - last.placeMs > PLACE_EVERY_MS) savePlace()
    if (isBeatDue(playState(), nowMs, last, answer.beatEveryMs)) beat()
    if (!leave || nowMs - leave.signedMs > LEAVE_LASTS_MS) signLeave()
    sayWhy()
  }

  function savePlace() {
    last.placeMs = performance.now()
    if (started && !answer.keepsPosition)
      rememberPlace(answer.video.id, video.ended ? 0 : video.currentTime, answer.video.durationS)
  }

  function playState(): PlayState {
    if (video.ended) return 'ended'
    if (video.paused || !started) return 'paused'
    return stalledSinceMs === undefined ? 'playing' : 'stalled'
  }

  async function beat() {
    if (!started && performance.now() - last.beatMs < 1000) return // the element's first events, before there is anything to tell
    last.beatMs = performance.now()
    signLeave()
    const refusal = await sendBeat(signer, root, session, {
      state: playState(),
      positionS: rounded(video.currentTime),
      rate: video.playbackRate,
      bufferS: rounded(bufferedAheadS(video)),
    })
    if (refusal && !life.signal.aborted) refused(refusal)
  }

  async function signLeave() {
    if (signingLeave) return
    signingLeave = true
    const signedMs = performance.now()
    try {
      leave = { signedMs, ready: await prepareLeave(signer, root, session) }
    } finally {
      signingLeave = false
    }
  }

  /** Says why the picture stands still, once it has for a while; says nothing while it moves. */
  function sayWhy() {
    if (screen.shown.state !== 'playing' && !(screen.shown.state === 'ready' && started)) return
    const stalledMs = stalledSinceMs === undefined ? 0 : performance.now() - stalledSinceMs
    const first = [...waits.values()][0]
    const note = stalledMs > SAY_WHY_AFTER_MS && !video.paused ? first : undefined
    if (screen.shown.state === 'ready' && !note) return
    const before = screen.shown.state === 'playing' ? screen.shown : undefined
    if (before && before.note?.code === note?.code) return
    screen.show({ state: 'playing', ended: before?.ended, note })
  }

  /** While a key is held back for pace, playing no faster than keys come hides the wait. */
  function keepPace() {
    const paces = [...waits.values()].map(({ maxRate }) => maxRate ?? Number.POSITIVE_INFINITY)
    const rate = Math.max(0.25, Math.min(chosenRate, ...paces))
    if (video.playbackRate !== rate) video.playbackRate = rate
  }

  /** For the captions button, whose controller would turn on the first of the list, whatever showed before. */
  function toggleCaptionsByButton(request: Event) {
    request.stopImmediatePropagation()
    toggleCaptions()
  }

  function toggleCaptions() {
    stream.toggleCaptions()
    rememberCaptions()
  }

  function rememberCaptions() {
    rememberSettings({ captions: stream.captionLanguage() ?? '' })
  }

  function chooseRate(rate: number) {
    rememberSettings({ rate })
    useRate(rate)
  }

  function useRate(rate: number) {
    chosenRate = rate
    video.defaultPlaybackRate = rate
    keepPace()
    showSettings()
  }

  function showSettings() {
    const shown = stream?.shownQuality()
    const qualities = stream?.qualities() ?? []
    const captions = (stream?.captions() ?? []).map(({ index, label }) => ({ value: index, label }))
    menu.show([
      {
        name: 'Quality',
        choices:
          qualities.length < 2
            ? []
            : [
                { value: AUTOMATIC, label: shown ? `Automatic (${shown.label})` : 'Automatic' },
                ...qualities.map(({ index, label }) => ({ value: index, label })),
              ],
        chosen: stream?.chosenQuality() ?? AUTOMATIC,
        choose: (index) => stream.chooseQuality(index),
      },
      {
        name: 'Speed',
        choices: rates.map((rate) => ({ value: rate, label: rate === 1 ? 'Normal' : `${rate} ×` })),
        chosen: chosenRate,
        choose: chooseRate,
      },
      {
        name: 'Captions',
        choices: captions.length === 0 ? [] : [{ value: NO_CAPTIONS, label: 'Off' }, ...captions],
        chosen: stream?.chosenCaptions() ?? NO_CAPTIONS,
        choose(index) {
          stream.chooseCaptions(index)
          rememberCaptions()
        },
      },
    ])
  }

  function refused(refusal: Refusal) {
    if (life.signal.aborted) return
    video.pause()
    menu.close()
    if (document.fullscreenElement && !mayResume(refusal)) document.exitFullscreen().catch(() => {})
    const atS = video.currentTime
    if (!mayResume(refusal)) end()
    screen.show({ state: 'refused', refusal, onAction: () => act(refusal, atS) })
  }

  function act(refusal: Refusal, atS: number) {
    if (refusal.code === 'page-replaced') return deps.playHere(atS)
    if (!mayResume(refusal)) return location.reload()
    screen.show({ state: 'playing' })
    stream.start(video.currentTime > 0 ? video.currentTime : resumeAtS)
    play()
  }

  function end() {
    life.abort()
    endTicker()
    removeWatermarks?.()
    stream.drop()
  }
}

function bufferedAheadS({ buffered, currentTime }: HTMLVideoElement): number {
  for (let at = 0; at < buffered.length; at++) {
    if (buffered.start(at) <= currentTime + 0.1 && currentTime < buffered.end(at)) return buffered.end(at) - currentTime
  }
  return 0
}

function rounded(seconds: number): number {
  return Math.round(seconds * 1000) / 1000
}
