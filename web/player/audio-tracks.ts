import Hls from 'hls.js'

/** The audio tracks of a stream, of which one plays. */
export type AudioTracks = {
  list(): readonly { index: number; label: string; language: string }[]
  chosen(): number
  /** What was loaded of the one before plays until the new one is there: no gap, but in Firefox one of a moment. */
  choose(index: number): void
  /**
   * The server has the track of this playlist no longer: it is not listed any more, and the default one plays in its place.
   * @returns false where it is no audio track's
   */
  remove(playlist: string): boolean
}

/** Firefox goes on with up to three seconds of the former track, which it has decoded: https://github.com/video-dev/hls.js/issues/5881 */
const DECODES_FAR_AHEAD = navigator.userAgent.includes('Firefox/')

/** @param preferredLanguage chosen at the beginning, where there is one in it @param changed there are tracks to choose from, or another one plays */
export function createAudioTracks(hls: Hls, preferredLanguage: string | undefined, changed: () => void): AudioTracks {
  let chosen = -1
  let soundsFormer = false
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
  if (DECODES_FAR_AHEAD) dropFormerTrack()
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
    soundsFormer = true
    hls.setAudioOption({ name: track.name })
    changed()
  }

  /** Seeks to where it plays, as soon as the new track is there: that drops what is decoded. */
  function dropFormerTrack() {
    hls.on(Hls.Events.FRAG_BUFFERED, (_event, { frag }) => {
      const { media } = hls
      if (!soundsFormer || !media || media.ended || frag.type !== 'audio' || frag.level !== chosen) return
      const atS = media.currentTime
      if (frag.start > atS || frag.end < atS) return
      soundsFormer = false
      media.currentTime = atS
    })
  }

  /** The playlist names no audio track any more, and hls.js begins with it again. */
  function playSilently() {
    removed.clear()
    chosen = -1
    if (hls.url) hls.loadSource(hls.url)
  }
}
