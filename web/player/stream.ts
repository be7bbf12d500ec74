import Hls, { type ErrorData, type HlsConfig, type Level } from 'hls.js'
import { type AudioTracks, createAudioTracks } from './audio-tracks.ts'
import { type Captions, createCaptions } from './captions.ts'
import { isSlowLine, startingBps } from './line-speed.ts'
import { createLoader, type LoaderReport } from './loader.ts'
import type { Signer } from './proof.ts'
import type { Refusal } from './refusals.ts'
import { createSegmentPaths } from './segment-paths.ts'
import { restartStuckLoads } from './stuck-loads.ts'
import { repeatStuckSeeks } from './stuck-seeks.ts'

/** How far hls.js loads ahead: paced keys make every second ahead of the viewer a debt. @see playback protocol, section 6 */
const BUFFER_S = 12
const BUFFER_AFTER_SEEK_S = 4
const AFTER_SEEK_MS = 2500

/** How often a media source is replaced near one place of a video before playback stops: each damage, of video or of audio, takes another one. */
const MAX_RESETS = 3
const NEAR_S = 30

export const AUTOMATIC = -1

type Quality = { index: number; label: string; widthPx: number; heightPx: number; bitrateBps: number }

type StreamReport = Omit<LoaderReport, 'refused' | 'loading' | 'audioRemoved'> & {
  /** Final, or after `try-again` resumable: loading has stopped already. */
  refused(refusal: Refusal): void
  /** The qualities or audio tracks, or the chosen one or the one in use changed. */
  qualityChanged(): void
  /** There are captions to choose from, or others show. */
  captionsChanged(): void
}

export type Stream = {
  readonly audio: Omit<AudioTracks, 'remove'>
  readonly captions: Pick<Captions, 'list' | 'chosen' | 'choose' | 'language' | 'toggle' | 'read' | 'beingRead'>
  /** Loads the first segments of the lowest quality, without their key, where the line may be slow. Fails silently. */
  preload(atS: number): void
  /** Begins to play, hence to request keys; only from the first press of play on. */
  start(atS: number): void
  qualities(): readonly Quality[]
  chosenQuality(): number
  /** The one on the screen now; undefined before the first. */
  shownQuality(): Quality | undefined
  chooseQuality(index: number): void
  /** The server's id of what is on the screen; undefined before the first frame. */
  renditionId(): number | undefined
  /** In frames per second, with three decimals; undefined before the first frame, and without a picture. */
  frameRate(): number | undefined
  /** Ends for good and drops everything that was buffered. */
  drop(): void
}

type StreamRequest = {
  video: HTMLVideoElement
  signer: Signer
  session: string
  playlist: URL
  audioLanguage?: string | undefined
  captionLanguage?: string
}

/** Opens a session's stream on the video element. Reads the multivariant playlist immediately, keys only after `start`. */
export function openStream(request: StreamRequest, report: StreamReport): Stream {
  const { video, signer, session, playlist, audioLanguage, captionLanguage } = request
  const segmentPaths = createSegmentPaths(signer, session)
  let wantKeys = () => {}
  const keysWanted = new Promise<void>((resolve) => (wantKeys = resolve))
  let requests = 0
  const loading = (by: 1 | -1) => {
    requests += by
  }
  const audioRemoved = (playlist: string) => audio.remove(playlist)
  const reportOfLoader = { ...report, loading, audioRemoved, refused: stopAndReport }
  const loader = createLoader({ signer, session, segmentPaths, keysWanted, report: reportOfLoader })
  const hls = new Hls({ ...HLS_CONFIG, abrEwmaDefaultEstimate: startingBps(), loader })
  const audio = createAudioTracks(hls, audioLanguage, report.qualityChanged)
  const captions = createCaptions(hls, video, captionLanguage, report.captionsChanged)
  const stopWatchingSeeks = bufferLessAfterSeeks(hls, video)
  const stopRepeatingSeeks = repeatStuckSeeks(video)
  const stopRestarting = restartStuckLoads(
    video,
    () => requests > 0,
    () => startAtS !== undefined && !isStopped && hls.levels.length > 0 && loadFrom(video.currentTime || startAtS),
  )
  let startAtS: number | undefined
  let preloadsFromS: number | undefined
  let isStopped = false
  hls.on(Hls.Events.MANIFEST_PARSED, () => {
    report.qualityChanged()
    if (startAtS !== undefined)
      start(startAtS) // play was pressed before the playlist was here
    else if (preloadsFromS !== undefined) preload(preloadsFromS)
  })
  hls.on(Hls.Events.LEVEL_SWITCHED, () => report.qualityChanged())
  hls.on(Hls.Events.ERROR, (_event, error) => {
    if (UNREADABLE.has(error.details)) segmentPaths.rereadFor(error.frag?.url)
    recover(error)
  })
  hls.loadSource(playlist.href)
  hls.attachMedia(video)
  const stopWatchingDecoder = watchDecoder(hls, video, {
    playedTo: (timeS) => (startAtS = timeS),
    positionS: () => startAtS ?? 0,
    failed() {
      segmentPaths.rereadFor(undefined)
      if (!isStopped) hls.recoverMediaError()
    },
    replaced() {
      if (startAtS !== undefined && !isStopped) start(startAtS)
    },
    keepsFailing: () => stopAndReport({ code: 'internal' }),
  })

  return {
    audio,
    captions,
    preload,
    start,
    qualities() {
      return hls.levels.map(toQuality).sort((a, b) => shortSide(hls.levels[b.index]) - shortSide(hls.levels[a.index]))
    },
    chosenQuality: () => (hls.autoLevelEnabled ? AUTOMATIC : hls.loadLevel),
    shownQuality() {
      const level = hls.levels[hls.currentLevel]
      return level && toQuality(level, hls.currentLevel)
    },
    chooseQuality(index) {
      switchLevel(hls, video, index)
      report.qualityChanged()
    },
    renditionId: () => Number(hls.levels[hls.currentLevel]?.uri.split('/').at(-1)) || undefined,
    frameRate: () => hls.levels[hls.currentLevel]?.frameRate || undefined,
    drop() {
      stopWatchingSeeks()
      stopRepeatingSeeks()
      stopRestarting()
      stopWatchingDecoder()
      captions.end()
      hls.destroy()
      video.removeAttribute('src')
      video.load()
    },
  }

  function preload(atS: number) {
    if (startAtS !== undefined || isSlowLine() === false) return
    preloadsFromS = atS
    if (hls.levels.length === 0) return // when the playlist is here
    hls.startLevel = 0
    loadFrom(atS)
  }

  function start(atS: number) {
    const isPreloaded = preloadsFromS === atS && hls.autoLevelEnabled && isSlowLine() === true
    startAtS = atS
    isStopped = false
    wantKeys()
    if (hls.levels.length === 0) {
      preloadsFromS = undefined // nothing was loaded yet
      return hls.loadSource(playlist.href)
    }
    if (preloadsFromS !== undefined && !isPreloaded) dropPreloaded()
    preloadsFromS = undefined
    if (!isPreloaded) loadFrom(atS)
    captions.load()
  }

  function loadFrom(atS: number) {
    hls.startLoad(atS > 0 ? atS : -1)
  }

  function stopAndReport(refusal: Refusal) {
    if (preloadsFromS !== undefined) return dropPreloaded() // what refuses now refuses again when play is pressed
    isStopped = true
    hls.stopLoad()
    report.refused(refusal)
  }

  /** The next load begins in the quality that suits the line. */
  function dropPreloaded() {
    hls.stopLoad()
    preloadsFromS = undefined
    hls.startLevel = AUTOMATIC
    if (hls.autoLevelEnabled) hls.nextLoadLevel = hls.firstAutoLevel
  }

  function recover({ fatal, type }: ErrorData) {
    if (!fatal || isStopped) return // what breaks after the stop is its consequence, not the reason
    if (type === Hls.ErrorTypes.MEDIA_ERROR) return hls.recoverMediaError()
    stopAndReport({ code: type === Hls.ErrorTypes.NETWORK_ERROR ? 'network' : 'internal' })
  }
}

type DecoderReport = {
  playedTo(timeS: number): void
  positionS(): number
  failed(): void
  /** By a new media source, into which nothing is loaded after some errors, or from the beginning. */
  replaced(): void
  /** It was replaced too often. */
  keepsFailing(): void
}

/** Plays on after a decoder failed and was replaced with its media source, which pauses the video without an event. @returns its end */
function watchDecoder(hls: Hls, video: HTMLVideoElement, report: DecoderReport): () => void {
  const listening = new AbortController()
  const on = (name: string, listener: () => void) => video.addEventListener(name, listener, { signal: listening.signal })
  let plays = !video.paused
  /** Where the last media sources were replaced. Not when: on a slow device each takes as long as it takes. */
  let replacedAtS: number[] = []
  // Before the first frame browsers show the failure of a decoder as the end of the video, until they report the error.
  const isFalseEnd = () => video.ended && !video.seeking && !isBufferedToEnd(video)
  const hideFalseEnd = (event: Event) => isFalseEnd() && event.stopImmediatePropagation()
  for (const name of ['playing', 'timeupdate', 'pause', 'ended'])
    video.addEventListener(name, hideFalseEnd, { capture: true, signal: listening.signal })
  on('play', () => (plays = true))
  on('pause', () => (plays &&= video.error !== null)) // a decoder that fails pauses the video, too
  // Not the 0 of a new media source, which has nothing there and is about to seek.
  const notePosition = () => (video.seeking || video.readyState > 1) && report.playedTo(video.currentTime)
  on('seeking', notePosition)
  on('timeupdate', notePosition)
  // hls.js notices it only when it appends again: with a full buffer, or at the end, never.
  on('error', () => video.error && report.failed())
  hls.once(Hls.Events.MEDIA_ATTACHED, () => hls.on(Hls.Events.MEDIA_ATTACHED, playOn))
  return () => listening.abort()

  function playOn() {
    const positionS = report.positionS()
    replacedAtS = [...replacedAtS.filter((atS) => Math.abs(positionS - atS) < NEAR_S), positionS]
    if (replacedAtS.length > MAX_RESETS) return report.keepsFailing()
    report.replaced()
    if (plays && video.paused) video.play().catch(() => {})
  }
}

const UNREADABLE: ReadonlySet<string> = new Set([
  ...[Hls.ErrorDetails.FRAG_DECRYPT_ERROR, Hls.ErrorDetails.FRAG_PARSING_ERROR],
  ...[Hls.ErrorDetails.BUFFER_APPEND_ERROR, Hls.ErrorDetails.MEDIA_SOURCE_REQUIRES_RESET],
])

const HLS_CONFIG: Partial<HlsConfig> = {
  autoStartLoad: false,
  maxBufferLength: BUFFER_S,
  maxMaxBufferLength: BUFFER_S,
  backBufferLength: 30,
  enableWorker: false, // hls.js's ES module carries no worker; what is left to do is copying fragments
  capLevelToPlayerSize: true,
  // Half-lives in seconds of downloading, of which a fast line spends little. After a slow start a line of 8 Mbit/s
  // showed the better picture in 24 s (12 to 16 of them buffer) instead of 32 s with hls.js's 3 and 9.
  abrEwmaFastVoD: 1,
  abrEwmaSlowVoD: 3,
  testBandwidth: false,
  renderTextTracksNatively: false, // it would load an empty data: address, which the page forbids
}

/** A seek to a new place costs keys immediately; looking around must not cost those of 12 s more each time. @returns its end */
function bufferLessAfterSeeks(hls: Hls, video: HTMLVideoElement): () => void {
  const listening = new AbortController()
  const { signal } = listening
  let timer: ReturnType<typeof setTimeout> | undefined
  const setBuffer = (seconds: number) => {
    clearTimeout(timer)
    hls.config.maxBufferLength = seconds
    hls.config.maxMaxBufferLength = seconds
  }
  const widenLater = () => {
    timer = setTimeout(() => setBuffer(BUFFER_S), AFTER_SEEK_MS)
  }
  video.addEventListener('seeking', () => setBuffer(BUFFER_AFTER_SEEK_S), { signal })
  video.addEventListener('seeked', widenLater, { signal })
  return () => {
    clearTimeout(timer)
    listening.abort()
  }
}

function switchLevel(hls: Hls, video: HTMLVideoElement, index: number): void {
  let isFlushed = false
  const noteFlush = () => {
    isFlushed = true
  }
  hls.once(Hls.Events.BUFFER_FLUSHING, noteFlush)
  hls.nextLevel = index // what is buffered plays on until the next fragment: no gap, no second download of this one
  hls.off(Hls.Events.BUFFER_FLUSHING, noteFlush)
  // When everything up to the end is buffered and too little time is left to load it again, there is no next fragment.
  if (!isFlushed && index !== AUTOMATIC && isBufferedToEnd(video)) hls.currentLevel = index
}

/** Without Media Source Extensions no request could be signed. */
export const hasMediaSource = () => Hls.isMSESupported()

/** Whether this browser decodes what tracks are in, at the lowest level of the ladder. A video need not have both. */
export function decodedFormats(): { h264: boolean; aac: boolean } {
  const decodes = (type: string) => Hls.getMediaSource()?.isTypeSupported(type) ?? false
  return { h264: decodes('video/mp4; codecs="avc1.640015"'), aac: decodes('audio/mp4; codecs="mp4a.40.2"') }
}

function isBufferedToEnd({ buffered, duration }: HTMLVideoElement): boolean {
  return buffered.length > 0 && buffered.end(buffered.length - 1) > duration - 1
}

function toQuality(level: Level, index: number): Quality {
  const { width: widthPx, height: heightPx, bitrate: bitrateBps } = level
  const label = heightPx > 0 ? `${shortSide(level)}p` : `${Math.round(bitrateBps / 1000)} kbit/s`
  return { index, label, widthPx, heightPx, bitrateBps }
}

/** 720p is 1280 × 720 and 720 × 1280: the name follows the short side. */
function shortSide(level: Level | undefined): number {
  return level ? Math.min(level.width, level.height) : 0
}
