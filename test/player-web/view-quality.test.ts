import { expect, test, vi } from 'vitest'
import { measureViewQuality } from '../../web/player/view-quality.ts'

/** What is used of a video element and of the page's clock, moved by the test. */
function newVideo() {
  let nowMs = 1000
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  let showFrame = () => {}
  const video = Object.assign(new EventTarget(), {
    ...{ currentTime: 0, paused: true, seeking: false, readyState: 4, total: 0, dropped: 0 },
    requestVideoFrameCallback: (shown: () => void) => {
      showFrame = shown
      return 1
    },
    getVideoPlaybackQuality: () => ({ totalVideoFrames: video.total, droppedVideoFrames: video.dropped }),
  })
  const rendition = { id: 1 }
  const quality = measureViewQuality({
    ...{ video, renditionId: () => rendition.id, askedMs: undefined, network: () => '4g', signal: new AbortController().signal },
  })
  const fire = (type: string, timeStamp = nowMs) =>
    video.dispatchEvent(Object.defineProperty(new Event(type), 'timeStamp', { value: timeStamp }))
  return {
    ...{ video, rendition, quality, fire, showFrame: () => showFrame() },
    passMs(ms: number) {
      nowMs += ms
    },
    play() {
      video.paused = false
      fire('play')
    },
    playFor(ms: number) {
      nowMs += ms
      video.currentTime += ms / 1000
      fire('timeupdate')
    },
  }
}

/** A video that shows its first frame 400 ms after it was asked to. */
function newPlaying() {
  const page = newVideo()
  page.play()
  page.fire('waiting')
  page.passMs(400)
  page.showFrame()
  page.fire('playing')
  return page
}

test('the start counts from the request to play, however long other listeners of the page work first', () => {
  const { video, quality, fire, passMs, showFrame } = newVideo()
  video.paused = false
  passMs(80)
  fire('play', performance.now() - 80)
  passMs(320)
  showFrame()
  expect(quality.read()).toMatchObject({ startMs: 400 })
})

test('the start lasts from the request to play to the first frame; one that was taken back does not count', () => {
  const { video, quality, fire, passMs, play, showFrame } = newVideo()
  expect(quality.read()).toEqual({
    ...{ measuredMs: 1000, waits: 0, waitedMs: 0, played: [], frames: 0, droppedFrames: 0, network: '4g' },
  })
  play()
  passMs(5000)
  const late = showFrame
  video.paused = true
  fire('pause')
  late()
  play()
  passMs(250)
  showFrame()
  expect(quality.read()).toMatchObject({ measuredMs: 6250, startMs: 250 })
})

test('a hidden page, which shows no frame, has started when its time moves', () => {
  const { quality, play, playFor } = newVideo()
  play()
  playFor(300)
  expect(quality.read().startMs).toBe(300)
})

test('waiting is what interrupts playback: not the start, nor a seek, nor a pause', () => {
  const { video, quality, fire, passMs, playFor } = newPlaying()
  expect(quality.read()).toMatchObject({ startMs: 400, waits: 0, waitedMs: 0 })
  playFor(1000)
  fire('waiting')
  passMs(700)
  expect(quality.read()).toMatchObject({ waits: 1, waitedMs: 700 }) // while it waits
  fire('playing')
  playFor(1000)
  video.seeking = true
  fire('seeking')
  fire('waiting')
  passMs(900)
  video.seeking = false
  fire('seeked')
  fire('waiting')
  passMs(100)
  fire('playing')
  playFor(500)
  fire('waiting')
  passMs(50)
  video.paused = true
  fire('pause')
  passMs(9000)
  expect(quality.read()).toMatchObject({ waits: 2, waitedMs: 750 })
})

test('the time of each rendition is counted while the picture moves, and frames across a second load', () => {
  const { video, rendition, quality, fire, passMs, playFor } = newPlaying()
  for (let n = 0; n < 4; n++) playFor(250)
  rendition.id = 2
  playFor(500)
  fire('waiting')
  passMs(3000)
  fire('playing')
  playFor(250)
  Object.assign(video, { total: 50, dropped: 3 })
  expect(quality.read()).toMatchObject({
    played: [
      [1, 1000],
      [2, 750],
    ],
    frames: 50,
    droppedFrames: 3,
  })
  Object.assign(video, { total: 10, dropped: 1 })
  expect(quality.read()).toMatchObject({ frames: 60, droppedFrames: 4 })
})

test('what stopped the player is reported when only the player knows it', () => {
  const { quality } = newPlaying()
  expect([quality.failed('session-ended'), quality.read().error]).toEqual([false, undefined])
  expect([quality.failed('internal'), quality.failed('network'), quality.read().error]).toEqual([true, true, 'internal'])
})
