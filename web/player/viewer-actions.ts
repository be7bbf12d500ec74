import type { PlayerElements } from './elements.ts'
import type { Fullscreen } from './fullscreen.ts'
import { type KeyAction, stepFrame, stepRate } from './keyboard.ts'
import { message, pluralMessage } from './language.ts'
import type { Playback } from './playback.ts'
import { formatTime } from './resume-offer.ts'

export type ViewerAction = Exclude<KeyAction, { kind: 'show-keys' }>

/** How long a sign shows. */
const SIGN_MS = 1200

/**
 * Does what keys and gestures ask for, and shows for a moment over the picture what has become of it. The sign is a polite live region, so
 * that screen readers say it.
 * @param playback undefined until the session is open: until then only play does anything
 */
export function createViewerActions(
  elements: PlayerElements,
  fullscreen: Pick<Fullscreen, 'toggle'>,
  playback: () => Playback | undefined,
): (action: ViewerAction) => void {
  const { video, controller, sign } = elements
  let timer: ReturnType<typeof setTimeout> | undefined
  /** Repeated seeks are shown as one, while their sign is there. */
  let seekS = 0
  return (action) => {
    const text = run(action)
    if (action.kind !== 'seek-by') seekS = 0
    if (text === undefined) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      sign.textContent = ''
      seekS = 0
    }, SIGN_MS)
    if (sign.textContent !== text) sign.textContent = text // the same words again would be said again
  }

  /** @returns the words of the sign; undefined: the change shows by itself, or there is none */
  function run(action: ViewerAction): string | undefined {
    const opened = playback()
    if (action.kind === 'toggle-play' && video.paused) {
      video.play().catch(() => {}) // also before there is anything to play
      return opened && message('play')
    }
    if (!opened) return undefined
    const { audio, captions } = opened.stream
    const hasMedia = Number.isFinite(video.duration)
    switch (action.kind) {
      case 'toggle-play':
        video.pause()
        return message('pause')
      case 'seek-by':
        if (!hasMedia) return undefined
        video.currentTime = Math.min(video.duration, Math.max(0, video.currentTime + action.seconds))
        seekS = (seekS * action.seconds > 0 ? seekS : 0) + action.seconds
        return pluralMessage(seekS < 0 ? 'seconds-back' : 'seconds-ahead', Math.abs(seekS))
      case 'seek-to':
        if (!hasMedia) return undefined
        video.currentTime = action.share * video.duration
        return formatTime(video.currentTime)
      case 'frame-by': {
        const frameRate = opened.stream.frameRate()
        if (!hasMedia || frameRate === undefined) return undefined
        video.pause()
        video.currentTime = stepFrame(video.currentTime, action.frames, frameRate, video.duration)
        return message(action.frames < 0 ? 'frame-back' : 'frame-ahead')
      }
      case 'chapter-by':
        if (opened.chapters.length === 0) return message('no-chapters')
        return opened.stepChapter(action.steps)
      // Requests to media-chrome, which remembers both for the next video.
      case 'volume-by': {
        const detail = Math.min(1, Math.max(0, video.volume + action.step))
        controller.mediaStore.dispatch({ type: 'mediavolumerequest', detail })
        return message('volume-is', { percent: Math.round(100 * video.volume) })
      }
      case 'toggle-mute':
        controller.mediaStore.dispatch({ type: video.muted ? 'mediaunmuterequest' : 'mediamuterequest' })
        return video.muted ? message('sound-off') : message('sound-on')
      case 'speed-by':
        opened.chooseRate(stepRate(opened.rates, video.playbackRate, action.steps))
        return message('speed-is', { rate: video.playbackRate })
      case 'toggle-captions': {
        opened.toggleCaptions()
        if (captions.list().length === 0) return message('no-captions')
        const chosen = captions.list()[captions.chosen()]
        return chosen ? message('captions-are', { name: chosen.label }) : message('captions-off')
      }
      case 'next-audio': {
        const tracks = audio.list()
        if (tracks.length < 2) return message('one-audio-track')
        const next = tracks[(tracks.findIndex(({ index }) => index === audio.chosen()) + 1) % tracks.length]
        if (next) opened.chooseAudio(next.index)
        return message('audio-is', { name: next?.label ?? '' })
      }
      case 'toggle-transcript':
        if (captions.list().length === 0) return message('no-captions')
        opened.showTranscript().catch(() => {})
        return undefined
      case 'toggle-fullscreen':
        fullscreen.toggle()
        return undefined
    }
  }
}
