const SEEK_S = 10

/**
 * The video's title, poster, place and state on lock screens, and keys of headsets and keyboards that seek. They play and pause without it.
 * @param poster undefined: there is none
 */
export async function showMediaSession(
  video: HTMLVideoElement,
  title: string,
  poster: Promise<string | undefined>,
  signal: AbortSignal,
): Promise<void> {
  if (!('mediaSession' in navigator)) return
  const { mediaSession } = navigator
  mediaSession.metadata = new MediaMetadata({ title })
  const seekTo = (atS: number) => {
    if (Number.isFinite(video.duration)) video.currentTime = Math.min(video.duration, Math.max(0, atS))
  }
  mediaSession.setActionHandler('seekbackward', ({ seekOffset }) => seekTo(video.currentTime - (seekOffset ?? SEEK_S)))
  mediaSession.setActionHandler('seekforward', ({ seekOffset }) => seekTo(video.currentTime + (seekOffset ?? SEEK_S)))
  mediaSession.setActionHandler('seekto', ({ seekTime }) => seekTo(seekTime ?? video.currentTime))
  const showState = () => {
    const { duration, playbackRate, currentTime, paused } = video
    if (!Number.isFinite(duration)) return
    mediaSession.playbackState = paused ? 'paused' : 'playing'
    mediaSession.setPositionState({ duration, playbackRate, position: Math.min(currentTime, duration) })
  }
  for (const type of ['playing', 'pause', 'seeked', 'ratechange', 'durationchange'])
    video.addEventListener(type, showState, { signal })
  signal.addEventListener('abort', () => {
    mediaSession.metadata = null
    mediaSession.playbackState = 'none'
    mediaSession.setPositionState()
  })
  const src = await poster
  if (src !== undefined && !signal.aborted) mediaSession.metadata = new MediaMetadata({ title, artwork: [{ src }] })
}
