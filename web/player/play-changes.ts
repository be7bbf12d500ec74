type PlayedVideo = EventTarget & { readonly currentTime: number; readonly seeking: boolean; readonly paused: boolean }

/** The places of a beat. `leftAtS`: where it played before a seek, the first one since the last beat. */
type Positions = { positionS: number; leftAtS?: number }

/** Follows where a video plays: what was played before a seek and right after it, the server knows from beats alone. */
type PlayChanges = {
  /** Whether the video plays at another place or speed than the last beat reported. */
  readonly hasChanged: boolean
  /** What a beat reports. @param isPlaying whether it reports the new place as one that plays */
  take(isPlaying: boolean): Positions
}

/** A beat that comes this much later still reports where playback began. */
const STARTED_WITHIN_S = 1

export function followPlayChanges(video: PlayedVideo, signal: AbortSignal): PlayChanges {
  let hasChanged = true
  let startedAtS: number | undefined = 0
  let playedToS: number | undefined
  let leftAtS: number | undefined
  const on = (type: string, listener: () => void) => video.addEventListener(type, listener, { signal })
  on('timeupdate', () => {
    if (!video.seeking && !video.paused) playedToS = video.currentTime
  })
  on('pause', () => {
    playedToS = undefined // the beat of the pause reports it
  })
  on('seeking', () => {
    if (!hasChanged) leftAtS ??= playedToS
    hasChanged = true
  })
  on('seeked', () => {
    startedAtS = video.currentTime
  })
  on('ratechange', () => {
    hasChanged = true
  })
  return {
    get hasChanged() {
      return hasChanged && !video.seeking
    },
    take(isPlaying) {
      const { currentTime } = video
      const sinceStartS = currentTime - (startedAtS ?? Number.NEGATIVE_INFINITY)
      const positions = {
        positionS: startedAtS !== undefined && sinceStartS >= 0 && sinceStartS < STARTED_WITHIN_S ? startedAtS : currentTime,
        ...(leftAtS !== undefined && { leftAtS }),
      }
      leftAtS = undefined
      if (isPlaying && !video.seeking) {
        hasChanged = false
        startedAtS = undefined
      }
      return positions
    },
  }
}
