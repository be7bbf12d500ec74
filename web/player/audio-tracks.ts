import Hls from 'hls.js'

/** The audio tracks of a stream, of which one plays. */
export type AudioTracks = {
  list(): readonly { index: number; label: string; language: string }[]
  chosen(): number
  /** What was loaded of the one before plays until the new one is there: no gap. */
  choose(index: number): void
}

/** @param preferredLanguage chosen at the beginning, where there is one in it @param changed there are tracks to choose from, or another one plays */
export function createAudioTracks(hls: Hls, preferredLanguage: string | undefined, changed: () => void): AudioTracks {
  let chosen = -1
  if (preferredLanguage !== undefined) hls.config.audioPreference = { lang: preferredLanguage }
  hls.on(Hls.Events.MANIFEST_PARSED, (_event, { audioTracks }) => {
    // hls.js selects one when it begins to load; viewers and the page around may choose before.
    const wanted = audioTracks.find(({ lang }) => lang !== undefined && lang === preferredLanguage)
    const first = wanted ?? audioTracks.find((track) => track.default)
    if (chosen === -1 && first) chosen = audioTracks.indexOf(first)
  })
  hls.on(Hls.Events.AUDIO_TRACK_SWITCHING, (_event, { id }) => {
    if (id === chosen) return
    chosen = id
    changed()
  })
  return {
    list: () => hls.allAudioTracks.map(({ name, lang = '' }, index) => ({ index, label: name, language: lang })),
    chosen: () => chosen,
    choose(index) {
      const track = hls.allAudioTracks[index]
      if (!track) return
      chosen = index
      hls.setAudioOption({ name: track.name })
      changed()
    },
  }
}
