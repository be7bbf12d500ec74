const LOOK_MS = 1000
/** How often in a row a video must be found without data and without a request before its loading starts again. */
const LOOKS = 2

type WaitingVideo = Readonly<{ paused: boolean; ended: boolean; readyState: number; HAVE_FUTURE_DATA: number }>

/**
 * Starts loading again where the video waits for data and nothing loads it: hls.js shares the request of a key between picture and sound,
 * and when one of them ends it, the other waits for ever.
 * @param isLoading whether a request is under way, or waits to be repeated
 * @returns its end
 */
export function restartStuckLoads(video: WaitingVideo, isLoading: () => boolean, restart: () => void): () => void {
  let found = 0
  const timer = setInterval(() => {
    const waits = !video.paused && !video.ended && video.readyState < video.HAVE_FUTURE_DATA
    found = waits && !isLoading() ? found + 1 : 0
    if (found < LOOKS) return
    found = 0
    restart()
  }, LOOK_MS)
  return () => clearInterval(timer)
}
