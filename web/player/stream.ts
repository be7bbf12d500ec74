import Hls, { type ErrorData, type Level } from 'hls.js'
import { createLoader, type LoaderReport } from './loader.ts'
import type { Signer } from './proof.ts'
import type { Refusal } from './refusals.ts'

/** How far hls.js loads ahead: paced keys make every second ahead of the viewer a debt. @see playback protocol, section 6 */
const AHEAD_S = 12
const AHEAD_AFTER_SEEK_S = 4
const AFTER_SEEK_MS = 2500

export const AUTOMATIC = -1
export const NO_CAPTIONS = -1

export type Quality = { index: number; label: string }

export type StreamReport = Omit<LoaderReport, 'refused'> & {
  /** Final, or after `try-again` resumable: loading has stopped already. */
  refused(refusal: Refusal): void
  /** The qualities, the chosen one or the one in use changed. */
  qualityChanged(): void
  /** There are captions to choose from, or others show. */
  captionsChanged(): void
}

export type Stream = {
  /** Begins to load media, hence to ask for keys; only from the first press of play on. */
  start(atS: number): void
  qualities(): readonly Quality[]
  chosenQuality(): number
  /** The one on the screen now; undefined before the first. */
  shownQuality(): Quality | undefined
  chooseQuality(index: number): void
  captions(): readonly Quality[]
  chosenCaptions(): number
  chooseCaptions(index: number): void
  /** The language of those that show; undefined: none do. */
  captionLanguage(): string | undefined
  /** Off, or on again: those that showed before. */
  toggleCaptions(): void
  /** Ends for good and drops everything that was buffered. */
  drop(): void
}

export type StreamRequest = {
  video: HTMLVideoElement
  signer: Signer
  session: string
  playlist: URL
  captionLanguage?: string
}

/** Opens a session's stream on the video element. Reads the multivariant playlist at once, media only after `start`. */
export function openStream(request: StreamRequest, report: StreamReport): Stream {
  const { video, signer, session, playlist, captionLanguage } = request
  const loader = createLoader(signer, session, { ...report, refused: stopAndReport })
  const hls = new Hls({
    loader,
    autoStartLoad: false,
    maxBufferLength: AHEAD_S,
    maxMaxBufferLength: AHEAD_S,
    backBufferLength: 30,
    enableWorker: false, // hls.js's ES module carries no worker; what is left to do is copying fragments
    capLevelToPlayerSize: true,
    abrEwmaDefaultEstimate: 1_500_000,
    // Half-lives in seconds of downloading, of which a fast line spends little. After a slow start a line of 8 Mbit/s
    // showed the better picture in 24 s (12 to 16 of them buffer) instead of 32 s with hls.js's 3 and 9.
    abrEwmaFastVoD: 1,
    abrEwmaSlowVoD: 3,
    testBandwidth: false,
    renderTextTracksNatively: false, // it would load an empty data: address, which the page forbids
  })
  const listening = new AbortController()
  let widenTimer: ReturnType<typeof setTimeout> | undefined
  let mediaRecovered = false
  let startAtS: number | undefined
  let stopped = false
  let captions: readonly TextTrack[] = []
  let chosenCaptions = NO_CAPTIONS
  let lastCaptions = NO_CAPTIONS
  /** hls.js reads a fragment of captions again whenever it comes back to it. */
  const knownCues = new Set<string>()
  watchSeeks()
  watchCaptions()
  hls.on(Hls.Events.MANIFEST_PARSED, () => {
    report.qualityChanged()
    if (startAtS !== undefined) start(startAtS) // play was pressed before the playlist was here
  })
  hls.on(Hls.Events.SUBTITLE_TRACKS_UPDATED, (_event, { subtitleTracks }) => {
    const wanted = captionLanguage?.toLowerCase()
    const at = subtitleTracks.findIndex(({ lang }) => wanted !== undefined && lang?.toLowerCase().startsWith(wanted))
    captions = subtitleTracks.map(({ name, lang = '' }) => findTextTrack(video, name, lang))
    knownCues.clear()
    chooseCaptions(lastCaptions === NO_CAPTIONS ? at : chosenCaptions)
  })
  hls.on(Hls.Events.CUES_PARSED, (_event, { track, cues }) => {
    const text = captions[Number(/\d+$/.exec(track)?.[0])]
    for (const cue of Array.isArray(cues) ? cues : []) {
      if (!text || !(cue instanceof VTTCue)) continue
      const known = `${track} ${cue.startTime} ${cue.endTime} ${cue.text}`
      if (!knownCues.has(known)) text.addCue(cue)
      knownCues.add(known)
    }
  })
  hls.on(Hls.Events.LEVEL_SWITCHED, () => report.qualityChanged())
  hls.on(Hls.Events.ERROR, (_event, error) => recover(error))
  hls.loadSource(playlist.href)
  hls.attachMedia(video)

  return {
    start,
    qualities() {
      return hls.levels.map(qualityOf).sort((a, b) => shortSide(hls.levels[b.index]) - shortSide(hls.levels[a.index]))
    },
    chosenQuality: () => (hls.autoLevelEnabled ? AUTOMATIC : hls.loadLevel),
    shownQuality() {
      const level = hls.levels[hls.currentLevel]
      return level && qualityOf(level, hls.currentLevel)
    },
    chooseQuality(index) {
      let isFollowed = false
      const follow = () => {
        isFollowed = true
      }
      hls.once(Hls.Events.BUFFER_FLUSHING, follow)
      hls.nextLevel = index // what is buffered plays on until the next fragment: no gap, no second download of this one
      hls.off(Hls.Events.BUFFER_FLUSHING, follow)
      // With all to the end buffered, and too near to be loaded anew in time, no next fragment would ever come.
      if (!isFollowed && index !== AUTOMATIC && isBufferedToEnd(video)) hls.currentLevel = index
      report.qualityChanged()
    },
    captions: () => captions.map(({ label }, index) => ({ index, label })),
    chosenCaptions: () => chosenCaptions,
    chooseCaptions,
    captionLanguage: () => captions[chosenCaptions]?.language,
    toggleCaptions() {
      if (captions.length > 0) chooseCaptions(chosenCaptions === NO_CAPTIONS ? Math.max(0, lastCaptions) : NO_CAPTIONS)
    },
    drop() {
      clearTimeout(widenTimer)
      listening.abort()
      for (const text of captions) text.mode = 'disabled'
      hls.destroy()
      video.removeAttribute('src')
      video.load()
    },
  }

  function start(atS: number) {
    startAtS = atS
    stopped = false
    if (hls.levels.length === 0) return hls.loadSource(playlist.href)
    hls.startLoad(atS > 0 ? atS : -1)
    hls.subtitleTrack = chosenCaptions
  }

  function chooseCaptions(index: number) {
    chosenCaptions = index
    if (index !== NO_CAPTIONS) lastCaptions = index
    for (const [at, text] of captions.entries()) text.mode = at === index ? 'showing' : 'disabled'
    if (startAtS !== undefined) hls.subtitleTrack = index // chosen before anything is loaded, hls.js forgets it
    report.captionsChanged()
  }

  // The browser's own controls switch its list of tracks.
  function watchCaptions() {
    video.textTracks.addEventListener(
      'change',
      () => {
        const shown = captions.findIndex(({ mode }) => mode === 'showing')
        if (shown !== chosenCaptions) chooseCaptions(shown)
      },
      { signal: listening.signal },
    )
  }

  function stopAndReport(refusal: Refusal) {
    stopped = true
    hls.stopLoad()
    report.refused(refusal)
  }

  function recover({ fatal, type }: ErrorData) {
    if (!fatal || stopped) return // what breaks after the stop is its consequence, not the reason
    if (type === Hls.ErrorTypes.MEDIA_ERROR && !mediaRecovered) {
      mediaRecovered = true
      hls.recoverMediaError()
      return
    }
    stopAndReport({ code: type === Hls.ErrorTypes.NETWORK_ERROR ? 'network' : 'internal' })
  }

  // A seek to a new place costs keys at once; looking around must not cost those of 12 s more each time.
  function watchSeeks() {
    const { signal } = listening
    video.addEventListener('seeking', () => loadAhead(AHEAD_AFTER_SEEK_S), { signal })
    video.addEventListener(
      'seeked',
      () => {
        widenTimer = setTimeout(() => loadAhead(AHEAD_S), AFTER_SEEK_MS)
      },
      { signal },
    )
  }

  function loadAhead(seconds: number) {
    clearTimeout(widenTimer)
    hls.config.maxBufferLength = seconds
    hls.config.maxMaxBufferLength = seconds
  }
}

/** False: a browser without Media Source Extensions for H.264, where no request could be signed. */
export function canPlayStreams(): boolean {
  return Hls.isSupported()
}

/** A video element's text tracks cannot be removed: one that an earlier stream left is used again. */
function findTextTrack(video: HTMLVideoElement, label: string, language: string): TextTrack {
  const left = [...video.textTracks].find((track) => track.label === label && track.language === language)
  if (!left) return video.addTextTrack('subtitles', label, language)
  left.mode = 'hidden' // a disabled one shows nobody its cues
  for (const cue of [...(left.cues ?? [])]) left.removeCue(cue)
  return left
}

function isBufferedToEnd({ buffered, duration }: HTMLVideoElement): boolean {
  return buffered.length > 0 && buffered.end(buffered.length - 1) > duration - 1
}

function qualityOf(level: Level, index: number): Quality {
  return { index, label: level.height > 0 ? `${shortSide(level)}p` : `${Math.round(level.bitrate / 1000)} kbit/s` }
}

/** 720p is 1280 × 720 and 720 × 1280: the name follows the short side. */
function shortSide(level: Level | undefined): number {
  return level ? Math.min(level.width, level.height) : 0
}
