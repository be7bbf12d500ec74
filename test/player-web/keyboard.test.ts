import { expect, test } from 'vitest'
import { actionForKey, selectRates, stepFrame, stepRate } from '../../web/player/keyboard.ts'

const press = (key: string, held: object = {}) => actionForKey({ key, ctrlKey: false, altKey: false, metaKey: false, ...held })

test.each([
  [' ', { kind: 'toggle-play' }],
  ['k', { kind: 'toggle-play' }],
  ['K', { kind: 'toggle-play' }],
  ['ArrowLeft', { kind: 'seek-by', seconds: -5 }],
  ['ArrowRight', { kind: 'seek-by', seconds: 5 }],
  ['j', { kind: 'seek-by', seconds: -10 }],
  ['l', { kind: 'seek-by', seconds: 10 }],
  ['m', { kind: 'toggle-mute' }],
  ['f', { kind: 'toggle-fullscreen' }],
  ['c', { kind: 'toggle-captions' }],
  ['<', { kind: 'speed-by', steps: -1 }],
  ['>', { kind: 'speed-by', steps: 1 }],
  [',', { kind: 'frame-by', frames: -1 }],
  ['.', { kind: 'frame-by', frames: 1 }],
  ['n', { kind: 'chapter-by', steps: 1 }],
  ['p', { kind: 'chapter-by', steps: -1 }],
  ['7', { kind: 'seek-to', share: 0.7 }],
  ['Home', { kind: 'seek-to', share: 0 }],
  ['End', { kind: 'seek-to', share: 1 }],
  ['?', { kind: 'show-keys' }],
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
  expect(selectRates(1.5)).toEqual([0.5, 0.75, 1, 1.25, 1.5])
  expect(selectRates(0.5)).toContain(1)
})

test('slower and faster go to the next offered speed and stop at either end', () => {
  const rates = selectRates(2)
  expect(stepRate(rates, 1, 1)).toBe(1.25)
  expect(stepRate(rates, 1.667, -1)).toBe(1.5)
  expect(stepRate(rates, 2, 1)).toBe(2)
  expect(stepRate(rates, 0.5, -1)).toBe(0.5)
})

test.each([24, 25, 29.97, 59.94, 23.976])(
  'at %f fps each step is exactly one frame, after hours too, and stays within the video',
  (frameRate) => {
    const rate = frameRate % 1 === 0 ? frameRate : Math.round(frameRate * 1.001) / 1.001
    const durationS = 10_000
    const frameAt = (timeS: number) => timeS * rate
    for (const frame of [0, 7, 90_000, 200_000]) {
      for (const within of [0, 1e-7, 0.3, 0.9]) {
        let timeS = (frame + within) / rate
        for (const [step, expected] of [
          [1, 1],
          [1, 2],
          [-1, 1],
        ] as const) {
          timeS = stepFrame(timeS, step, frameRate, durationS)
          expect(frameAt(timeS) - frame - expected).toBeGreaterThan(0.2)
          expect(frameAt(timeS) - frame - expected).toBeLessThan(0.8)
        }
      }
    }
    expect(stepFrame(0, -1, frameRate, durationS)).toBeLessThan(1 / rate)
    expect(stepFrame(durationS, 1, frameRate, durationS)).toBeLessThan(durationS)
    expect(stepFrame(durationS, -1, frameRate, durationS)).toBeGreaterThan(durationS - 2.5 / rate)
  },
)
