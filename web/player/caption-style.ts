/** How captions look. Each value is the `id` of a choice below. */
export type CaptionStyle = Readonly<Record<CaptionStyleName, string>>
export type CaptionStyleName = 'size' | 'color' | 'background' | 'edge'
type Choice = { id: string; label: string; css: string }

/** `EDGE` is dark for light letters and light for dark ones. */
export const CAPTION_CHOICES: Readonly<Record<CaptionStyleName, { label: string; choices: readonly Choice[] }>> = {
  // Browsers take 5 % of the video's height. Of their own size as 100 %, WebKit would multiply each twice.
  size: {
    label: 'Size',
    choices: [
      { id: 'small', label: 'Small', css: '3.75vmin' },
      { id: 'normal', label: 'Normal', css: '' },
      { id: 'large', label: 'Large', css: '7.5vmin' },
      { id: 'largest', label: 'Very large', css: '10vmin' },
    ],
  },
  color: {
    label: 'Color',
    choices: [
      { id: 'white', label: 'White', css: '#ffffff' },
      { id: 'yellow', label: 'Yellow', css: '#ffff00' },
      { id: 'green', label: 'Green', css: '#66ff66' },
      { id: 'cyan', label: 'Cyan', css: '#66ffff' },
      { id: 'pink', label: 'Pink', css: '#ffaaff' },
      { id: 'black', label: 'Black', css: '#000000' },
    ],
  },
  background: {
    label: 'Background',
    choices: [
      { id: 'translucent', label: 'Translucent', css: 'rgb(0 0 0 / 70%)' },
      { id: 'black', label: 'Black', css: '#000000' },
      { id: 'white', label: 'White', css: '#ffffff' },
      { id: 'none', label: 'None', css: 'transparent' },
    ],
  },
  edge: {
    label: 'Edge',
    choices: [
      { id: 'none', label: 'None', css: 'none' },
      { id: 'shadow', label: 'Shadow', css: '0.06em 0.06em 0.1em EDGE, 0 0 0.2em EDGE' },
      {
        id: 'outline',
        label: 'Outline',
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
