import { THEME_OPTIONS } from '../embed/messages.ts'
import type { ThemeOption } from '../embed/reelgate.d.ts'

/** What the page around the player decides of its looks, checked. `undefined`: the player's own. */
export type Theme = { [Option in ThemeOption]?: string | undefined }

const PRIMARY = '#f2a93b'
/** The bar lies on a gradient over the video; this is its ground where that is neither bright nor dark. */
const BAR = '#1c1c1c'
/** WCAG 2.2: 1.4.11 for controls, 1.4.3 for text. */
const CONTROL_CONTRAST = 3
const TEXT_CONTRAST = 4.5

const MAX_RADIUS_PX = 24
const MAX_FONTS = 10
const GENERIC_FONTS = new Set(['serif', 'sans-serif', 'monospace', 'cursive', 'fantasy', 'system-ui', 'ui-serif'])
for (const name of ['ui-sans-serif', 'ui-monospace', 'ui-rounded']) GENERIC_FONTS.add(name)

const READERS = {
  primaryColor: readColor,
  surfaceColor: readColor,
  borderRadius: readRadius,
  fontFamily: readFonts,
} as const satisfies Record<ThemeOption, (text: string) => string | undefined>

/** The options of these that have their form. An empty one stands for the player's own; one without its form is left out. */
export function readTheme(options: Readonly<Record<string, unknown>>): Theme {
  const theme: Theme = {}
  for (const name of THEME_OPTIONS) {
    const value = options[name]
    if (typeof value !== 'string') continue
    const read = value.length > 500 ? undefined : READERS[name](value.trim())
    if (read !== undefined || value === '') theme[name] = read
  }
  return theme
}

/** `fa3`, `#ffaa33` or `ffaa33` (embedders forget to encode `#`) as `#rrggbb`; a name as it is. */
function readColor(text: string): string | undefined {
  const hex = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text)?.[1]?.toLowerCase()
  if (hex === undefined) return /^[a-z]{3,20}$/i.test(text) ? text.toLowerCase() : undefined
  return `#${hex.length === 3 ? hex.replace(/./g, '$&$&') : hex}`
}

/** `12` or `12px`. */
function readRadius(text: string): string | undefined {
  const [, px] = /^(\d{1,4}(?:\.\d{1,6})?)(?:px)?$/.exec(text) ?? []
  return px === undefined ? undefined : `${Math.min(MAX_RADIUS_PX, Number(px))}px`
}

/** A list of family names, each written again by us, so that nothing else of CSS gets through. */
function readFonts(text: string): string | undefined {
  const fonts = text.split(',').map((font) =>
    font
      .trim()
      .replace(/^(["'])(.*)\1$/, '$2')
      .trim(),
  )
  if (fonts.length > MAX_FONTS || !fonts.every((font) => /^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,59}$/u.test(font))) return undefined
  return fonts.map((font) => (GENERIC_FONTS.has(font) ? font : `"${font}"`)).join(', ')
}

/**
 * The custom properties of `player.css` that a theme changes; `undefined`: the style sheet's own. Colors are changed as far as they have to
 * be for controls and text to be seen.
 * @param toHex a color as `#rrggbb`; undefined for one that is not opaque, and for no color
 */
export function themeProperties(theme: Theme, toHex: (color: string) => string | undefined): Record<string, string | undefined> {
  const primary = theme.primaryColor === undefined ? undefined : toHex(theme.primaryColor)
  const surface = theme.surfaceColor === undefined ? undefined : toHex(theme.surfaceColor)
  const lamp = primary && withContrast(primary, BAR, CONTROL_CONTRAST)
  return {
    '--lamp': lamp,
    '--lamp-ink': lamp && inkOn(lamp),
    ...surfaceProperties(surface, primary),
    '--radius': theme.borderRadius,
    '--font': theme.fontFamily,
  }
}

function surfaceProperties(surface: string | undefined, primary: string | undefined) {
  const ground = surface ?? '#191b1f'
  const ink = inkOn(ground)
  const soft = withContrast(mix(ink, ground, 0.35), ground, TEXT_CONTRAST)
  const isThemed = surface !== undefined || primary !== undefined
  return {
    '--surface': surface,
    '--surface-ink': surface && ink,
    '--surface-ink-soft': surface && soft,
    '--surface-line': surface && mix(ink, ground, 0.85),
    '--surface-scheme': surface && (ink === WHITE ? 'dark' : 'light'),
    '--surface-lamp': isThemed ? withContrast(primary ?? PRIMARY, ground, TEXT_CONTRAST) : undefined,
  }
}

const INK = '#111214'
const WHITE = '#ffffff'
const BLACK = '#000000'

/** The ink for text on a color. Where ours and white are both too near to it, black is not. */
export function inkOn(color: string): string {
  return [INK, WHITE].find((ink) => contrast(ink, color) >= TEXT_CONTRAST) ?? BLACK
}

/** The color itself if it can be seen on the ground, else lightened or darkened as little as that takes. */
export function withContrast(color: string, ground: string, ratio: number): string {
  const end = inkOn(ground) === WHITE ? WHITE : BLACK
  const shares = Array.from({ length: 51 }, (_, step) => step / 50)
  return shares.map((share) => mix(color, end, share)).find((mixed) => contrast(mixed, ground) >= ratio) ?? end
}

/** Of two colors as `#rrggbb`, 1 to 21, as in WCAG 2.2. */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = channels(color).map((value) => {
    const channel = value / 255
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** @param share of the other color, 0 to 1 */
function mix(color: string, other: string, share: number): string {
  const others = channels(other)
  const mixed = channels(color).map((value, at) => Math.round(value + ((others[at] ?? value) - value) * share))
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`
}

function channels(color: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16))
}
