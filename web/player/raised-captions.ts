/**
 * Keeps captions above the control bar while it shows, in browsers whose style sheets cannot move captions (Firefox): there each cue that
 * has no position of its own gets one. The others have a rule in `player.css`.
 */
export function raiseCaptions(controller: HTMLElement, video: HTMLVideoElement): void {
  const bar = controller.querySelector<HTMLElement>('media-control-bar')
  if (!bar || CSS.supports('selector(::-webkit-media-text-track-container)')) return
  /** How far down the video its captions may reach, in percent of its height. */
  const percentAboveBar = () => Math.max(0, 100 * (1 - bar.offsetHeight / Math.max(1, video.clientHeight)))
  const placed = new WeakSet<VTTCue>()
  new MutationObserver(place).observe(controller, { attributeFilter: ['userinactive', 'mediapaused'] })
  new ResizeObserver(place).observe(video)
  video.textTracks.addEventListener('addtrack', ({ track }) => track?.addEventListener('cuechange', place))

  function place() {
    const isBarShown = !controller.hasAttribute('userinactive') || controller.hasAttribute('mediapaused')
    for (const track of video.textTracks) {
      if (track.mode !== 'showing') continue
      for (const cue of track.activeCues ?? []) {
        if (!(cue instanceof VTTCue) || (cue.line !== 'auto' && !placed.has(cue))) continue
        placed.add(cue)
        cue.snapToLines = !isBarShown
        cue.lineAlign = isBarShown ? 'end' : 'start'
        cue.line = isBarShown ? percentAboveBar() : 'auto'
      }
    }
  }
}
