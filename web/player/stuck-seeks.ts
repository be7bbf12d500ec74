type SeekableVideo = EventTarget & {
  currentTime: number
  readonly seeking: boolean
  readonly buffered: { readonly length: number; start(index: number): number; end(index: number): number }
}

const FIRST_WAIT_MS = 2000

/**
 * Repeats a seek that does not end although its place is buffered: WebKitGTK loses some of those that it gets before the first frame, such
 * as that to the place where the viewer left the video. Each repetition waits twice as long, because a slow machine may only need longer.
 * @returns its end
 */
export function repeatStuckSeeks(video: SeekableVideo): () => void {
  const listening = new AbortController()
  const { signal } = listening
  let timer: ReturnType<typeof setTimeout> | undefined
  let waitMs = FIRST_WAIT_MS
  video.addEventListener('seeking', repeatLater, { signal })
  for (const name of ['seeked', 'emptied']) {
    video.addEventListener(
      name,
      () => {
        clearTimeout(timer)
        waitMs = FIRST_WAIT_MS
      },
      { signal },
    )
  }
  return () => {
    clearTimeout(timer)
    listening.abort()
  }

  function repeatLater() {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (!video.seeking) return
      if (!isBuffered(video)) return repeatLater()
      waitMs *= 2
      const { currentTime: placeS } = video
      video.currentTime = placeS // its event `seeking` starts the next wait
    }, waitMs)
  }
}

function isBuffered({ buffered, currentTime: atS }: SeekableVideo): boolean {
  return Array.from({ length: buffered.length }).some((_, at) => buffered.start(at) <= atS && atS < buffered.end(at))
}
