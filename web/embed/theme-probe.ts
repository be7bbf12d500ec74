import { THEME_OPTIONS } from './messages.ts'
import type { ThemeOption } from './reelgate.d.ts'

/** What the page's style sheets set; empty: nothing. */
type PageTheme = Record<ThemeOption, string>

export type ThemeProbe = {
  read(): PageTheme
  onChange(listener: (theme: PageTheme) => void): void
  end(): void
}

/**
 * An invisible element that uses each property, so that the browser computes variables, units and colors, and reports by transitions of a
 * millisecond that one has changed: with a class of the page, a media query or a new style sheet. What is not set, or is no value of its
 * kind, is that of the element around it. A style sheet of this form is allowed under every content policy of the page.
 */
const STYLE = `
:host { display: block }
:host([hidden]) { display: none }
.theme { position: absolute; visibility: hidden; color: transparent; text-indent: -1px; font-family: reelgate-none }
.theme span {
  color: color-mix(in srgb, var(--reelgate-primary-color, transparent), var(--reelgate-primary-color, transparent));
  background-color: color-mix(in srgb, var(--reelgate-surface-color, transparent), var(--reelgate-surface-color, transparent));
  text-indent: var(--reelgate-border-radius, -1px);
  font-family: var(--reelgate-font-family, reelgate-none);
  transition: 1ms;
  transition-property: color, background-color, text-indent, font-family;
  transition-behavior: allow-discrete;
}`

/** Reads the custom properties `--reelgate-…` of an element. */
export function createThemeProbe(element: HTMLElement, root: ShadowRoot): ThemeProbe {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(STYLE)
  root.adoptedStyleSheets = [sheet]
  const container = document.createElement('div')
  const probe = document.createElement('span')
  container.className = 'theme'
  container.append(probe)
  root.replaceChildren(container)
  const resizing = new ResizeObserver(report) // nothing changes where nothing shows
  const listeners: ((theme: PageTheme) => void)[] = []
  let last = read()
  for (const type of ['transitionend', 'transitioncancel']) probe.addEventListener(type, report)
  resizing.observe(element)
  return { read, onChange: (listener) => void listeners.push(listener), end: () => resizing.disconnect() }

  function read(): PageTheme {
    const { color, backgroundColor, textIndent, fontFamily } = getComputedStyle(probe)
    return {
      primaryColor: toHex(color),
      surfaceColor: toHex(backgroundColor),
      borderRadius: /^\d+(\.\d+)?px$/.test(textIndent) ? textIndent : '',
      fontFamily: fontFamily === 'reelgate-none' ? '' : fontFamily,
    }
  }

  function report() {
    const theme = read()
    if (THEME_OPTIONS.every((name) => theme[name] === last[name])) return
    last = theme
    for (const listener of listeners) listener(theme)
  }
}

/** `color(srgb 1 0.5 0)` as `ff8000`; empty for a translucent one. */
function toHex(color: string): string {
  const [, ...shares] = /^color\(srgb (-?[\d.e-]+) (-?[\d.e-]+) (-?[\d.e-]+)\)$/.exec(color) ?? []
  return shares
    .map((share) =>
      Math.round(255 * Math.min(1, Math.max(0, Number(share))))
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')
}
