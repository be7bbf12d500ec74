import { expect, test } from 'vitest'
import { isBeatDue } from '../../web/player/beats.ts'
import { followPlayChanges } from '../../web/player/play-changes.ts'

type State = 'playing' | 'stalled' | 'paused' | 'ended'

test('a beat is due every 6 s while playing, 12 s where keys come meanwhile, and each minute while paused', () => {
  const due = (state: State, nowMs: number, keyMs = 0) =>
    isBeatDue({ state, hasChanged: false }, nowMs, { beatMs: 0, keyMs, changeMs: 0 }, 6000)
  expect([due('playing', 5999), due('playing', 6000), due('stalled', 6000)]).toEqual([false, true, true])
  expect([due('playing', 8000, 5000), due('playing', 11_999, 11_000), due('playing', 12_000, 11_000)]).toEqual([
    false,
    false,
    true,
  ])
  expect([due('paused', 59_999), due('paused', 60_000), due('ended', 60_000)]).toEqual([false, true, true])
})

test('a start, a seek and another speed are reported immediately, in a burst once a second, and not while nothing plays', () => {
  const due = (state: State, nowMs: number, changeMs: number) =>
    isBeatDue({ state, hasChanged: true }, nowMs, { beatMs: 0, keyMs: 0, changeMs }, 6000)
  expect(due('playing', 10, Number.NEGATIVE_INFINITY)).toBe(true)
  expect([due('playing', 1500, 600), due('playing', 1600, 600)]).toEqual([false, true])
  expect([due('stalled', 1600, 600), due('paused', 1600, 600)]).toEqual([false, false])
})

/** What is used of a video element, moved by the test. */
function newVideo() {
  const video = Object.assign(new EventTarget(), { currentTime: 0, seeking: false, paused: false })
  const fire = (type: string) => video.dispatchEvent(new Event(type))
  return {
    video,
    playTo(placeS: number) {
      video.currentTime = placeS
      fire('timeupdate')
    },
    seekTo(placeS: number) {
      Object.assign(video, { currentTime: placeS, seeking: true })
      fire('seeking')
      fire('timeupdate') // browsers send it before the seek has ended, too
      video.seeking = false
      fire('seeked')
    },
    pause() {
      video.paused = true
      fire('pause')
    },
  }
}

test('the beat after a seek says where the video played before it, of several seeks before the first, and where it plays on', () => {
  const { video, playTo, seekTo } = newVideo()
  const changes = followPlayChanges(video, new AbortController().signal)
  expect([changes.hasChanged, changes.take(true)]).toEqual([true, { positionS: 0 }]) // the start
  playTo(13)
  expect(changes.hasChanged).toBe(false)
  seekTo(60)
  playTo(60.3)
  seekTo(90)
  playTo(90.1)
  expect([changes.hasChanged, changes.take(true), changes.hasChanged]).toEqual([true, { positionS: 90, leftAtS: 13 }, false])
  playTo(90.4)
  expect(changes.take(true)).toEqual({ positionS: 90.4 })
})

test('a beat that comes later reports where the video plays then', () => {
  const { video, playTo, seekTo } = newVideo()
  const changes = followPlayChanges(video, new AbortController().signal)
  playTo(2)
  expect(changes.take(true)).toEqual({ positionS: 2 })
  seekTo(60)
  playTo(61)
  expect(changes.take(true)).toEqual({ positionS: 61, leftAtS: 2 })
})

test('a seek that a stalled video reports is reported again when it plays', () => {
  const { video, playTo, seekTo } = newVideo()
  const changes = followPlayChanges(video, new AbortController().signal)
  changes.take(true)
  playTo(8)
  seekTo(40)
  expect([changes.take(false), changes.hasChanged]).toEqual([{ positionS: 40, leftAtS: 8 }, true])
  expect([changes.take(true), changes.hasChanged]).toEqual([{ positionS: 40 }, false])
})

test('a seek of a paused video leaves no place: the beat of the pause has reported it', () => {
  const { video, playTo, pause, seekTo } = newVideo()
  const changes = followPlayChanges(video, new AbortController().signal)
  changes.take(true)
  playTo(8)
  pause()
  seekTo(40)
  expect(changes.take(false)).toEqual({ positionS: 40 })
})
