const SEEK_S = 10

/** The video's title on lock screens, and keys of headsets and keyboards that seek. They play and pause without it. */
export function showMediaSession(video: HTMLVideoElement, title: string): void {
  if (!('mediaSession' in navigator)) return
  const { mediaSession } = navigator
  mediaSession.metadata = new MediaMetadata({ title })
  const seekTo = (atS: number) => {
    if (Number.isFinite(video.duration)) video.currentTime = Math.min(video.duration, Math.max(0, atS))
  }
  mediaSession.setActionHandler('seekbackward', ({ seekOffset }) => seekTo(video.currentTime - (seekOffset ?? SEEK_S)))
  mediaSession.setActionHandler('seekforward', ({ seekOffset }) => seekTo(video.currentTime + (seekOffset ?? SEEK_S)))
  mediaSession.setActionHandler('seekto', ({ seekTime }) => seekTo(seekTime ?? video.currentTime))
}
