import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  glideMs,
  maxTextHeightPx,
  pictureBox,
  type Watermark,
  watermarkCorner,
  watermarkTurn,
} from '../../web/player/watermarks.ts'

const MARK = {
  type: 'rtext',
  text: 'anna@example.org',
  alpha: 0.6,
  color: '#ffffff',
  sizePx: 18,
  intervalMs: 5000,
  skipMs: 0,
} satisfies Watermark
const length = fc.integer({ min: 1, max: 4000 })

test('a moving watermark is inside the picture, never in the black bars, whatever the random numbers', () => {
  const box = { widthPx: 390, heightPx: 844 }
  const picture = pictureBox(box, { widthPx: 1280, heightPx: 720 })
  expect(picture.heightPx).toBeCloseTo(219.4, 1)
  const text = { widthPx: 120, heightPx: 20 }
  const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  fc.assert(
    fc.property(chance, chance, (x, y) => {
      const { leftPx, topPx } = watermarkCorner(MARK, { picture, text, chance: [x, y] })
      expect(leftPx).toBeGreaterThanOrEqual(picture.leftPx)
      expect(leftPx + text.widthPx).toBeLessThanOrEqual(picture.leftPx + picture.widthPx)
      expect(topPx).toBeGreaterThanOrEqual(picture.topPx)
      expect(topPx + text.heightPx).toBeLessThanOrEqual(picture.topPx + picture.heightPx)
    }),
  )
})

test('while the controls show, watermarks are above them; moving and fixed ones return to their place afterwards', () => {
  const picture = { leftPx: 0, topPx: 0, widthPx: 640, heightPx: 360 }
  const text = { widthPx: 120, heightPx: 20 }
  const fixed = { ...MARK, type: 'text', x: '5%', y: '95%' } satisfies Watermark
  for (const watermark of [MARK, fixed]) {
    const location = { picture, text, chance: [0, 0.999] as const }
    expect(watermarkCorner(watermark, { ...location, controlsTopPx: 300 }).topPx).toBe(280)
    expect(watermarkCorner(watermark, location).topPx).toBeGreaterThan(335)
    expect(watermarkCorner({ ...fixed, y: '10%' }, { ...location, controlsTopPx: 300 }).topPx).toBe(36)
  }
})

test('a text takes two fifths of the picture at most, in a small frame what is above the controls', () => {
  const picture = { leftPx: 0, topPx: 0, widthPx: 300, heightPx: 150 }
  expect([maxTextHeightPx(picture, undefined), maxTextHeightPx(picture, 55), maxTextHeightPx(picture, 5)]).toEqual([60, 55, 24])
})

test('the image keeps its aspect ratio and fills one side of its box', () => {
  fc.assert(
    fc.property(length, length, length, length, (boxWidth, boxHeight, width, height) => {
      const picture = pictureBox({ widthPx: boxWidth, heightPx: boxHeight }, { widthPx: width, heightPx: height })
      expect(picture.widthPx / picture.heightPx).toBeCloseTo(width / height, 3)
      const rest = Math.min(boxWidth - picture.widthPx, boxHeight - picture.heightPx)
      expect(Math.abs(rest)).toBeLessThan(0.001)
    }),
  )
})

test('before the first frame the whole box counts as the picture', () => {
  const box = { widthPx: 640, heightPx: 360 }
  expect(pictureBox(box, { widthPx: 0, heightPx: 0 })).toEqual({ leftPx: 0, topPx: 0, ...box })
})

test('a moving mark changes its place each interval and is absent for the skip between', () => {
  const watermark = { ...MARK, intervalMs: 5000, skipMs: 2000 }
  expect([0, 4999, 5000, 6999, 7000].map((ms) => watermarkTurn(watermark, ms))).toEqual([
    { turn: 0, shown: true },
    { turn: 0, shown: true },
    { turn: 0, shown: false },
    { turn: 0, shown: false },
    { turn: 1, shown: true },
  ])
})

test('without a skip a moving mark is never absent', () => {
  fc.assert(fc.property(fc.nat(10_000_000), (ms) => watermarkTurn(MARK, ms).shown))
})

test('a moving mark stays above the captions while there are any', () => {
  const picture = { leftPx: 0, topPx: 100, widthPx: 1000, heightPx: 500 }
  const bottomOf = (captions: boolean) =>
    watermarkCorner(MARK, { picture, text: { widthPx: 120, heightPx: 20 }, chance: [0, 0.999], captions }).topPx + 20
  expect(bottomOf(false)).toBeCloseTo(600, 0)
  expect(bottomOf(true)).toBeCloseTo(100 + 0.75 * 500, 0)
})

test('a moving mark glides to its next place, unless it is absent between two or the viewer wants no motion', () => {
  expect(glideMs(MARK, false)).toBe(1500)
  expect(glideMs({ ...MARK, intervalMs: 500 }, false)).toBe(250)
  expect(glideMs({ ...MARK, skipMs: 100 }, false)).toBe(0)
  expect(glideMs(MARK, true)).toBe(0)
  expect(glideMs({ ...MARK, type: 'text' }, false)).toBe(0)
})

test('an image watermark stays where its owner put it', () => {
  const logo: Watermark = { type: 'image', image: 'data:,', alpha: 1, x: '100%', y: '0' }
  const picture = { leftPx: 0, topPx: 100, widthPx: 1000, heightPx: 500 }
  expect(watermarkCorner(logo, { picture, text: { widthPx: 120, heightPx: 40 }, chance: [0.5, 0.5] })).toEqual({
    leftPx: 880,
    topPx: 100,
  })
  expect([0, 5000, 1e9].map((ms) => watermarkTurn(logo, ms))).toEqual(Array(3).fill({ turn: 0, shown: true }))
})

test('a fixed watermark is at its percentage or pixels of the picture, and never outside', () => {
  const picture = { leftPx: 0, topPx: 100, widthPx: 1000, heightPx: 500 }
  const text = { widthPx: 200, heightPx: 20 }
  const cornerOf = (x: string, y: string) => watermarkCorner({ ...MARK, type: 'text', x, y }, { picture, text, chance: [0, 0] })
  expect(cornerOf('12%', '10%')).toEqual({ leftPx: 120, topPx: 150 })
  expect(cornerOf('40', '30')).toEqual({ leftPx: 40, topPx: 130 })
  expect(cornerOf('100%', '9999')).toEqual({ leftPx: 800, topPx: 580 })
  expect(cornerOf('-50', 'left')).toEqual({ leftPx: 0, topPx: 100 })
})
