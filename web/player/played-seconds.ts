/** Which seconds of a video were played on this page, for the page around it. */
type PlayedSeconds = {
  /** Seconds of video, repeated ones each time. */
  totalS(): number
  /** For each second of the video, how many times it was played. */
  counts(durationS: number): number[]
}

/** A second counts when playback passes its middle, at any speed; a seek plays nothing. */
export function countPlayedSeconds(video: HTMLVideoElement): PlayedSeconds {
  const played: number[] = []
  let totalS = 0
  let lastS: number | undefined
  // 'play' is where the first stretch begins: the first update of a busy machine comes late.
  for (const type of ['play', 'timeupdate', 'pause', 'ended']) video.addEventListener(type, count)
  for (const type of ['seeking', 'emptied']) {
    video.addEventListener(type, () => {
      lastS = undefined
    })
  }

  function count() {
    if (video.seeking) return
    const nowS = video.currentTime
    if (lastS !== undefined && nowS > lastS) {
      totalS += nowS - lastS
      for (let second = Math.ceil(lastS - 0.5); second + 0.5 < nowS; second++) played[second] = (played[second] ?? 0) + 1
    }
    lastS = nowS
  }

  return {
    totalS: () => totalS,
    counts: (durationS) => Array.from({ length: Math.ceil(durationS) }, (_, second) => played[second] ?? 0),
  }
}
