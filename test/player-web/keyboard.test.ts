import { expect, test } from 'vitest'
import { isBeatDue } from '../../web/player/beats.ts'
import { keyAction, offeredRates, steppedRate } from '../../web/player/keyboard.ts'

const press = (key: string, held: object = {}) => keyAction({ key, ctrlKey: false, altKey: false, metaKey: false, ...held })

test.each([
  [' ', { action: 'toggle-play' }],
  ['k', { action: 'toggle-play' }],
  ['K', { action: 'toggle-play' }],
  ['ArrowLeft', { action: 'seek-by', seconds: -5 }],
  ['ArrowRight', { action: 'seek-by', seconds: 5 }],
  ['j', { action: 'seek-by', seconds: -10 }],
  ['l', { action: 'seek-by', seconds: 10 }],
  ['m', { action: 'toggle-mute' }],
  ['f', { action: 'toggle-fullscreen' }],
  ['c', { action: 'toggle-captions' }],
  ['<', { action: 'speed-by', steps: -1 }],
  ['>', { action: 'speed-by', steps: 1 }],
  ['7', { action: 'seek-to', share: 0.7 }],
  ['Home', { action: 'seek-to', share: 0 }],
  ['End', { action: 'seek-to', share: 1 }],
  ['?', { action: 'show-keys' }],
  ['x', undefined],
  ['constructor', undefined],
])('the key %s does what the list says', (key, action) => {
  expect(press(key)).toEqual(action)
})

test("the browser's own shortcuts stay the browser's", () => {
  expect(press('f', { ctrlKey: true })).toBeUndefined()
  expect(press('ArrowLeft', { altKey: true })).toBeUndefined()
  expect(press('m', { metaKey: true })).toBeUndefined()
})

test('no speed is offered that the keys could not follow', () => {
  expect(offeredRates(1.5)).toEqual([0.5, 0.75, 1, 1.25, 1.5])
  expect(offeredRates(0.5)).toContain(1)
})

test('slower and faster go to the next offered speed and stop at either end', () => {
  const rates = offeredRates(2)
  expect(steppedRate(rates, 1, 1)).toBe(1.25)
  expect(steppedRate(rates, 1.667, -1)).toBe(1.5)
  expect(steppedRate(rates, 2, 1)).toBe(2)
  expect(steppedRate(rates, 0.5, -1)).toBe(0.5)
})

test('a beat is due every 6 s while playing, not when a key came meanwhile, and each minute while paused', () => {
  const due = (state: 'playing' | 'stalled' | 'paused' | 'ended', nowMs: number, keyMs = 0) =>
    isBeatDue(state, nowMs, { beatMs: 0, keyMs }, 6000)
  expect([due('playing', 5999), due('playing', 6000), due('stalled', 6000)]).toEqual([false, true, true])
  expect(due('playing', 8000, 5000)).toBe(false)
  expect([due('paused', 59_999), due('paused', 60_000), due('ended', 60_000)]).toEqual([false, true, true])
})
