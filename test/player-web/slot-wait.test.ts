import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createSlotWait } from '../../web/player/slot-wait.ts'

// A screen too many waits for the other one: playback-protocol.md, section 7.

const shown: number[] = []
const retry = vi.fn()

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  shown.length = 0
  retry.mockReset()
})

const newWait = () => createSlotWait((seconds) => shown.push(seconds), retry)

test('it counts down to the end of the slot, and retries then', () => {
  expect(newWait().begin(3000)).toBe(true)
  vi.advanceTimersByTime(3499)
  expect([shown, retry.mock.calls.length]).toEqual([[4, 3, 2, 1], 0])
  vi.advanceTimersByTime(1)
  expect(retry).toHaveBeenCalledTimes(1)
})

test('a slot that is still taken after a whole lease belongs to a screen that plays: the viewer decides', () => {
  const wait = newWait()
  expect(wait.begin(14_000)).toBe(true)
  vi.advanceTimersByTime(14_500)
  expect(wait.begin(13_000)).toBe(false)
  expect(wait.begin(18_000)).toBe(true) // the viewer tries again
})

test('a slot that was renewed meanwhile by little is waited for again', () => {
  const wait = newWait()
  wait.begin(6000)
  vi.advanceTimersByTime(6500)
  expect(wait.begin(12_000)).toBe(true)
})

test('a key and a beat that are refused at the same time wait once', () => {
  const wait = newWait()
  wait.begin(5000)
  expect(wait.begin(5000)).toBe(true)
  vi.advanceTimersByTime(60_000)
  expect(retry).toHaveBeenCalledTimes(1)
})

test('the end of the session ends the wait', () => {
  const wait = newWait()
  wait.begin(5000)
  wait.end()
  vi.advanceTimersByTime(60_000)
  expect(retry).not.toHaveBeenCalled()
})
