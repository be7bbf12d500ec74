import { expect, test } from 'vitest'
import { captionCss, changeCaptionStyle, parseCaptionStyle, USUAL_CAPTIONS } from '../../web/player/caption-style.ts'

// How captions look, from what is stored and chosen.

test('what is stored is taken as far as it is a style', () => {
  expect(parseCaptionStyle({ size: 'large', color: 'red; x', background: 7 })).toEqual({ ...USUAL_CAPTIONS, size: 'large' })
})

test.each([
  ['black letters get a light ground', USUAL_CAPTIONS, 'color', 'black', { background: 'white' }],
  ['a light ground gets black letters', USUAL_CAPTIONS, 'background', 'white', { color: 'black' }],
  ['letters without a ground get an edge', USUAL_CAPTIONS, 'background', 'none', { edge: 'outline' }],
  [
    ...(['letters without an edge get a ground', { ...USUAL_CAPTIONS, background: 'none', edge: 'shadow' }] as const),
    ...(['edge', 'none', { background: 'translucent' }] as const),
  ],
] as const)('%s', (_, style, name, id, also) => {
  expect(changeCaptionStyle(style, name, id)).toEqual({ ...style, [name]: id, ...also })
})

test('an edge is light around black letters', () => {
  const css = captionCss({ ...USUAL_CAPTIONS, color: 'black', edge: 'outline', background: 'none' })
  expect(css).toMatch(/^color: #000000; .*background-color: transparent; .*#ffffff/)
  expect(css).not.toMatch(/EDGE/)
})
