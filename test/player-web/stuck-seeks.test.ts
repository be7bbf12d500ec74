import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { repeatStuckSeeks } from '../../web/player/stuck-seeks.ts'

// A browser that loses a seek before the first frame.

class LosingVideo extends EventTarget {
  seeking = false
  seeks = 0
  bufferedToS = 10
  #timeS = 0

  get currentTime() {
    return this.#timeS
  }

  set currentTime(timeS: number) {
    this.#timeS = timeS
    this.seeks++
    this.seeking = true
    this.dispatchEvent(new Event('seeking'))
  }

  get buffered() {
    return { length: 1, start: () => 0, end: () => this.bufferedToS }
  }

  endSeek() {
    this.seeking = false
    this.dispatchEvent(new Event('seeked'))
  }
}

let video: LosingVideo
let end: () => void

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  video = new LosingVideo()
  end = repeatStuckSeeks(video)
})

test('a seek to a buffered place that does not end is repeated, each time after twice the wait', () => {
  video.currentTime = 4
  const repeatedAtS: number[] = []
  for (let atS = 1; atS <= 14; atS++) {
    const before = video.seeks
    vi.advanceTimersByTime(1000)
    if (video.seeks > before) repeatedAtS.push(atS)
  }
  expect(repeatedAtS).toEqual([2, 6, 14])
  expect(video.currentTime).toBe(4)
})

test('a seek that ends, waits for its place to be buffered, or is not this player’s any more is not repeated', () => {
  video.currentTime = 4
  video.endSeek()
  vi.advanceTimersByTime(60_000)
  expect(video.seeks).toBe(1)

  video.bufferedToS = 5
  video.currentTime = 6
  vi.advanceTimersByTime(60_000)
  expect(video.seeks).toBe(2)
  video.bufferedToS = 10
  vi.advanceTimersByTime(2000)
  expect(video.seeks).toBe(3)

  end()
  vi.advanceTimersByTime(60_000)
  expect(video.seeks).toBe(3)
})
