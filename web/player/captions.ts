import Hls, { type MediaPlaylist } from 'hls.js'

export const NO_CAPTIONS = -1

/** The captions of a stream, in text tracks of the video element. */
export type Captions = {
  list(): readonly { index: number; label: string; language: string }[]
  chosen(): number
  choose(index: number): void
  /** The language of those that show; undefined: none do. */
  language(): string | undefined
  /** Off, or on again: those that showed before. */
  toggle(): void
  /** Loads captions to be read next to the picture, also while none are shown: these, or the chosen or likeliest ones. False: no longer. */
  read(captions: number | boolean): void
  /** Those that are read: their number, and their cues as far as they are loaded. */
  beingRead(): { index: number; track: TextTrack } | undefined
  /** To be called when hls.js begins to load: what was chosen before, it forgets. */
  load(): void
  end(): void
}

/**
 * Chooses captions and copies the cues that hls.js parses.
 * @param preferredLanguage chosen when the list is known
 * @param changed there are captions to choose from, or others show
 */
export function createCaptions(
  hls: Hls,
  video: HTMLVideoElement,
  preferredLanguage: string | undefined,
  changed: () => void,
): Captions {
  const listening = new AbortController()
  let tracks: readonly TextTrack[] = []
  let chosen = NO_CAPTIONS
  let lastChosen = NO_CAPTIONS
  let isLoading = false
  let isRead = false
  /** hls.js reads a fragment of captions again whenever it comes back to it. */
  const knownCues = new Set<string>()

  // hls.js selects the tracks when it begins to load; the page around the player may ask for them before.
  hls.on(Hls.Events.MANIFEST_PARSED, (_event, { subtitleTracks }) => setTracks(subtitleTracks))
  hls.on(Hls.Events.SUBTITLE_TRACKS_UPDATED, (_event, { subtitleTracks }) => setTracks(subtitleTracks))
  hls.on(Hls.Events.CUES_PARSED, (_event, { track, cues }) => {
    const text = tracks[Number(/\d+$/.exec(track)?.[0])]
    for (const cue of Array.isArray(cues) ? cues : []) {
      if (!text || !(cue instanceof VTTCue)) continue
      const known = `${track} ${cue.startTime} ${cue.endTime} ${cue.text}`
      if (!knownCues.has(known)) text.addCue(cue)
      knownCues.add(known)
    }
    if (isRead) changed()
  })
  // The browser's own controls switch its list of tracks.
  video.textTracks.addEventListener('change', chooseShown, { signal: listening.signal })

  return {
    list: () => tracks.map(({ label, language }, index) => ({ index, label, language })),
    chosen: () => chosen,
    choose,
    language: () => tracks[chosen]?.language,
    toggle() {
      if (tracks.length > 0) choose(chosen === NO_CAPTIONS ? Math.max(0, lastChosen) : NO_CAPTIONS)
    },
    read(captions) {
      isRead = captions !== false
      if (typeof captions === 'number') lastChosen = captions
      choose(typeof captions === 'number' && chosen !== NO_CAPTIONS ? captions : chosen)
    },
    beingRead() {
      const index = readIndex()
      const track = tracks[index]
      return track && { index, track }
    },
    load() {
      isLoading = true
      hls.subtitleTrack = readIndex()
    },
    end() {
      listening.abort()
      for (const track of tracks) track.mode = 'disabled'
    },
  }

  function setTracks(subtitleTracks: readonly MediaPlaylist[]) {
    const language = preferredLanguage?.toLowerCase()
    const at = subtitleTracks.findIndex(({ lang }) => language !== undefined && lang?.toLowerCase().startsWith(language))
    tracks = subtitleTracks.map(({ name, lang = '' }) => reuseTextTrack(video, name, lang))
    knownCues.clear()
    choose(lastChosen === NO_CAPTIONS ? at : chosen)
  }

  function choose(index: number) {
    chosen = index
    if (index !== NO_CAPTIONS) lastChosen = index
    const read = readIndex()
    for (const [at, track] of tracks.entries()) track.mode = at === index ? 'showing' : at === read ? 'hidden' : 'disabled'
    if (isLoading) hls.subtitleTrack = read
    changed()
  }

  /** Of the captions that are loaded: those that show, or that are read without. */
  function readIndex(): number {
    if (chosen !== NO_CAPTIONS || !isRead) return chosen
    if (lastChosen !== NO_CAPTIONS) return lastChosen
    const [language = ''] = navigator.language.split('-')
    return Math.max(
      0,
      tracks.findIndex((track) => track.language.startsWith(language)),
    )
  }

  function chooseShown() {
    const shown = tracks.findIndex(({ mode }) => mode === 'showing')
    if (shown !== chosen) choose(shown)
  }
}

/** A video element's text tracks cannot be removed: one that an earlier stream left is used again. */
function reuseTextTrack(video: HTMLVideoElement, label: string, language: string): TextTrack {
  const left = [...video.textTracks].find((track) => track.label === label && track.language === language)
  if (!left) return video.addTextTrack('subtitles', label, language)
  left.mode = 'hidden' // the cues of a disabled track cannot be read
  for (const cue of [...(left.cues ?? [])]) left.removeCue(cue)
  return left
}
