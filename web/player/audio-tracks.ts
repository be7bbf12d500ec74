import Hls from 'hls.js'

/** The audio tracks of a stream, of which one plays. */
export type AudioTracks = {
  list(): readonly { index: number; label: string; language: string }[]
  chosen(): number
  /** What was loaded of the one before plays until the new one is there: no gap. */
  choose(index: number): void
  /**
   * The server has the track of this playlist no longer: it is not listed any more, and the default one plays in its place.
   * @returns false where it is no audio track's
   */
  remove(playlist: string): boolean
}

/** @param preferredLanguage chosen at the beginning, where there is one in it @param changed there are tracks to choose from, or another one plays */
export function createAudioTracks(hls: Hls, preferredLanguage: string | undefined, changed: () => void): AudioTracks {
  let chosen = -1
  /** hls.js keeps them: its numbers of the others must not change. */
  const removed = new Set<number>()
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
    list,
    chosen: () => chosen,
    choose,
    remove(playlist) {
      const index = hls.allAudioTracks.findIndex(({ url }) => url === playlist)
      if (index === -1) return false
      removed.add(index)
      const left = list()
      const next = left.find((track) => hls.allAudioTracks[track.index]?.default) ?? left[0]
      if (!next) playSilently()
      else if (chosen === index) choose(next.index)
      else changed()
      return true
    },
  }

  function list() {
    const tracks = hls.allAudioTracks.map(({ name, lang = '' }, index) => ({ index, label: name, language: lang }))
    return tracks.filter(({ index }) => !removed.has(index))
  }

  function choose(index: number) {
    const track = hls.allAudioTracks[index]
    if (!track || removed.has(index)) return
    chosen = index
    hls.setAudioOption({ name: track.name })
    changed()
  }

  /** The playlist names no audio track any more, and hls.js begins with it again. */
  function playSilently() {
    removed.clear()
    chosen = -1
    if (hls.url) hls.loadSource(hls.url)
  }
}
