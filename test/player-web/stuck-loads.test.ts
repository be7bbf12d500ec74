import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { restartStuckLoads } from '../../web/player/stuck-loads.ts'

// A stream of which nothing is loaded any more, though the video waits for it.

const HAVE_FUTURE_DATA = 3
const waiting = { paused: false, ended: false, readyState: 1, HAVE_FUTURE_DATA }

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
})

function watch(video: typeof waiting, isLoading: () => boolean) {
  const restart = vi.fn()
  const end = restartStuckLoads(video, isLoading, restart)
  onTestFinished(end)
  return { restart, end }
}

test('F-105: a video that waits, and for which no request is under way, is loaded again', () => {
  const { restart, end } = watch(waiting, () => false)
  vi.advanceTimersByTime(1_900)
  expect(restart).not.toHaveBeenCalled()
  vi.advanceTimersByTime(200)
  expect(restart).toHaveBeenCalledTimes(1)
  end()
  vi.advanceTimersByTime(60_000)
  expect(restart).toHaveBeenCalledTimes(1)
})

test.each([
  { what: 'one that is paused', video: { ...waiting, paused: true } },
  { what: 'one that has ended', video: { ...waiting, ended: true } },
  { what: 'one that has data to play', video: { ...waiting, readyState: HAVE_FUTURE_DATA } },
])('F-105: $what is left alone', ({ video }) => {
  const { restart } = watch(video, () => false)
  vi.advanceTimersByTime(60_000)
  expect(restart).not.toHaveBeenCalled()
})

test('F-105: so is one on a slow line, for which a request is under way', () => {
  let isLoading = true
  const { restart } = watch(waiting, () => isLoading)
  vi.advanceTimersByTime(60_000)
  expect(restart).not.toHaveBeenCalled()
  isLoading = false
  vi.advanceTimersByTime(2_000)
  expect(restart).toHaveBeenCalledTimes(1)
})
