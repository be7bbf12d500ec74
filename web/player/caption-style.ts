import type { TextKey } from '../languages/english.ts'

/** How captions look. Each value is the `id` of a choice below. */
export type CaptionStyle = Readonly<Record<CaptionStyleName, string>>
export type CaptionStyleName = 'size' | 'color' | 'background' | 'edge'
type Choice = { id: string; label: TextKey; css: string }

/** `EDGE` is dark for light letters and light for dark ones. */
export const CAPTION_CHOICES: Readonly<Record<CaptionStyleName, { label: TextKey; choices: readonly Choice[] }>> = {
  // Browsers take 5 % of the video's height. Of their own size as 100 %, WebKit would multiply each twice.
  size: {
    label: 'size',
    choices: [
      { id: 'small', label: 'size.small', css: '3.75vmin' },
      { id: 'normal', label: 'size.normal', css: '' },
      { id: 'large', label: 'size.large', css: '7.5vmin' },
      { id: 'largest', label: 'size.largest', css: '10vmin' },
    ],
  },
  color: {
    label: 'color',
    choices: [
      { id: 'white', label: 'white', css: '#ffffff' },
      { id: 'yellow', label: 'yellow', css: '#ffff00' },
      { id: 'green', label: 'green', css: '#66ff66' },
      { id: 'cyan', label: 'cyan', css: '#66ffff' },
      { id: 'pink', label: 'pink', css: '#ffaaff' },
      { id: 'black', label: 'black', css: '#000000' },
    ],
  },
  background: {
    label: 'background',
    choices: [
      { id: 'translucent', label: 'background.translucent', css: 'rgb(0 0 0 / 70%)' },
      { id: 'black', label: 'black', css: '#000000' },
      { id: 'white', label: 'white', css: '#ffffff' },
      { id: 'none', label: 'background.none', css: 'transparent' },
    ],
  },
  edge: {
    label: 'edge',
    choices: [
      { id: 'none', label: 'edge.none', css: 'none' },
      { id: 'shadow', label: 'edge.shadow', css: '0.06em 0.06em 0.1em EDGE, 0 0 0.2em EDGE' },
      {
        id: 'outline',
        label: 'edge.outline',
        css: '-0.06em -0.06em 0 EDGE, 0.06em -0.06em 0 EDGE, -0.06em 0.06em 0 EDGE, 0.06em 0.06em 0 EDGE',
      },
    ],
  },
}

export const CAPTION_STYLE_NAMES = ['size', 'color', 'background', 'edge'] as const satisfies readonly CaptionStyleName[]
export const USUAL_CAPTIONS: CaptionStyle = { size: 'normal', color: 'white', background: 'translucent', edge: 'none' }

/** What was stored, as far as it is a style; the usual one for the rest. */
export function parseCaptionStyle(stored: Readonly<Record<string, unknown>>): CaptionStyle {
  const read = (name: CaptionStyleName) =>
    CAPTION_CHOICES[name].choices.find(({ id }) => id === stored[name])?.id ?? USUAL_CAPTIONS[name]
  return { size: read('size'), color: read('color'), background: read('background'), edge: read('edge') }
}

/** The style with one choice changed. Letters that would not be legible on their ground change with it. */
export function changeCaptionStyle(style: CaptionStyle, name: CaptionStyleName, id: string): CaptionStyle {
  const next = { ...style, [name]: id }
  if (next.background === 'none') {
    if (next.edge !== 'none') return next
    return name === 'edge' ? { ...next, background: groundOf(next.color) } : { ...next, edge: 'outline' }
  }
  if ((next.color === 'black') === (next.background === 'white')) return next
  return name === 'background'
    ? { ...next, color: next.background === 'white' ? 'black' : 'white' }
    : { ...next, background: groundOf(next.color) }
}

/** Declarations for `::cue`, without the size. */
export function captionCss(style: CaptionStyle): string {
  const css = (name: CaptionStyleName) => CAPTION_CHOICES[name].choices.find(({ id }) => id === style[name])?.css ?? ''
  const edge = css('edge').replaceAll('EDGE', style.color === 'black' ? '#ffffff' : '#000000')
  return `color: ${css('color')}; background-color: ${css('background')}; text-shadow: ${edge};`
}

/** The declaration of the letters' size; none: the browser's own. */
export function captionSizeCss({ size }: CaptionStyle): string {
  const css = CAPTION_CHOICES.size.choices.find(({ id }) => id === size)?.css
  return css ? `font-size: ${css};` : ''
}

function groundOf(color: string): string {
  return color === 'black' ? 'white' : 'translucent'
}
